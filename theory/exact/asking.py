"""The functions that ask for an exact law: of the average iterate, at stationarity, of all clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.interfaces import Algorithm, Problem, start_of, validate, validate_sizes
from fedsim.laws.law import Gaussian, Law
from fedsim.laws.recording import n_recorded, recorded_rounds
from fedsim.provenance import Provenance, attach
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array, one_of, whole

from ..float_range import float64_range
from .evolution import correlated, matrix_of
from .families import ExactFamily, family_of, refuse_steps
from .joint_laws import JointLaw
from .precision import warn_of_lost_digits


def _family(problem: Problem, algorithm: Algorithm, start: object,
            allow_unstable: bool) -> tuple[ExactFamily, Any]:
    """The family of this algorithm and what it solves, after every check of the arguments."""
    validate_sizes(problem, algorithm, start)
    family = family_of(algorithm)
    solvable = family.solvable(problem)
    if not one_of("allow_unstable", allow_unstable, (True, False)):
        with _range(algorithm):
            validate(problem, algorithm, start)
            family.require_stable(problem, algorithm)
    return family, solvable


def _finite(values: Array, rounds: np.ndarray, algorithm: Any, allow_unstable: bool) -> None:
    """Check laws (..., n, k) at the n rounds."""
    bad = ~np.isfinite(values).all(axis=(*range(values.ndim - 2), -1))
    if bad.any():
        raise ValueError(f"step_size={algorithm.step_size!r}: the law leaves the range of float64 by round "
                         f"{rounds[int(np.argmax(bad))]}; {_why(allow_unstable)}")


def _why(allow_unstable: bool) -> str:
    return "the step size is beyond the stability limit" if allow_unstable else (
        "hessians, minimizers, gradient_noise and start are too large or too small together; rescale the "
        "problem")


def _range(algorithm: Any) -> Any:
    return float64_range(f"step_size={algorithm.step_size!r} with these hessians, minimizers and start")


def exact_law(problem: Problem, algorithm: Algorithm, n_rounds: int, *, start: Any = None, record: Any = None,
              covariance: str = "full", allow_unstable: bool = False) -> Law:
    """Mean and covariance of the average iterate after communications, without Monte Carlo.

    Parameters
    ----------
    problem : fedsim.Quadratic, or fedsim.LinearRegression
        Its minibatches have exact moments for federated and decentralized algorithms, and for samplers of
        one's own.
    algorithm : e.g. fedsim.FALD
    n_rounds : int
        Number of communications. With a constant step size 10^9 cost no more than 10^3.
    start : point (d,) or fedsim.Gaussian (one draw, common to all clients), optional
        The origin by default; decentralized algorithms take a point per client (N, d) too.
    record : sequence of rounds, optional
        See `fedsim.recorded_rounds`.
    covariance : "full", "diagonal" or "none"
        Keep (n, d, d), (n, d) variances, or no covariance.
    allow_unstable : bool
        Also beyond the stability limit.

    Returns
    -------
    fedsim.Law
        Its `is_gaussian` is False where clients or data are drawn at random: only its moments are exact
        then. Its `clients` are the laws of decentralized clients.

    Raises
    ------
    UnstableStepSize, NoExactLaw (both are ValueErrors), ValueError
        The last also for results beyond the memory limit, and for more than 10^7 rounds that are
        recorded, or of a step size that changes.

    Warns
    -----
    theory.PrecisionWarning
        After more than 10^9 rounds next to the stability limit, where fewer than six digits are left.

    Source: spelled out in the module of each algorithm.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> law = theory.exact_law(problem, fs.FALD(0.1, local_steps=3), n_rounds=50)
    >>> round(float(law.w2()[-1]), 6)
    0.073425
    """
    family, solved = _family(problem, algorithm, start, allow_unstable)
    if not allow_unstable:
        warn_of_lost_digits(solved, algorithm, float(whole("n_rounds", n_rounds, 0, 2**53)))
    one_of("covariance", covariance, ("full", "diagonal", "none"))
    dim, n_kept = problem.dim, n_recorded(n_rounds, record)
    refuse_steps(algorithm, n_rounds, n_kept, record)
    views = 1 + problem.n_clients if algorithm._clients_differ(problem) else 1
    entries = {"full": dim * dim, "diagonal": dim, "none": 0}[covariance]
    laws = "" if views == 1 else f" of {views} laws"
    refuse_bytes(8.0 * views * n_kept * (dim + entries), f"{n_kept} recorded rounds{laws} of "
                 f"covariance={covariance!r} at dimension {dim}", "record fewer rounds or use "
                 "covariance='diagonal'")
    rounds = recorded_rounds(n_rounds, record)
    with _range(algorithm):  # an overflow is reported below, by its round
        mean, cov = start_of(problem, algorithm, start)
        cov = None if covariance == "none" else np.zeros(dim) if cov is None else cov
        moments = family.moments(solved, algorithm, rounds, mean, cov, covariance == "full")
        means = np.empty((views, n_kept, dim))
        covs = (np.zeros((views, n_kept, dim, dim)) if covariance == "full"
                else np.empty((views, n_kept, entries)))
        for i, (mean, cov) in enumerate(moments):
            means[:, i] = mean
            if cov is not None:
                _keep(covs, i, cov, mean.ndim)
    _finite(means, rounds, algorithm, allow_unstable)
    _finite(covs if covariance != "full" else covs.reshape(views, n_kept, -1), rounds, algorithm,
            allow_unstable)
    with _range(algorithm):
        gaussian, target = family.is_gaussian(solved, algorithm), algorithm.target(problem)
    of = Provenance.of(problem, algorithm, start)

    def law(view: int, label: str, clients: tuple[Law, ...] = ()) -> Law:
        cov = None if covariance == "none" else covs[view]
        result = Law(rounds, means[view], cov, target, gaussian, clients, label)
        return attach(result, of.client(view - 1) if view else of)

    return law(0, f"exact law of {type(algorithm).__name__}",
               tuple(law(view, f"client {view - 1}") for view in range(1, views)))


def _keep(covs: Array, i: int, cov: Array, axes: int) -> None:
    """Put covariances of the i-th round, with `axes` more than one for variances, where they belong."""
    variances = cov.ndim == axes
    if covs.ndim == 3:
        covs[:, i] = cov if variances else np.diagonal(cov, axis1=-2, axis2=-1)
    elif variances:
        place = np.arange(covs.shape[-1])
        covs[:, i, place, place] = cov
    else:
        covs[:, i] = cov


def stationary_law(problem: Problem, algorithm: Algorithm, *, client: int | None = None) -> Gaussian:
    """The law that a communication leaves unchanged, or the Gaussian of its moments where it is none.

    Parameters
    ----------
    problem, algorithm : as for `exact_law`
    client : int, optional
        The law of one client instead of the average. For federated algorithms it is the same law,
        because all clients coincide after a communication.

    Raises
    ------
    UnstableStepSize
        Beyond the stability limit, where there is none.
    ValueError
        For covariances beyond the memory limit, and results beyond the range of float64.
    NoExactLaw
        For schedules: the step size never settles.

    Warns
    -----
    theory.PrecisionWarning
        Where fewer than six digits are left, next to the stability limit.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> theory.stationary_law(problem, fs.FALD(0.1, local_steps=3)).mean.round(6)
    array([0.707974])
    """
    family, solved = _family(problem, algorithm, None, False)
    if client is not None:
        client = whole("client", client, 0, problem.n_clients - 1)
    warn_of_lost_digits(solved, algorithm)
    with _range(algorithm):
        mean, cov = family.stationary(solved, algorithm, client)
    variances = cov if cov.ndim == 1 else np.diagonal(cov)
    if not (np.isfinite(mean).all() and np.isfinite(cov).all() and (variances >= 0.0).all()):
        raise ValueError(f"step_size={algorithm.step_size!r}: the stationary law leaves the range of float64 "
                         f"or has no digit left next to the stability limit; {_why(False)}, or take a "
                         "smaller step size")
    return Gaussian(mean, cov)


def joint_law(problem: Problem, algorithm: Algorithm, n_steps: int, *, start: Any = None,
              allow_unstable: bool = False) -> JointLaw:
    """Moments of all clients together at every local step 0, ..., n_steps: what the lemmas speak about.

    Parameters
    ----------
    problem, algorithm, start, allow_unstable : as for `exact_law`
    n_steps : int
        Local steps, not rounds; of a sampler of one's own (`fedsim.sampler`) rounds, whose insides its law
        does not show.

    Raises
    ------
    ValueError
        Naming the numbers, where (n_steps + 1) covariances of size (N d, N d) need too much memory.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> law = theory.exact.joint_law(problem, fs.FALD(0.1, local_steps=3), n_steps=6)
    >>> law.n_clients, law.sync_steps.tolist(), law.mean.shape
    (2, [3, 6], (7, 2, 1))
    """
    family, solved = _family(problem, algorithm, start, allow_unstable)
    steps = whole("n_steps", n_steps)
    size = problem.n_clients * problem.dim
    refuse_bytes(8.0 * ((steps + 1) * 2 + 6) * size * size, f"n_steps={steps} joint laws of "
                 f"{problem.n_clients} clients at dimension {problem.dim}", "ask for fewer steps "
                 "or use exact_law")
    with _range(algorithm):
        mean, cov = start_of(problem, algorithm, start)
        law = family.joint(solved, algorithm, steps, mean, None if cov is None else matrix_of(cov))
    _finite(law.cov, law.steps, algorithm, allow_unstable)
    return attach(law, Provenance.of(problem, algorithm, start))


def sample_rounds(problem: Problem, algorithm: Algorithm, n_rounds: int, n_replicas: int, seed: int, *,
                  start: Any = None, record: Any = None, allow_unstable: bool = False) -> Array:
    """Independent replicas of the average iterate at the ends of rounds, exact in law.

    Local steps are collapsed into one Gaussian draw a round (and many rounds into one, where the map
    is the same for all replicas), so that this is no simulation of the algorithm; `fedsim.simulate` is.

    Parameters
    ----------
    problem, algorithm, start, allow_unstable : as for `exact_law`
    n_rounds, n_replicas : int
    seed : int
        Of NumPy's default generator.
    record : sequence of rounds, optional
        By default the last round alone is returned; else those of `fedsim.recorded_rounds`.

    Returns
    -------
    (n_replicas, n, d)
        n = 1, or ``len(recorded_rounds(n_rounds, record))``, which includes rounds 0 and n_rounds.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> theory.exact.sample_rounds(problem, fs.FALD(0.1, local_steps=3), 20, 100, seed=1, record=[10]).shape
    (100, 3, 1)
    """
    family, problem = _family(problem, algorithm, start, allow_unstable)
    kept, replicas = record if record is not None else (), whole("n_replicas", n_replicas, 1)
    generator = np.random.default_rng(whole("seed", seed))
    n_kept = 1 if record is None else n_recorded(n_rounds, kept)
    refuse_bytes(8.0 * replicas * n_kept * problem.dim, f"n_replicas={replicas} at {n_kept} rounds of "
                 f"dimension {problem.dim}", "draw fewer at a time")
    rounds = recorded_rounds(n_rounds, kept)
    mean, cov = start_of(problem, algorithm, start)
    out = np.empty((replicas, n_kept, problem.dim))
    block = max(1, 4_000_000 // (len(rounds) * problem.n_clients * problem.dim))
    with _range(algorithm):
        for first in range(0, replicas, block):
            size = min(block, replicas - first)
            points = np.broadcast_to(mean, (size, *mean.shape))
            if cov is not None:
                points = points + correlated(generator, size, cov)
            drawn = family.sample(problem, algorithm, rounds, points, generator)
            out[first:first + size] = drawn[:, -1:] if record is None else drawn
    if not np.isfinite(out).all():
        raise ValueError(f"step_size={algorithm.step_size!r}: a replica left the range of float64 within "
                         f"n_rounds={rounds[-1]}; {_why(allow_unstable)}")
    return out
