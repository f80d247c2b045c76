"""What FA-LD's lemmas are about, read from the joint law of the clients or from the problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedsim.laws.law import Gaussian
from fedsim.laws.moments import w2_of
from fedsim.problems.quadratic import Quadratic

from ..declare.bound import Bound
from ..exact.joint_laws import JointLaw
from ..judge.checking import Measured, require_target
from ..theorem_parts import CLIENTS, PROBLEM, TARGET, minimizer_of, of_its_size

GRADIENTS = replace(PROBLEM, words="the fedsim.Quadratic whose gradients are meant")
DIFFUSION = replace(TARGET, words="the fedsim.Gaussian that the diffusion keeps")


def _scale(law: JointLaw) -> float:
    """Size of the second moments that divergences are small differences of."""
    traces = np.einsum("kii->k", law.cov) / law.n_clients
    return float((traces + (law.mean**2).sum(axis=(1, 2))).max())


def _gradient_scale(law: JointLaw) -> float:
    """The same as the steepest gradient sees it."""
    problem = law.problem
    curvature = float(np.linalg.norm(problem.dense_hessians, 2, axis=(1, 2)).max())
    return curvature**2 * (_scale(law) + float((problem.minimizers**2).sum(axis=1).max()))


def _about_point(bound: Bound, law: JointLaw) -> Measured:
    moments = law.second_moment_about(minimizer_of(bound, "point"))
    return Measured(moments.max(axis=1), law.steps, _scale(law))


def _w2_sq(bound: Bound, law: JointLaw) -> Measured:
    goal = bound.target if bound.target is not None else law.algorithm.target(law.problem)
    distance = w2_of(law.average_mean, law.average_cov, goal.mean, goal.cov)
    return Measured(distance**2, law.steps, _scale(law))


CLIENTS.enter("divergence", "sum_c p_c E||theta_c - theta||^2 of the clients at each local step",
              lambda bound, law: Measured(law.divergence(), law.steps, _scale(law)))
CLIENTS.enter("participation_gap", "E||average of drawn clients - average of all||^2 at each communication",
              lambda bound, law: Measured(law.participation_gap(),
                                             law.sync_steps // law.algorithm.local_steps, _scale(law)))
CLIENTS.enter("second_moment", "max_c E||theta_c - minimizer||^2 at each local step", _about_point)
CLIENTS.enter("gradient_second_moment", "max_c E||stochastic gradient of client c||^2 at each local step",
              lambda bound, law: Measured(law.gradient_second_moment().max(axis=1), law.steps,
                                             _gradient_scale(law)))
CLIENTS.enter("w2_sq_of_average",
              "squared W2 between the clients' average and the target at each local step", _w2_sq)


def _gradient_noise(bound: Bound, problem: Quadratic) -> Measured:
    noise = problem.noise_covariances
    traces = np.zeros(problem.n_clients) if noise is None else np.trace(noise, axis1=1, axis2=2)
    return of_its_size(problem.weights**2 @ traces, 1)


def _after_step(bound: Bound, problem: Quadratic) -> Measured:
    sets, step = np.array([bound.inputs["points"], bound.inputs["others"]]), bound.inputs["step_size"]
    slopes = np.array([[problem.gradient(c, x) for c, x in enumerate(points)] for points in sets])
    first, second = problem.weights @ (sets - step * slopes)
    value, size = float(((first - second) ** 2).sum()), float(np.abs(sets).max())
    # a difference of numbers of this size, squared
    return Measured(np.array([value]), np.array([1]), value**0.5 * size + 1e-18 * size**2)


def _increment(bound: Bound, target: Gaussian) -> Measured:
    """E||theta(s+eta) - theta(s)||^2 = 2 tr(C - C exp(-eta A)) with C the covariance, A = tau C^-1."""
    require_target(bound, target)
    variances = target.variances if target.is_diagonal else np.linalg.eigvalsh(target.cov)
    rate = bound.inputs["step_size"] * bound.inputs["temperature"] / variances
    return of_its_size(2.0 * (variances * -np.expm1(-rate)).sum(), 1)


GRADIENTS.enter("averaged_gradient_noise", "E||sum_c p_c (stochastic - exact gradient of client c)||^2",
                _gradient_noise)
GRADIENTS.enter("squared_distance_after_step",
                "squared distance of two averages after one exact gradient step", _after_step)
DIFFUSION.enter("langevin_increment",
                "largest E||theta(s) - theta(k eta)||^2 of the stationary Langevin diffusion", _increment)
