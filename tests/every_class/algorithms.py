"""Algorithms of every family on a problem, with step sizes within the hypotheses of its statements.

What an algorithm takes is an option of its family, except for step sizes, which follow from the curvatures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fedsim as fs
import theory


@dataclass(frozen=True)
class Family:
    """A class of algorithms, arguments that follow from the problem, its options, and what makes one."""

    kind: type
    given: tuple[str, ...]
    options: Mapping[str, Sequence[Any]]
    build: Callable[..., Any]


DRAWN = {"all": None, "I": fs.Participation(1, replace=True), "II": fs.Participation(1, replace=False)}
SCHEDULES = ("constant", "harmonic")


def curvatures(problem: Any, like: Any) -> tuple[float, float]:
    """m and L of what such an algorithm follows."""
    if isinstance(problem, fs.LinearRegression):  # with minibatches the noise has no bound, the curvature has
        problem = dataclasses.replace(problem, batch_size=None, grad_scale="unbiased")
    known = theory.constants(problem, like)
    return known.strong_convexity, known.smoothness


def _steps(low: float, high: float, schedule: str) -> Any:
    if schedule == "harmonic":
        return fs.schedules.Harmonic.from_theorem(strong_convexity=low, smoothness=high)
    return 0.4 / high


def _fa_ld(problem: Any, schedule: str, participation: str, **options: Any) -> fs.FALD:
    low, high = curvatures(problem, fs.FALD(1e-3))
    return fs.FALD(_steps(low, high, schedule), participation=DRAWN[participation], **options)


def _fa_hmc(problem: Any, leapfrog_steps: int, participation: str, **options: Any) -> fs.FAHMC:
    low, high = curvatures(problem, fs.FAHMC(1e-3, 1))
    length = 0.99 * np.sqrt(low) / (2.0 * high)
    return fs.FAHMC(float(length) / leapfrog_steps, leapfrog_steps, participation=DRAWN[participation],
                    **options)


def network(kind: str, clients: int) -> np.ndarray:
    """Mixing matrices of one or two clients."""
    if clients == 1:
        return fs.network.complete(1)
    return {"complete": fs.network.complete(clients),
            "opposed": np.array([[0.3, 0.7], [0.7, 0.3]])}[kind]


def _de_sgld(problem: Any, mixing: str) -> fs.DESGLD:
    matrix = network(mixing, problem.n_clients)
    limit = theory.de_sgld.step_size_limit(*curvatures(problem, fs.DESGLD(1e-3, matrix)), matrix)
    return fs.DESGLD(0.5 * limit, matrix)


def _de_sghmc(problem: Any, mixing: str, start_velocity: bool) -> fs.DESGHMC:
    matrix = network(mixing, problem.n_clients)
    low_high = curvatures(problem, fs.DESGLD(1e-3, matrix))
    step = 0.7 * theory.de_sghmc.step_size_limit(*low_high, matrix)
    momentum = 0.5 * theory.de_sghmc.largest_momentum(*low_high, matrix, step)
    velocity = 0.5 * np.ones((problem.n_clients, problem.dim)) if start_velocity else None
    return fs.DESGHMC(step, (1.0 - momentum) / step, matrix, velocity)


AGES = {"0": 0, "1": 1, "listed": (0, 1, 2, 0, 2, 1, 1, 2, 0, 2, 2, 1)}


def _stale(problem: Any, staleness: str) -> fs.StaleSGLD:
    _, high = curvatures(problem, fs.StaleSGLD(1e-3, 0))
    return fs.StaleSGLD(0.4 / high, AGES[staleness])


FAMILIES = {family.kind.__name__: family for family in (
    Family(fs.FALD, ("step_size",), {
        "schedule": SCHEDULES, "local_steps": (1, 3), "temperature": (1.0, 0.3),
        "shared_noise": (0.0, 0.4, 1.0), "participation": tuple(DRAWN)}, _fa_ld),
    Family(fs.FAHMC, ("step_size", "debias", "first_round"), {  # all bounds refuse debiasing
        "leapfrog_steps": (1, 3), "local_steps": (1, 2), "shared_noise": (1.0, 0.4, 0.0),
        "participation": tuple(DRAWN)}, _fa_hmc),
    Family(fs.DESGLD, ("step_size",), {"mixing": ("complete", "opposed")}, _de_sgld),
    Family(fs.DESGHMC, ("step_size", "friction"), {
        "mixing": ("complete", "opposed"), "start_velocity": (False, True)}, _de_sghmc),
    Family(fs.StaleSGLD, ("step_size",), {"staleness": tuple(AGES)}, _stale))}
"""Those of which there is a bound: of the others there are rates alone."""


START = ("origin", "target", "apart")
"""At the origin, in the target (or at the minimizer where it has no closed form), or far from it."""


def possible(kind: str, family: str, choice: Mapping[str, Any]) -> bool:
    """Is there such an algorithm on such a problem, and does a statement speak about it?"""
    drawn = choice.get("participation", "all")
    if kind == "GaussianMean" and (drawn != "all" or choice.get("mixing", "complete") != "complete"):
        return False  # one client
    if kind == "LinearRegression" and choice["batch_size"] is not None and not (
            family.startswith("DE") and choice["grad_scale"] == "unbiased"):
        return False  # constants are refused
    equal = choice.get("weights") == "equal" or (kind == "Quadratic" and choice["weights"] == "default")
    if drawn == "II" and not equal:
        return False  # scheme II asks for equal weights
    return family != "FALD" or choice["schedule"] == "constant" or drawn == "all"


def start(problem: Any, where: str, target: Any, minimizer: Any) -> Any:
    """Where it begins."""
    if where == "origin":
        return None
    if where == "target":
        return minimizer if target is None else target
    return minimizer + 3.0 * (-1.0) ** np.arange(problem.dim)
