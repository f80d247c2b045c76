"""What FA-HMC's theorems are about: the coupled pair, single clients, trajectories, Gaussian maxima."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fedsim.problems.quadratic import Quadratic
from fedsim.settings.lazy_import import lazy
from fedsim.settings.validation import Array

from ..declare.bound import Bound
from ..exact.federated.fa_hmc import leapfrog
from ..exact.federated.flow import Flow
from ..exact.joint_laws import JointLaw
from ..judge.checking import Measured
from ..theorem_parts import CLIENTS, PROBLEM, TARGET, Source, about_minimizer, of_its_size
from .coupling import CouplingLaw, coupling_law

quad = lazy("scipy.integrate", "quad")
erf = lazy("scipy.special", "erf")

# --- the coupled pair

COUPLED = Source(CouplingLaw, "a theory.fa_hmc.CouplingLaw: the bound is about {meaning}",
                 lambda problem, algorithm, n_rounds, start: coupling_law(
                     problem, algorithm, n_rounds * algorithm.local_steps, start=start))
COUPLED.enter("coupling_sq",
              "E||theta_t - theta_t^pi||^2 of FA-HMC's average and the oracle coupled with it",
              lambda bound, law: Measured(law.distance_sq, law.steps, law.scale))
COUPLED.enter("main_part_sq", "E||(I)||^2, the second-order part of an FA-HMC update minus the oracle's",
              lambda bound, law: Measured(law.main_part, law.steps[:-1], law.scale))

# --- single clients


def moments_after(law: JointLaw, client: int) -> Array:
    """E||theta_{t+1}^c - minimizer||^2 after updates t = 0..n-1, before clients communicate, (n,)."""
    point, own = law.problem.minimizer, slice(client * law.dim, (client + 1) * law.dim)
    value = law.second_moment_about(point)[1:, client].copy()
    value[law.sync_steps - 1] = (((law.before_mean[:, client] - point) ** 2).sum(axis=1)
                                 + np.trace(law.before_cov[:, own, own], axis1=1, axis2=2))
    return value


def gradient_moments(law: JointLaw, client: int) -> Array:
    """E||grad f_c(theta_t^c)||^2 of the exact gradient where each update starts, (n+1,)."""
    value = law.gradient_second_moment()[:, client]
    noise = law.problem.noise_covariances
    return value if noise is None else np.maximum(value - np.trace(noise[client]), 0.0)


def _of_client(name: str, meaning: str, read: Callable[[JointLaw, int], Array], *, first: int = 0,
               steep: bool = False) -> None:
    """A moment of a client from local step `first` on, a difference of positions, or gradients (`steep`)."""
    def measured(bound: Bound, law: JointLaw) -> Measured:
        client, problem = bound.inputs["client"], law.problem
        value = read(law, client)
        size = float(law.second_moment_about(np.zeros(law.dim))[:, client].max()
                     + (problem.minimizer**2).sum() + (problem.minimizers[client] ** 2).sum())
        if steep:
            size *= float(np.linalg.norm(problem.dense_hessians[client], 2)) ** 2
        return Measured(value, law.steps[first:], max(float(np.abs(value).max(initial=0.0)), size))

    CLIENTS.enter(name, meaning, measured)


_of_client("client_second_moment", "E||theta_t^c - minimizer||^2 of one client where each update starts",
           lambda law, client: law.second_moment_about(law.problem.minimizer)[:, client])
_of_client("client_second_moment_after", "E||theta_{t+1}^c - minimizer||^2 of one client after each update",
           moments_after, first=1)
_of_client("client_gradient_moment", "E||grad f_c(theta_t^c)||^2 of one client where each update starts",
           gradient_moments, steep=True)


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
        reach = reach - k * eta * straight
        along = change * gap + reach * (momentum @ frame)
        total = along**2 + change**2 * own + reach**2 * momentum_variance
        if spread is not None:
            total = total + (update.kicked[0] ** 2).sum(axis=0) * spread
        out[:, k - 1] = total @ weight
    return out


def _leapfrog_deviation(bound: Bound, law: JointLaw, slope: bool = False) -> Measured:
    algorithm, problem, client = law.algorithm, law.problem, bound.inputs["client"]
    s = algorithm.shared_noise + (1.0 - algorithm.shared_noise) / problem.weights[client]
    value = travelled(problem, client, float(algorithm.schedule.largest), algorithm.leapfrog_steps,
                      law.mean[:, client], law.client_cov[:, client], np.zeros(law.dim), s,
                      straight=True, slope=slope)
    return of_its_size(value.max(axis=0), np.arange(1, algorithm.leapfrog_steps + 1))


CLIENTS.enter("leapfrog_deviation",
              "sup_t E||theta_{t,k}^c - theta_t^c - k eta p||^2 after k leapfrog steps",
              _leapfrog_deviation)
CLIENTS.enter("leapfrog_gradient_deviation",
              "sup_t E||grad f_c(theta_{t,k}^c) - grad f_c(theta_t^c) - k eta Hess f_c p||^2",
              partial(_leapfrog_deviation, slope=True))

# --- trajectories of given points, and the oracle's


def _displacement(bound: Bound, problem: Quadratic, slope: bool = False) -> Measured:
    inputs, d = bound.inputs, problem.dim
    value = travelled(problem, inputs["client"], inputs["step_size"], int(bound.rounds[-1]),
                      inputs["point"][None], np.zeros((1, d, d)), inputs["momentum"], 0.0, slope=slope)[0]
    return of_its_size(value[bound.rounds - 1], bound.rounds)


def _flow(bound: Bound, problem: Quadratic) -> tuple[Array, Array, Array, Array]:
    """Curvatures and eigenvectors of f, and along them what trajectories do, (times, d) each."""
    values, frame = np.linalg.eigh(np.tensordot(problem.weights, problem.dense_hessians, axes=1))
    change, reach = Flow(bound.inputs["times"][:, None]).motion(values, False).change[0]
    return values, frame, change, reach


def _flow_distance(bound: Bound, problem: Quadratic) -> Measured:
    _, frame, change, reach = _flow(bound, problem)
    apart, push = bound.inputs["position_gap"] @ frame, bound.inputs["momentum_gap"] @ frame
    return of_its_size(np.linalg.norm((1.0 + change) * apart + reach * push, axis=1), bound.rounds)


def _oracle(bound: Bound, problem: Quadratic, *, straight: bool = False, slope: bool = False,
            largest: bool = False) -> Measured:
    """Moments of theta^pi(u) - theta^pi from the target, without u p, times Hess f, or times ||p||_max^2."""
    values, _, change, reach = _flow(bound, problem)
    reach = reach - bound.inputs["times"][:, None] * straight
    weight = values**2 if slope else np.ones_like(values)
    still, moving = change**2 / values @ weight, reach**2 @ weight
    if largest:  # E p_i^2 max p^2 = E ||p||^2 max p^2 / d, the same for every coordinate
        d = problem.dim
        still, moving = still * largest_square(d), moving * (largest_square(d) * (d + 2) / d)
    return of_its_size(still + moving, bound.rounds)


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


def _maxima(bound: Bound, problem: Quadratic) -> Measured:
    d, variance = problem.dim, bound.inputs["momentum_variance"]
    square = largest_square(d)
    value = np.array([square * variance, (d + 2) * square * variance**2, largest_square(d, 2) * variance**2])
    return of_its_size(value[bound.rounds], bound.rounds)


PROBLEM.enter("leapfrog_displacement", "E||q_k - q_0||^2 after k leapfrog steps of a client", _displacement)
PROBLEM.enter("leapfrog_gradient_displacement",
              "E||grad f_c(q_k) - grad f_c(q_0)||^2 after k leapfrog steps of a client",
              partial(_displacement, slope=True))
PROBLEM.enter("flow_distance", "distance of two exact trajectories of f", _flow_distance)
PROBLEM.enter("oracle_deviation", "E||theta^pi(u) - theta^pi - u p||^2 of a trajectory from the target",
              partial(_oracle, straight=True))
PROBLEM.enter("oracle_reach", "E||theta^pi(u) - theta^pi||^2 ||p||_max^2 of a trajectory from the target",
              partial(_oracle, largest=True))
PROBLEM.enter("oracle_gradient_deviation",
              "E||grad f(theta^pi(u)) - grad f(theta^pi) - u Hess f p||^2 of a trajectory from the target",
              partial(_oracle, straight=True, slope=True))
PROBLEM.enter("gaussian_maxima",
              "E||p||_max^2, E||p||^2 ||p||_max^2 and E||p||_max^4 of a Gaussian momentum",
              _maxima)

TARGET.enter("target_second_moment", "E||theta - minimizer||^2 of the target", about_minimizer)
