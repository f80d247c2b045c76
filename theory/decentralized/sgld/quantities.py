"""What the statements about decentralized algorithms are about, read from exact laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.interfaces import start_of
from fedsim.laws.distance import w2_gaussian
from fedsim.laws.law import Gaussian, Law
from fedsim.problems.quadratic import Quadratic
from fedsim.provenance import Provenance, attach
from fedsim.settings.validation import Array

from ...bound import Bound
from ...checking import Measured, quantity, require_target
from ...exact import JointLaw, exact_law, joint_law
from ...exact.gossip import GossipJointLaw
from .coupling import Coupling, coupling


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
        raise ValueError(f"law={law!r} must be a fedsim.Law with the laws of clients, of a decentralized "
                         "algorithm")
    goal = target if target is not None else law.target
    covs = [client.cov for client in law.clients]
    if goal is None or any(cov is None or cov.ndim == 2 for cov in covs):
        return np.mean([client.w2(goal) for client in law.clients], axis=0)
    means = np.stack([client.mean for client in law.clients])
    return w2_gaussian(means, np.stack(covs), goal.mean, goal.cov).mean(axis=0)  # type: ignore[arg-type]


def _measure_clients(bound: Bound, law: Any, level: float) -> Measured:
    if not isinstance(law, Law):
        raise ValueError(f"law={law!r} must be a fedsim.Law or Run: the bound is about W2 of its clients")
    goal = _same_goal(bound, law)
    value = clients_w2(law, goal)
    scale = max(float(value.max()), float(np.sqrt(goal.variances.sum())))
    note = "" if law.is_gaussian else ("the laws are not Gaussian: their W2 are those of Gaussians with the "
                                       "same moments, lower bounds of the true ones")
    if not all(hasattr(client, "w2_interval") for client in law.clients):
        return Measured(value, law.rounds, scale, note=note)
    each = 1.0 - (1.0 - level) / (len(value) * len(law.clients))
    band = np.mean([client.w2_interval(each) for client in law.clients], axis=0)  # type: ignore[attr-defined]
    return Measured(value, law.rounds, scale, band[:, 0], band[:, 1],
                    f"measured by replicas: violated only where the {level:g} band is")


quantity("w2_clients", "mean over clients of W2 between a client's law and the target", _measure_clients,
         lambda problem, algorithm, bound, n_rounds, start, record: exact_law(
             problem, algorithm, n_rounds, start=start, record=record))


def from_joint(name: str, meaning: str, read: Callable[[GossipJointLaw], Array]) -> None:
    """Register a quantity that is read from the joint law of the clients."""
    def measure(bound: Bound, law: Any, level: float) -> Measured:
        if not isinstance(law, GossipJointLaw):
            raise ValueError(f"law={law!r} must be the theory.exact.joint_law of a decentralized algorithm: "
                             f"the bound is about {meaning}")
        value = read(law)
        return Measured(value, law.steps, float(value.max()))

    quantity(name, meaning, measure, lambda problem, algorithm, bound, n_rounds, start, record: joint_law(
        problem, algorithm, n_rounds, start=start))


def _disagreement(law: GossipJointLaw) -> Array:
    return law.n_clients * law.divergence()


from_joint("component_gradients", "sum_i E||grad f_i(x_i)||^2, exact gradients of the components",
           lambda law: law.exact_gradient_second_moment().sum(axis=1))
from_joint("disagreement", "sum_i E||x_i - average||^2 of the clients", _disagreement)
from_joint("gradient_error", "E||(1/N) sum_i [grad f_i(average) - grad f_i(x_i)]||^2",
           lambda law: law.gradient_error_second_moment())


def from_coupling(name: str, meaning: str, arguments: Callable[[Any, Any], dict[str, Any]]) -> None:
    """Register the field `name` of `coupling`; `arguments` of (problem, algorithm) are its alpha, ..."""
    def measure(bound: Bound, law: Any, level: float) -> Measured:
        if not isinstance(law, Coupling):
            raise ValueError(f"law={law!r} must be a theory.de_sgld.Coupling: the bound is about {meaning}")
        value = getattr(law, name)
        return Measured(value, law.rounds, float(value.max()))

    quantity(name, meaning, measure, lambda problem, algorithm, bound, n_rounds, start, record: coupling(
        problem, algorithm, n_rounds, start, **arguments(problem, algorithm)))


from_coupling("average_to_euler", "E||average - Euler scheme with the same noise||^2",
              lambda problem, algorithm: {"alpha": float(algorithm.schedule.largest)})


def euler_law(problem: Any, algorithm: Any, bound: Bound, n_rounds: int, start: Any, record: Any) -> Law:
    """The Euler scheme of step eta/N on f, as a federated algorithm of one client."""
    whole = Quadratic(problem.mean_hessian[None], problem.minimizer[None])
    point, cov = start_of(problem, algorithm, start)
    begin: Any = np.atleast_2d(point).mean(axis=0)
    if cov is not None:
        begin = Gaussian(begin, cov)
    step = float(algorithm.schedule.largest) / problem.n_clients
    law = exact_law(whole, FALD(step), n_rounds, start=begin, record=record, allow_unstable=True)
    of = Provenance.of(problem, algorithm, start)
    return attach(law, Provenance(of.problem, None, of.start))  # of no algorithm that the paper proposes


def _measure_euler(bound: Bound, law: Any, level: float) -> Measured:
    if not isinstance(law, Law):
        raise ValueError(f"law={law!r} must be the fedsim.Law of the Euler scheme")
    goal = _same_goal(bound, law)
    value = law.w2(goal)
    return Measured(value, law.rounds, max(float(value.max()), float(np.sqrt(goal.variances.sum()))))


quantity("w2_of_euler", "W2 between the Euler scheme that the average follows and the target", _measure_euler,
         euler_law)


def one_number(value: float) -> Measured:
    """A quantity without iterations, at round 0."""
    return Measured(np.array([value]), np.array([0]), abs(value))


def _target_moment(bound: Bound, law: Any, level: float) -> Measured:
    mode = bound.inputs.get("minimizer")
    if not isinstance(law, Gaussian) or mode is None:
        raise ValueError(f"law={law!r} must be the target, a fedsim.Gaussian, with a known minimizer")
    require_target(bound, law)
    return one_number(float(law.variances.sum() + ((law.mean - mode) ** 2).sum()))


quantity("target_moment", "E||X - minimizer||^2 under the target", _target_moment,
         lambda problem, algorithm, bound, n_rounds, start, record: algorithm.target(problem))


def fixed_point(problem: Any, algorithm: Any, alpha: float) -> Array:
    """The fixed point of x <- (W x I) x - alpha grad F(x) on a quadratic problem, (N, d).

    It minimises F(x) + x'(I - W x I) x/(2 alpha).

    Parameters
    ----------
    problem : fedsim.Quadratic
    algorithm : fedsim.DESGLD or fedsim.DESGHMC
        Its mixing matrix is used.
    alpha : float
        Step size; eta^2 for DE-SGHMC.

    Returns
    -------
    (N, d) in units of length

    Raises
    ------
    ValueError
        For problems that are not quadratic.

    Source: DE-SGLD Lemma 18.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 1.0], [[1.0], [-1.0]])
    >>> algorithm = fs.DESGLD(0.1, fs.network.complete(2))
    >>> theory.de_sgld.fixed_point(problem, algorithm, 0.5).round(12).tolist()
    [[0.333333333333], [-0.333333333333]]
    """
    if not isinstance(problem, Quadratic):
        raise ValueError(f"problem={problem!r} must be a fedsim.Quadratic: the fixed point is explicit there")
    N, d = problem.n_clients, problem.dim
    blocks = alpha * problem.weights[:, None, None] * problem.dense_hessians
    matrix = np.kron(np.eye(N) - algorithm.mixing, np.eye(d)).reshape(N, d, N, d)
    matrix[np.arange(N), :, np.arange(N), :] += blocks
    pull = np.einsum("cij,cj->ci", blocks, problem.minimizers)
    return np.linalg.solve(matrix.reshape(N * d, N * d), pull.ravel()).reshape(N, d)


@dataclass(frozen=True, eq=False)
class Spread:
    """The clients' joint law, and the fixed point (N, d) of the iteration without noise: for Lemma 5's proof.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> joint = theory.exact.joint_law(problem, algorithm, 9)
    >>> spread = theory.de_sgld.Spread(joint, theory.de_sgld.fixed_point(problem, algorithm, 0.01))
    >>> known = theory.constants(problem, algorithm)
    >>> theory.check(theory.de_sgld.iterate_bound(known, algorithm, n_rounds=9), spread).holds
    True
    """

    joint: JointLaw
    fixed: Array

    @property
    def of(self) -> Provenance:
        """What the joint law is of."""
        return self.joint.of


@dataclass(frozen=True)
class NoiseFree:
    """The iteration without noise, whose fixed point Lemma 18 is about.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> bound = theory.de_sgld.fixed_point_bound(theory.constants(problem, algorithm), algorithm)
    >>> theory.check(bound, theory.de_sgld.NoiseFree(problem, algorithm)).holds
    True
    """

    problem: Any
    algorithm: Any


def _fixed_point_moment(bound: Bound, law: Any, level: float) -> Measured:
    if not isinstance(law, Spread):
        raise ValueError(f"law={law!r} must be a theory.de_sgld.Spread: the bound is about a fixed point")
    known, alpha = law.joint, bound.inputs["alpha"]
    # the joint law's problem holds the components themselves, with weights 1/N
    own = fixed_point(known.problem, known.algorithm, alpha * known.n_clients)
    if np.shape(law.fixed) != own.shape or np.abs(law.fixed - own).max() > 1e-9 * np.abs(own).max():
        raise ValueError(f"fixed={law.fixed!r} must be the fixed point at alpha={alpha:g}, {own!r}")
    value = np.square(law.joint.mean - law.fixed).sum(axis=(1, 2)) + np.einsum("kii->k", law.joint.cov)
    return Measured(value, law.joint.steps, float(value.max() + np.square(law.fixed).sum()))


quantity("fixed_point_moment", "sum_i E||x_i - x_alpha,i||^2 to the fixed point of the noise-free iteration",
         _fixed_point_moment, lambda problem, algorithm, bound, n_rounds, start, record: Spread(
             joint_law(problem, algorithm, n_rounds, start=start),
             fixed_point(problem, algorithm, bound.inputs["alpha"])))


def _fixed_point_distance(bound: Bound, law: Any, level: float) -> Measured:
    if not isinstance(law, NoiseFree):
        raise ValueError(f"law={law!r} must be a theory.de_sgld.NoiseFree: the bound is on its fixed point")
    found = fixed_point(law.problem, law.algorithm, bound.inputs["alpha"])
    distance = float(np.linalg.norm(found - law.problem.minimizer))
    return one_number(distance)._replace(scale=max(distance, float(np.linalg.norm(found))))


quantity("fixed_point_distance", "||x_alpha - x^*|| of the fixed point of the noise-free iteration",
         _fixed_point_distance,
         lambda problem, algorithm, bound, n_rounds, start, record: NoiseFree(problem, algorithm))
