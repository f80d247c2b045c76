"""What the statements about decentralized algorithms are about, read from exact laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.fa_ld import FALD
from fedsim.algorithms.gossip import Decentralized
from fedsim.interfaces import Problem, start_of
from fedsim.laws.law import Gaussian, Law
from fedsim.laws.moments import w2_of
from fedsim.problems.quadratic import Quadratic
from fedsim.provenance import Provenance, attach
from fedsim.settings.validation import Array, instance, shape, shown

from ..declare.bound import Bound
from ..exact import exact_law, joint_law, stationary_law
from ..exact.families import ExactFamily
from ..exact.gossip import GossipJointLaw
from ..judge.checking import AT_LEAST, Measured, is_distance, proved_of, quantity
from ..recursions.stationary import measure_stationary
from ..theorem_parts import TARGET, Source, about_minimizer, of_its_size
from .schemes import Coupling, NoiseFree, Spread, coupling, fixed_point
from .sghmc.setting import momentum


def _same_goal(bound: Bound, law: Law) -> Gaussian:
    goal = bound.target if bound.target is not None else law.target
    if goal is None:
        raise ValueError("target=None: neither the bound nor the law knows the target of the distances")
    if law.target is not None and law.target.w2(goal) > 1e-7 * np.sqrt(goal.variances.sum()):
        raise ValueError(f"target of the law differs from that of the bound by W2={law.target.w2(goal):.3g}; "
                         "they must be the same")
    return goal


def clients_w2(law: Law, target: Gaussian | None = None) -> Array:
    """Mean over clients of their W2 distances to the target at each recorded round, (n,).

    Parameters
    ----------
    law : fedsim.Law or Run
        Of a decentralized algorithm: with the laws of its clients.
    target : fedsim.Gaussian, optional
        The law's own by default.

    Returns
    -------
    (n,) in units of length, one per recorded round.

    Raises
    ------
    ValueError
        For a law without the laws of clients, or without a target where none is given.

    Source: the left side of DE-SGLD Theorem 1, equation (20).

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> law = theory.exact_law(problem, algorithm, 100, record=[0, 100])
    >>> theory.de_sgld.clients_w2(law).round(3).tolist()
    [0.601, 0.039]
    """
    if not isinstance(law, Law) or not law.clients:
        raise ValueError(f"law={shown(law)} must be a fedsim.Law with the laws of clients, of a "
                         "decentralized algorithm")
    goal = instance("target", target, Gaussian, type(None)) or law.target
    if goal is not None:
        shape("target.mean", goal.mean, (law.dim,), " as the law has it")
    covs = [client.cov for client in law.clients]
    if goal is None or any(cov is None or cov.ndim == 2 for cov in covs):
        return np.mean([client.w2(goal) for client in law.clients], axis=0)
    means = np.stack([client.mean for client in law.clients])
    return w2_of(means, np.stack(covs), goal.mean, goal.cov).mean(axis=0)  # type: ignore[arg-type]


def _measure_clients(bound: Bound, law: Any, level: float) -> Measured:
    instance("law", law, Law, advice="the bound is about W2 of its clients")
    goal = _same_goal(bound, law)
    value = clients_w2(law, goal)
    scale = max(float(value.max()), float(np.sqrt(goal.variances.sum())))
    note = "" if law.is_gaussian else ("the laws are not Gaussian: their W2 are those of Gaussians with the "
                                       "same moments, lower bounds of the true ones")
    high = None
    if bound.kind == "lower" and not all(is_distance(one) for one in (law, *law.clients)):
        high, note = np.full(len(value), np.inf), note or AT_LEAST
    if not all(hasattr(client, "w2_interval") for client in law.clients):
        return Measured(value, law.rounds, scale, high=high, note=note)
    each = 1.0 - (1.0 - level) / (len(value) * len(law.clients))
    band = np.mean([client.w2_interval(each) for client in law.clients], axis=0)  # type: ignore[attr-defined]
    proved = np.mean([proved_of(client, len(value) * len(law.clients)) for client in law.clients], axis=0)
    said = f"measured by replicas: violated only where the {level:g} band is"
    return Measured(value, law.rounds, scale, band[:, 0], band[:, 1] if high is None else high,
                    ". ".join(filter(None, (note, said))), proved=proved)


quantity("w2_clients", "mean over clients of W2 between a client's law and the target", _measure_clients,
         exact_law, of_run=True)


CLIENTS = Source(GossipJointLaw, "the theory.exact.joint_law of a decentralized algorithm: the bound is "
                 "about {meaning}", lambda problem, algorithm, n_rounds, start: joint_law(
                     problem, algorithm, n_rounds, start=start))


def _from_joint(name: str, meaning: str, read: Callable[[Any], Array]) -> None:
    """Register a quantity that is read from the joint law of the clients."""
    CLIENTS.enter(name, meaning, lambda bound, law: of_its_size(read(law), law.steps))


_from_joint("component_gradients", "sum_i E||grad f_i(x_i)||^2, exact gradients of the components",
            lambda law: law.exact_gradient_second_moment().sum(axis=1))
_from_joint("disagreement", "sum_i E||x_i - average||^2 of the clients",
            lambda law: law.n_clients * law.divergence())
_from_joint("gradient_error", "E||(1/N) sum_i [grad f_i(average) - grad f_i(x_i)]||^2",
            lambda law: law.gradient_error_second_moment())
_from_joint("relative_noise", "max_i E||gradient noise of f_i||^2 / (1 + E||x_i||^2) of the clients",
            lambda law: (law.noise_second_moment
                         / (1.0 + law.second_moment_about(np.zeros(law.dim)))).max(axis=1))
_from_joint("velocities", "sum_i E||v_i||^2 of all clients",
            lambda law: law.velocity_second_moment.sum(axis=1))
_from_joint("positions", "sum_i E||x_i||^2 of all clients",
            lambda law: np.square(law.mean).sum(axis=(1, 2)) + np.einsum("kii->k", law.cov))


def arguments(problem: Problem, algorithm: Decentralized) -> dict[str, Any]:
    """alpha, beta and velocities for `theory.de_sgld.coupling`, of a run of either algorithm."""
    step = float(algorithm.schedule.largest)
    if not isinstance(algorithm, DESGHMC):
        return {"alpha": step}
    return {"alpha": step**2, "beta": momentum(algorithm), "velocities": algorithm.start_velocities(problem)}


COUPLED = Source(Coupling, "a theory.de_sgld.Coupling: the bound is about {meaning}",
                 lambda problem, algorithm, n_rounds, start: coupling(
                     problem, algorithm, n_rounds, start, **arguments(problem, algorithm)))


def _from_coupling(name: str, meaning: str) -> None:
    """Register the field `name` of `Coupling`."""
    COUPLED.enter(name, meaning, lambda bound, law: of_its_size(getattr(law, name), law.rounds))


_from_coupling("average_to_euler", "E||average - Euler scheme with the same noise||^2")
_from_coupling("extrapolated", "E||x + beta/(1-beta) (x - x_before)||^2 of all clients")
_from_coupling("average_to_damped", "E||average - Euler scheme with the same noise, damped||^2")
_from_coupling("damped_to_euler", "E||damped Euler scheme - full Euler scheme||^2")
replace(COUPLED, words="a theory.de_sgld.Coupling: the bound is on V_k of (88)").enter(
    "lyapunov", "V_k of the heavy-ball recursion: b E[Fbar(x_before) - min] + E||extrapolated - x_a||^2",
    lambda bound, law: of_its_size(bound.inputs["weight"] * law.energy + law.distance, law.rounds))


def _pooled(problem: Problem) -> Quadratic:
    """One client with the mean of all; refused where gradients are not affine."""
    solved = ExactFamily().solvable(problem)
    return Quadratic(solved.mean_hessian[None], solved.minimizer[None])


def euler_law(problem: Problem, algorithm: Decentralized, bound: Bound, n_rounds: int, start: Any,
              record: Any) -> Law:
    """The Euler scheme of step eta/N on f, as a federated algorithm of one client."""
    whole = _pooled(problem)
    point, cov = start_of(problem, algorithm, start)
    begin: Any = np.atleast_2d(point).mean(axis=0)
    if cov is not None:
        begin = Gaussian(begin, cov)
    step = float(algorithm.schedule.largest) / problem.n_clients
    law = exact_law(whole, FALD(step), n_rounds, start=begin, record=record, allow_unstable=True)
    of = Provenance.of(problem, algorithm, start)
    return attach(law, Provenance(of.problem, None, of.start))  # of no algorithm that the paper proposes


def _of_euler(bound: Bound, law: Law) -> Measured:
    goal = _same_goal(bound, law)
    value = law.w2(goal)
    return Measured(value, law.rounds, max(float(value.max()), float(np.sqrt(goal.variances.sum()))))


Source(Law, "the fedsim.Law of the Euler scheme", euler_law, False).enter(
    "w2_of_euler", "W2 between the Euler scheme that the average follows and the target", _of_euler)


def _stationary_euler(problem: Problem, algorithm: Decentralized) -> Any:
    """The stationary law of `euler_law`."""
    whole = _pooled(problem)
    return stationary_law(whole, FALD(float(algorithm.schedule.largest) / problem.n_clients))


quantity("stationary_w2_of_euler", "W2 between the stationary law of the Euler scheme that the average "
         "follows and the target", measure_stationary, _stationary_euler)


replace(TARGET, words="the target, a fedsim.Gaussian, with a known minimizer").enter(
    "target_moment", "E||X - minimizer||^2 under the target", about_minimizer)


def _fixed_point_moment(bound: Bound, law: Spread) -> Measured:
    joint, alpha = law.joint, bound.inputs["alpha"]
    # the joint law's problem holds the components themselves, with weights 1/N
    own = fixed_point(joint.problem, joint.algorithm, alpha * joint.n_clients)
    if np.shape(law.fixed) != own.shape or np.abs(law.fixed - own).max() > 1e-9 * np.abs(own).max():
        raise ValueError(f"fixed={law.fixed!r} must be the fixed point at alpha={alpha:g}, {own!r}")
    value = np.square(joint.mean - law.fixed).sum(axis=(1, 2)) + np.einsum("kii->k", joint.cov)
    return Measured(value, joint.steps, float(value.max() + np.square(law.fixed).sum()))


Source(Spread, "a theory.de_sgld.Spread: the bound is about a fixed point",
       lambda problem, algorithm, bound, n_rounds, start: Spread(
           joint_law(problem, algorithm, n_rounds, start=start),
           fixed_point(problem, algorithm, bound.inputs["alpha"])), False).enter(
    "fixed_point_moment", "sum_i E||x_i - x_alpha,i||^2 to the fixed point of the noise-free iteration",
    _fixed_point_moment)


def _fixed_point_distance(bound: Bound, law: NoiseFree) -> Measured:
    fixed = fixed_point(law.problem, law.algorithm, bound.inputs["alpha"])
    distance = float(np.linalg.norm(fixed - law.problem.curvature_problem().minimizer))
    return Measured(np.array([distance]), np.array([0]), max(distance, float(np.linalg.norm(fixed))))


Source(NoiseFree, "a theory.de_sgld.NoiseFree: the bound is on its fixed point", NoiseFree, False).enter(
    "fixed_point_distance", "||x_alpha - x^*|| of the fixed point of the noise-free iteration",
    _fixed_point_distance)
