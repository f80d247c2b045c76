"""What FA-LD's lemmas are about, read from the joint law of the clients or from the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedsim.laws.distance import w2_gaussian
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array

from ..bound import Bound
from ..checking import Measured, quantity, require_target
from ..exact import joint_law
from ..exact.federated.joint import JointLaw


def _joint(problem: Any, algorithm: Any, bound: Bound, n_rounds: int, start: Any, record: Any) -> JointLaw:
    return joint_law(problem, algorithm, n_rounds * algorithm.local_steps, start=start)


def _scale(law: JointLaw) -> float:
    """Size of the second moments that divergences are small differences of."""
    traces = np.einsum("kii->k", law.cov) / law.n_clients
    return float((traces + (law.mean**2).sum(axis=(1, 2))).max())


def _gradient_scale(law: JointLaw) -> float:
    """The same as the steepest gradient sees it."""
    problem = law.problem
    curvature = float(np.linalg.norm(problem.dense_hessians, 2, axis=(1, 2)).max())
    return curvature**2 * (_scale(law) + float((problem.minimizers**2).sum(axis=1).max()))


def _from_joint(name: str, meaning: str, read: Callable[[Bound, JointLaw], Array],
                rounds: Callable[[JointLaw], np.ndarray] = lambda law: law.steps,
                scale: Callable[[JointLaw], float] = _scale) -> None:
    """Register what is read from a joint law; `scale` is in the units of what is read."""
    def measure(bound: Bound, law: Any, level: float) -> Measured:
        if not isinstance(law, JointLaw):
            raise ValueError(f"law={law!r} must be a theory.exact.JointLaw: the bound is about {meaning}")
        return Measured(read(bound, law), rounds(law), scale(law))

    quantity(name, meaning, measure, _joint)


def _about_point(bound: Bound, law: JointLaw) -> Array:
    point = bound.inputs.get("point")
    if point is None:
        raise ValueError("minimizer=None is not known: the bound speaks about moments around it; pass "
                         "minimizer=... to theory.Constants")
    return law.second_moment_about(point).max(axis=1)


def _w2_sq(bound: Bound, law: JointLaw) -> Array:
    goal = bound.target if bound.target is not None else law.algorithm.target(law.problem)
    return w2_gaussian(law.average_mean, law.average_cov, goal.mean, goal.cov) ** 2


_from_joint("divergence", "sum_c p_c E||theta_c - theta||^2 of the clients at each local step",
            lambda bound, law: law.divergence())
_from_joint("participation_gap", "E||average of drawn clients - average of all||^2 at each communication",
            lambda bound, law: law.participation_gap(),
            lambda law: law.sync_steps // law.algorithm.local_steps)
_from_joint("second_moment", "max_c E||theta_c - minimizer||^2 at each local step", _about_point)
_from_joint("gradient_second_moment", "max_c E||stochastic gradient of client c||^2 at each local step",
            lambda bound, law: law.gradient_second_moment().max(axis=1), scale=_gradient_scale)
_from_joint("w2_sq_of_average", "squared W2 between the clients' average and the target at each local step",
            _w2_sq)


def _problem(problem: Any, algorithm: Any, bound: Bound, n_rounds: int, start: Any, record: Any) -> Any:
    return problem


def _one(value: float) -> Measured:
    return Measured(np.array([value]), np.array([1]), abs(value))


def _gradient_noise(bound: Bound, problem: Any, level: float) -> Measured:
    if not isinstance(problem, Quadratic):
        raise ValueError(f"law={problem!r} must be the fedsim.Quadratic whose gradients are meant")
    noise = problem.noise_covariances
    if noise is None:
        return _one(0.0)
    return _one(float(problem.weights**2 @ np.trace(noise, axis1=1, axis2=2)))


quantity("averaged_gradient_noise", "E||sum_c p_c (stochastic - exact gradient of client c)||^2",
         _gradient_noise, _problem)


def _after_step(bound: Bound, problem: Any, level: float) -> Measured:
    if not isinstance(problem, Quadratic):
        raise ValueError(f"law={problem!r} must be the fedsim.Quadratic whose gradients are meant")
    step = bound.inputs["step_size"]
    sides = []
    for name in ("points", "others"):
        x = bound.inputs[name]
        slopes = np.array([problem.gradient(c, x[c]) for c in range(problem.n_clients)])
        sides.append(problem.weights @ (x - step * slopes))
    value = float(((sides[0] - sides[1]) ** 2).sum())
    size = float(max(np.abs(bound.inputs[name]).max() for name in ("points", "others")))
    # a difference of numbers of this size, squared
    return Measured(np.array([value]), np.array([1]), value**0.5 * size + 1e-18 * size**2)


quantity("squared_distance_after_step", "squared distance of two averages after one exact gradient step",
         _after_step, _problem)


def _increment(bound: Bound, target: Any, level: float) -> Measured:
    """E||theta(s+eta) - theta(s)||^2 = 2 tr(C - C exp(-eta A)) with C the covariance, A = tau C^-1."""
    if not isinstance(target, Gaussian):
        raise ValueError(f"law={target!r} must be the fedsim.Gaussian that the diffusion keeps")
    require_target(bound, target)
    variances = target.variances if target.is_diagonal else np.linalg.eigvalsh(target.cov)
    rate = bound.inputs["step_size"] * bound.inputs["temperature"] / variances
    return _one(float(2.0 * (variances * -np.expm1(-rate)).sum()))


quantity("langevin_increment", "largest E||theta(s) - theta(k eta)||^2 of the stationary Langevin diffusion",
         _increment, lambda problem, algorithm, bound, n_rounds, start, record: algorithm.target(problem))
