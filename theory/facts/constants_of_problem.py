"""Constants: what a theorem needs to know of a problem, its start and the potentials followed.

Which potentials an algorithm follows is its convention, an attribute of its class:

* "federated": f_(c), whose weighted average is f (FA-LD, FA-HMC);
* "components": f_i = w_i f_(i), whose sum is f (decentralized algorithms);
* "global": f itself (stale gradients), of the pooled data.

`theory.potentials` has what is known of each class of problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from fedsim.interfaces import Algorithm, Problem, start_of, validate_sizes
from fedsim.laws.law import Gaussian, NoTarget
from fedsim.provenance import Provenance, attach
from fedsim.settings.alignment import align_fields, aligned
from fedsim.settings.validation import (
    array,
    client_weights,
    instance,
    nonnegative,
    one_of,
    positive,
    read_only,
    set_fields,
    shape,
    whole,
)

from ..float_range import float64_range
from .potentials_of_problem import CONVENTIONS, Potentials, followed, potentials

__all__ = ["Constants", "Potentials", "constants", "potentials"]


def _are_several(value: object) -> bool:
    """Something with entries, rather than one number."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def _lengths(gradients: np.ndarray) -> np.ndarray:
    """Norms (N,) of rows, or of norms themselves."""
    return np.hypot.reduce(np.abs(np.atleast_2d(gradients.T).T), axis=1)


NO_BEND = "Hessian-Lipschitz constant not known"
"""What a hypothesis says where `hessian_smoothness` is needed and None."""
INITIAL = ("initial_distance", "initial_second_moment", "initial_w2", "initial_spread")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Constants:
    """Constants of the potentials that an algorithm follows, and of its start.

    What is left out is unknown: a theorem that needs it says so. Two exceptions: weights are uniform
    and gradients are exact unless given.

    Parameters
    ----------
    dim : int
        d.
    strong_convexity, smoothness : float
        m and L of every client's potential, 0 < m <= L.
    n_clients : int, optional
        N; taken from the first per-client argument, else 1.
    weights : (N,), optional
    gradient_at_minimizer : (N, d), or norms (N,), optional
        Of every client's potential at the global minimizer.
    heterogeneity : float, optional
        max_c of the norm of `gradient_at_minimizer`, from which it is taken when not given.
    gradient_noise_traces : (N,) or float, optional
        Trace of every client's gradient noise covariance, E||noise||^2. Theorems derive their own
        sigma from it.
    noise_growth : float, optional
        C of E||noise||^2 <= C (1 + ||x||^2) for every client's potential at every point x; where it is not
        given, the noise is bounded by `gradient_noise_traces` at every point.
    initial_distance : float, optional
        sqrt(E||theta_0 - theta_*||^2) to the global minimizer theta_*.
    initial_second_moment : float, optional
        E||theta_0||^2, about the origin; with a start per client the mean over clients.
    initial_spread : float
        (1/N) sum_c E||theta_0^c - average||^2; the other distances are then those of the average.
    gaps_at_origin : (N,), optional
        f_c(0) - min f_c of every client's potential.
    initial_w2 : float, optional
        W2 between the law of the start and the target.
    minimizer : (d,), optional
        theta_*.
    target : Gaussian, optional
    convention : "federated", "components" or "global"
    hessian_smoothness : float, optional
        L_H: |(Hess f_c(x) - Hess f_c(y)) u| <= L_H |x-y| |u|_max for every client's potential (FA-HMC
        Assumption 3.3; in the Euclidean norm of u it is one, too). 0 for quadratics; what is not known is
        None, never 0.
    off_target : str
        Why the gradients followed are not those of the target, "" where they are; else no statement about
        the target is made.

    Attributes
    ----------
    of : fedsim.provenance.Provenance
        Problem and start where `theory.constants` found them; not known for what was made or changed by hand.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> theory.Constants(dim=2, strong_convexity=1.0, smoothness=4.0, heterogeneity=0.5).condition_number
    4.0
    """

    dim: int
    strong_convexity: float
    smoothness: float
    n_clients: int | None = None
    weights: Any = None
    gradient_at_minimizer: Any = None
    heterogeneity: float | None = None
    gradient_noise_traces: Any = 0.0
    noise_growth: float | None = None
    initial_distance: float | None = None
    initial_second_moment: float | None = None
    initial_w2: float | None = None
    initial_spread: float = 0.0
    gaps_at_origin: Any = None
    minimizer: Any = None
    target: Gaussian | None = None
    convention: str = "federated"
    hessian_smoothness: float | None = None
    off_target: str = ""
    of: Provenance = field(init=False, default=Provenance())

    def __post_init__(self) -> None:
        set_fields(self, dim=whole("dim", self.dim, 1), **{
            name: positive(name, getattr(self, name)) for name in ("strong_convexity", "smoothness")})
        if self.strong_convexity > self.smoothness * (1.0 + 1e-12):
            raise ValueError(f"strong_convexity={self.strong_convexity:g} must be at most "
                             f"smoothness={self.smoothness:g}")
        for name in ("heterogeneity", "hessian_smoothness", "noise_growth", *INITIAL):
            if getattr(self, name) is not None:
                set_fields(self, **{name: nonnegative(name, getattr(self, name))})
        one_of("convention", self.convention, CONVENTIONS)
        instance("target", self.target, Gaussian, type(None))
        instance("off_target", self.off_target, str)
        align_fields(self, "weights", "gradient_at_minimizer", "gradient_noise_traces", "gaps_at_origin")
        gradients, minimizer = aligned(("gradient_at_minimizer", self.gradient_at_minimizer, 1),
                                       ("minimizer", self.minimizer, 0))
        if minimizer is not None:
            minimizer = shape("minimizer", array("minimizer", minimizer, 1), (self.dim,))
        set_fields(self, gradient_at_minimizer=gradients, minimizer=minimizer)
        self._per_client()

    def _per_client(self) -> None:
        """Normalise what there is one of per client."""
        sizes = [len(value) for value in (self.weights, self.gradient_at_minimizer,
                                          self.gradient_noise_traces) if _are_several(value)]
        n_clients = self.n_clients if self.n_clients is not None else next(iter(sizes), 1) or 1
        n_clients = whole("n_clients", n_clients, 1)
        set_fields(self, n_clients=n_clients, weights=client_weights(self.weights, n_clients))
        traces = self.gradient_noise_traces
        if not _are_several(traces):
            traces = np.full(n_clients, nonnegative("gradient_noise_traces", traces))
        for name, values in (("gradient_noise_traces", traces), ("gaps_at_origin", self.gaps_at_origin)):
            if values is not None:
                each = shape(name, array(name, values, 1), (n_clients,))
                if (each < 0.0).any():
                    raise ValueError(f"{name} has a negative entry {each.min():g}; it must be at least 0")
                set_fields(self, **{name: each})
        if self.gradient_at_minimizer is None:
            return
        gradients = array("gradient_at_minimizer", self.gradient_at_minimizer, 1, 2)
        shape("gradient_at_minimizer", gradients, (n_clients, self.dim)[: gradients.ndim])
        set_fields(self, gradient_at_minimizer=gradients)
        largest = nonnegative("norm of gradient_at_minimizer", float(self.gradient_norms.max()))
        if self.heterogeneity is None:
            set_fields(self, heterogeneity=largest)
        elif self.heterogeneity < largest * (1.0 - 1e-9):
            raise ValueError(f"heterogeneity={self.heterogeneity:g} must be at least {largest:g}, the "
                             "largest norm in gradient_at_minimizer")

    @classmethod
    def _of(cls, **found: Any) -> Constants:
        """Constants that `constants` found, trusted where they have the form and the signs that they must.

        All else, as potentials that a user registered may give, is refused by `Constants`, by name.
        """
        made: dict[str, Any] = {one.name: one.default for one in fields(cls)} | found
        n, dim = made["n_clients"], made["dim"]
        sizes = {"weights": (n,), "gradient_noise_traces": (n,), "gaps_at_origin": (n,),
                 "gradient_at_minimizer": (n, dim), "minimizer": (dim,)}
        for name, size in sizes.items():
            if found[name] is not None:
                made[name] = one = read_only(np.array(found[name]))
                if one.dtype != np.float64 or one.shape != size or not np.isfinite(one).all() or (
                        one.min() < 0.0 and name not in ("gradient_at_minimizer", "minimizer")):
                    return cls(**found)
        total, largest = made["weights"].sum(), float(_lengths(made["gradient_at_minimizer"]).max())
        numbers = [made[name] for name in ("hessian_smoothness", *INITIAL) if made[name] is not None]
        if not (0.0 < made["strong_convexity"] <= made["smoothness"] < np.inf and abs(total - 1.0) <= 1e-9
                and made["weights"].min() > 0.0 and all(0.0 <= one < np.inf for one in (*numbers, largest))):
            return cls(**found)
        constants = object.__new__(cls)
        vars(constants).update(made, weights=read_only(made["weights"] / total), heterogeneity=largest)
        return constants

    @property
    def condition_number(self) -> float:
        """kappa = L / m."""
        return self.smoothness / self.strong_convexity

    @property
    def gradient_norms(self) -> np.ndarray:
        """(N,) norms of the clients' gradients at the global minimizer."""
        return _lengths(self.need("gradient_at_minimizer"))

    def need(self, name: str) -> Any:
        """The constant of this name, or a ValueError when it is not known."""
        value = getattr(self, one_of("name", name, tuple(field.name for field in fields(self))))
        if value is None:
            raise ValueError(f"{name}=None is not known, and this theorem needs it: pass {name}=... to "
                             "theory.Constants, or use theory.constants(problem, algorithm, start)")
        return value

    def __repr__(self) -> str:
        shown = {"dim": self.dim, "n_clients": self.n_clients, "strong_convexity": self.strong_convexity,
                 "smoothness": self.smoothness, "condition_number": self.condition_number,
                 "heterogeneity": self.heterogeneity, "initial_distance": self.initial_distance,
                 "initial_w2": self.initial_w2}
        parts = ", ".join(f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}" for k, v in shown.items())
        known = "".join(f", {name}: {part.words}" for name, part in (
            ("problem", self.of.problem), ("start", self.of.start)) if part is not None)
        return f"Constants({parts}, convention={self.convention!r}{known})"


def refuse_off_target(known: Constants, who: str) -> None:
    """Raise ValueError, for a statement about the target, where the gradients are those of another law."""
    if known.off_target:
        raise ValueError(f"{known.off_target}; {who} is about the target")


def constants(problem: Problem, algorithm: Algorithm, start: Any = None) -> Constants:
    """Constants of the potentials that `algorithm` follows on `problem`, from `start`.

    Parameters
    ----------
    problem : a problem, e.g. `fedsim.Quadratic`
    algorithm : an algorithm, e.g. `fedsim.FALD`
        Its class decides the convention, its temperature the target.
    start : point (d,) or `fedsim.Gaussian`, or (N, d) for decentralized algorithms, optional
        As in `simulate`; the origin by default.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> found = theory.constants(problem, fs.FALD(0.1))
    >>> found.condition_number, found.heterogeneity, found.initial_distance
    (3.0, 0.75, 0.75)
    """
    validate_sizes(problem, algorithm, start)
    with float64_range("constants of a problem with these hessians, minimizers, weights and start"):
        return _constants(problem, algorithm, start)


def _constants(problem: Problem, algorithm: Algorithm, start: Any) -> Constants:
    convention = algorithm.convention
    facts = followed(problem, convention)
    low, high, gradients = facts.curvature[:, 0].min(), facts.curvature[:, 1].max(), facts.gradients
    traces, bend = facts.noise_traces, facts.hessian_smoothness
    weights = np.ones(1) if convention == "global" else problem.weights
    points, cov = start_of(problem, algorithm, start)
    mean = np.atleast_2d(points).mean(axis=0)
    trace = 0.0 if cov is None else float(cov.sum() if cov.ndim == 1 else np.trace(cov))
    try:
        goal = algorithm.target(problem)
    except NoTarget:
        goal = None
    square = float(np.square(points).sum(axis=-1).mean() + trace)
    distance = float(np.sqrt(((mean - facts.minimizer) ** 2).sum() + trace))
    if not (np.isfinite(square) and np.isfinite(distance)):
        size = max(float(np.abs(points).max()), float(np.sqrt(trace)), float(np.abs(facts.minimizer).max()))
        raise ValueError(f"start and minimizers of size {size:g} must be less than about 1e154 divided by "
                         "the root of the dimension: their squares leave the range of float64")
    if not (low > 0.0 and np.isfinite(high) and np.isfinite(gradients).all() and np.isfinite(traces).all()):
        raise ValueError(f"hessians with curvatures from {low:g} to {high:g}, minimizers up to "
                         f"{np.abs(facts.minimizer).max():g}, weights from {problem.weights.min():g} and "
                         f"gradient_noise have constants ({convention}) that float64 cannot hold; they must "
                         "be finite, and curvatures greater than 0; rescale the problem")
    begin = Gaussian._of(mean, np.zeros(problem.dim)) if cov is None else Gaussian(mean, cov)
    known = Constants._of(
        dim=problem.dim, strong_convexity=float(low), smoothness=float(high), n_clients=len(weights),
        weights=weights, gradient_at_minimizer=gradients, gradient_noise_traces=traces,
        initial_distance=distance, initial_second_moment=square,
        initial_w2=None if goal is None else begin.w2(goal),
        initial_spread=float(np.square(points - mean).sum(axis=-1).mean()),
        gaps_at_origin=facts.gaps_at_origin, minimizer=facts.minimizer, target=goal, convention=convention,
        hessian_smoothness=None if bend is None else float(bend.max()), off_target=facts.off_target)
    return attach(known, replace(Provenance.of(problem, algorithm, start), algorithm=None))
