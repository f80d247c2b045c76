"""What FA-HMC's theorems are about: the coupled pair, single clients, trajectories, Gaussian maxima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import erf

from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array

from ..bound import Bound
from ..checking import Measured, quantity, require_target
from ..exact import joint_law
from ..exact.federated.fa_hmc import leapfrog
from ..exact.federated.flow import Flow
from ..exact.federated.joint import JointLaw
from ..tuning import rounds_to
from .coupling import CouplingLaw, coupling_law

# --- the coupled pair


def _coupled(problem: Any, algorithm: Any, bound: Bound, n_rounds: int, start: Any,
             record: Any) -> CouplingLaw:
    return coupling_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)


def _of_coupling(name: str, meaning: str, read: Callable[[CouplingLaw], tuple[Array, np.ndarray]]) -> None:
    def measure(bound: Bound, law: Any, level: float) -> Measured:
        if not isinstance(law, CouplingLaw):
            raise ValueError(f"law={law!r} must be a theory.fa_hmc.CouplingLaw: the bound is about {meaning}")
        return Measured(*read(law), law.scale)

    quantity(name, meaning, measure, _coupled)


_of_coupling("coupling_sq", "E||theta_t - theta_t^pi||^2 of FA-HMC's average and the oracle coupled with it",
             lambda law: (law.distance_sq, law.steps))
_of_coupling("main_part_sq", "E||(I)||^2, the second-order part of an FA-HMC update minus the oracle's",
             lambda law: (law.main_part, law.steps[:-1]))

# --- single clients


def _joint(problem: Any, algorithm: Any, bound: Bound, n_rounds: int, start: Any, record: Any) -> JointLaw:
    return joint_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)


def _of_client(name: str, meaning: str, read: Callable[[Bound, JointLaw, int], tuple[Array, np.ndarray]],
               *, size: Callable[[JointLaw, int], float] = lambda law, client: 0.0) -> None:
    def measure(bound: Bound, law: Any, level: float) -> Measured:
        if not isinstance(law, JointLaw):
            raise ValueError(f"law={law!r} must be a theory.exact.JointLaw: the bound is about {meaning}")
        client = bound.inputs["client"]
        value, rounds = read(bound, law, client)
        return Measured(value, rounds, max(float(np.abs(value).max()), size(law, client)))

    quantity(name, meaning, measure, _joint)


def _position_size(law: JointLaw, client: int) -> float:
    """Squared size of the positions whose difference a second moment is."""
    return float(law.second_moment_about(np.zeros(law.dim))[:, client].max()
                 + (law.problem.minimizer**2).sum() + (law.problem.minimizers[client] ** 2).sum())


def _gradient_size(law: JointLaw, client: int) -> float:
    """The same as the client's gradient sees it."""
    return _position_size(law, client) * float(np.linalg.norm(law.problem.dense_hessians[client], 2)) ** 2


def second_moments(law: JointLaw, client: int, point: Array) -> Array:
    """E||theta_t^c - point||^2 where each update starts, (n+1,)."""
    return law.second_moment_about(point)[:, client]


def moments_after(law: JointLaw, client: int, point: Array) -> Array:
    """E||theta_{t+1}^c - point||^2 after updates t = 0..n-1, before clients communicate, (n,)."""
    value = second_moments(law, client, point)[1:].copy()
    d = law.dim
    for i, step in enumerate(law.sync_steps):
        own = law.before_cov[i][client * d:(client + 1) * d, client * d:(client + 1) * d]
        value[step - 1] = ((law.before_mean[i, client] - point) ** 2).sum() + np.trace(own)
    return value


def gradient_moments(law: JointLaw, client: int) -> Array:
    """E||grad f_c(theta_t^c)||^2 of the exact gradient where each update starts, (n+1,)."""
    value = law.gradient_second_moment()[:, client]
    noise = law.problem.noise_covariances
    return value if noise is None else np.maximum(value - np.trace(noise[client]), 0.0)


_of_client("client_second_moment", "E||theta_t^c - minimizer||^2 of one client where each update starts",
           lambda bound, law, c: (second_moments(law, c, law.problem.minimizer), law.steps),
           size=_position_size)
_of_client("client_second_moment_after", "E||theta_{t+1}^c - minimizer||^2 of one client after each update",
           lambda bound, law, c: (moments_after(law, c, law.problem.minimizer), law.steps[1:]),
           size=_position_size)
_of_client("client_gradient_moment", "E||grad f_c(theta_t^c)||^2 of one client where each update starts",
           lambda bound, law, c: (gradient_moments(law, c), law.steps), size=_gradient_size)


def travelled(problem: Quadratic, client: int, eta: float, steps: int, mean: Array, cov: Array,
              momentum: Array, momentum_variance: float, *, straight: bool = False,
              slope: bool = False) -> Array:
    """E||q_k - q_0||^2 after k = 1..steps leapfrog steps of a client, (n, steps) for n random starts.

    Starts have moments `mean` (n, d), `cov` (n, d, d); momenta have mean `momentum` (d,) and covariance
    `momentum_variance` times the identity. `straight` takes k eta p_0 off; `slope` multiplies by the
    client's Hessian.
    """
    values, frame = np.linalg.eigh(problem.dense_hessians[client])
    noise = problem.noise_covariances
    gap = (mean - problem.minimizers[client]) @ frame
    own = np.einsum("ia,nij,ja->na", frame, cov, frame)
    spread = None if noise is None else np.einsum("ia,ij,ja->a", frame, noise[client], frame)
    weight = values**2 if slope else np.ones_like(values)
    out = np.empty((len(mean), steps))
    for k in range(1, steps + 1):
        update = leapfrog(eta, k).motion(values, spread is not None)
        change, reach = update.change[0]
        if straight:
            reach = reach - k * eta
        along = change * gap + reach * (momentum @ frame)
        total = along**2 + change**2 * own + reach**2 * momentum_variance
        if spread is not None:
            total = total + (update.kicked[0] ** 2).sum(axis=0) * spread
        out[:, k - 1] = total @ weight
    return out


def _leapfrog_deviation(slope: bool) -> Callable[[Bound, JointLaw, int], tuple[Array, np.ndarray]]:
    def read(bound: Bound, law: JointLaw, client: int) -> tuple[Array, np.ndarray]:
        algorithm, problem = law.algorithm, law.problem
        s = algorithm.shared_noise + (1.0 - algorithm.shared_noise) / problem.weights[client]
        value = travelled(problem, client, float(algorithm.schedule.largest), algorithm.leapfrog_steps,
                          law.mean[:, client], law.client_cov[:, client], np.zeros(law.dim), s,
                          straight=True, slope=slope)
        return value.max(axis=0), np.arange(1, algorithm.leapfrog_steps + 1)

    return read


_of_client("leapfrog_deviation", "sup_t E||theta_{t,k}^c - theta_t^c - k eta p||^2 after k leapfrog steps",
           _leapfrog_deviation(False))
_of_client("leapfrog_gradient_deviation",
           "sup_t E||grad f_c(theta_{t,k}^c) - grad f_c(theta_t^c) - k eta Hess f_c p||^2",
           _leapfrog_deviation(True))

# --- trajectories of given points, and the oracle's


def _problem(problem: Any, algorithm: Any, bound: Bound, n_rounds: int, start: Any, record: Any) -> Any:
    return problem


def _of_problem(name: str, meaning: str, read: Callable[[Bound, Quadratic], Array],
                rounds: Callable[[Bound], np.ndarray] = lambda bound: bound.rounds) -> None:
    def measure(bound: Bound, law: Any, level: float) -> Measured:
        if not isinstance(law, Quadratic):
            raise ValueError(f"law={law!r} must be the fedsim.Quadratic that is meant: the bound is about "
                             f"{meaning}")
        value = np.atleast_1d(read(bound, law))
        return Measured(value, rounds(bound), float(np.abs(value).max()))

    quantity(name, meaning, measure, _problem)


def _displacement(bound: Bound, problem: Quadratic, slope: bool = False) -> Array:
    given = bound.inputs
    d = problem.dim
    value = travelled(problem, given["client"], given["step_size"], int(bound.rounds[-1]),
                      given["point"][None], np.zeros((1, d, d)), given["momentum"], 0.0, slope=slope)[0]
    return value[bound.rounds - 1]


def _frame(problem: Quadratic) -> tuple[Array, Array]:
    """Curvatures and eigenvectors of f."""
    mean = problem.mean_hessian
    found = np.linalg.eigh(mean if mean.ndim == 2 else np.diag(mean))
    return found.eigenvalues, found.eigenvectors


def _flow_distance(bound: Bound, problem: Quadratic) -> Array:
    values, frame = _frame(problem)
    apart, push = bound.inputs["position_gap"] @ frame, bound.inputs["momentum_gap"] @ frame
    found = []
    for time in bound.inputs["times"]:
        change, reach = Flow(float(time)).motion(values, False).change[0]
        found.append(np.linalg.norm((1.0 + change) * apart + reach * push))
    return np.array(found)


def _oracle(bound: Bound, problem: Quadratic, *, straight: bool, slope: bool, largest: bool) -> Array:
    """Moments of theta^pi(u) - theta^pi from the target, without u p, times Hess f, or times ||p||_max^2."""
    values, _ = _frame(problem)
    found = []
    for time in bound.inputs["times"]:
        change, reach = Flow(float(time)).motion(values, False).change[0]
        if straight:
            reach = reach - time
        weight = values**2 if slope else np.ones_like(values)
        still, moving = weight @ (change**2 / values), weight @ reach**2
        if largest:  # E p_i^2 max p^2 = E ||p||^2 max p^2 / d, the same for every coordinate
            d = problem.dim
            mixed = largest_square(d) * (d + 2) / d
            still, moving = still * largest_square(d), moving * mixed
        found.append(still + moving)
    return np.array(found)


def largest_square(dim: int, power: int = 1) -> float:
    """E (max_i p_i^2)^power of a standard Gaussian vector in `dim` dimensions, by quadrature.

    >>> largest_square = theory.fa_hmc.quantities.largest_square
    >>> round(largest_square(1), 9), round(largest_square(1, 2), 9)
    (1.0, 3.0)
    """
    def tail(x: float) -> float:
        inside = erf(np.sqrt(x / 2.0))
        return power * x ** (power - 1) * (1.0 - inside**dim)

    middle = 2.0 * np.log(2.0 * dim) + 2.0
    return float(quad(tail, 0.0, middle, limit=200)[0] + quad(tail, middle, np.inf, limit=200)[0])


def _maxima(bound: Bound, problem: Quadratic) -> Array:
    d, variance = problem.dim, bound.inputs["momentum_variance"]
    square = largest_square(d)
    return np.array([square * variance, (d + 2) * square * variance**2,
                     largest_square(d, 2) * variance**2])[bound.rounds]


_of_problem("leapfrog_displacement", "E||q_k - q_0||^2 after k leapfrog steps of a client", _displacement)
_of_problem("leapfrog_gradient_displacement",
            "E||grad f_c(q_k) - grad f_c(q_0)||^2 after k leapfrog steps of a client",
            lambda bound, problem: _displacement(bound, problem, slope=True))
_of_problem("flow_distance", "distance of two exact trajectories of f", _flow_distance)
_of_problem("oracle_deviation", "E||theta^pi(u) - theta^pi - u p||^2 of a trajectory from the target",
            lambda bound, problem: _oracle(bound, problem, straight=True, slope=False, largest=False))
_of_problem("oracle_reach", "E||theta^pi(u) - theta^pi||^2 ||p||_max^2 of a trajectory from the target",
            lambda bound, problem: _oracle(bound, problem, straight=False, slope=False, largest=True))
_of_problem("oracle_gradient_deviation",
            "E||grad f(theta^pi(u)) - grad f(theta^pi) - u Hess f p||^2 of a trajectory from the target",
            lambda bound, problem: _oracle(bound, problem, straight=True, slope=True, largest=False))
_of_problem("gaussian_maxima", "E||p||_max^2, E||p||^2 ||p||_max^2 and E||p||_max^4 of a Gaussian momentum",
            _maxima)


def _about_minimizer(bound: Bound, target: Any, level: float) -> Measured:
    if not isinstance(target, Gaussian) or bound.inputs.get("minimizer") is None:
        raise ValueError(f"law={target!r} must be the target, a fedsim.Gaussian, and minimizer known")
    require_target(bound, target)
    spread = float(target.variances.sum() + ((target.mean - bound.inputs["minimizer"]) ** 2).sum())
    return Measured(np.array([spread]), np.array([0]), spread)


quantity("target_second_moment", "E||theta - minimizer||^2 of the target", _about_minimizer,
         lambda problem, algorithm, bound, n_rounds, start, record: algorithm.target(problem))


def _rounds_needed(bound: Bound, law: Any, level: float) -> Measured:
    if law is None:
        raise ValueError("law=None: the accuracy of the bound is never reached")
    return Measured(np.array([float(law)]), bound.rounds, float(law))


quantity("rounds_to_w2", "first communication at which W2 to the target is at most eps", _rounds_needed,
         lambda problem, algorithm, bound, n_rounds, start, record: rounds_to(
             problem, algorithm, bound.inputs["eps"], start=start))
