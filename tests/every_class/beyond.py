"""Every statement on clients that are not quadratic: lines, algorithms, and who measures what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import fedsim as fs
import theory

from . import federated, lines, planes, trajectories
from .algorithms import AGES, DRAWN, network
from .classes import CLASSES
from .grids import pairs_of
from .pairwise import Choice, cover
from .sides import Found, Side, compare

ROUNDS = 6
MADE = {
    "jump": lambda: lines.jumps(1e-3), "sharp jump": lambda: lines.jumps(1e-6),
    "jump of one": lambda: lines.jumps(1e-3, clients=1),
    "sharp jump of one": lambda: lines.jumps(1e-6, clients=1),
    "noisy jump": lambda: lines.jumps(1e-3, 0.7), "log cosh": lines.cosh,
    "noisy log cosh": lambda: lines.cosh(0.7)}
"""Lines with constants by hand."""
LOGISTIC = {option: values for option, values in CLASSES["LogisticRegression"].options.items()
            if option not in ("dim", "grad_scale")} | {"weights": ("equal", "unequal")}
FEW = 12
"""Pairs of gradients up to which further draws are followed."""


def _of_one_datum(count: int = 100) -> lines.Line:
    """Clients of one datum each: of all data together a minibatch is `count` times as noisy."""
    labels = np.arange(count) % 2
    return lines.regression(fs.LogisticRegression(
        np.ones((count, 1)), labels, np.arange(count), prior_variance=4.0 / count, batch_size=1,
        replace=False))


def logistic(choice: Choice) -> lines.Line:
    """Of a choice of options."""
    return lines.regression(CLASSES["LogisticRegression"].build(dim=1, grad_scale="unbiased", **choice))


def _is_line(choice: Choice) -> bool:
    return choice["batch_size"] is not None or choice["replace"]


def all_lines(choose: Any = cover) -> dict[str, Any]:
    """What makes a line, by name."""
    named = {f"logistic {' '.join(f'{o}={v}' for o, v in one.items())}": (lambda one=one: logistic(one))
             for one in choose(LOGISTIC, _is_line)}
    return MADE | named | {"one datum each": _of_one_datum}


OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "FALD": {"schedule": ("constant", "harmonic"), "local_steps": (1, 2), "shared_noise": (0.0, 0.4, 1.0),
             "participation": tuple(DRAWN), "start": ("far", "mode")},
    "FAHMC": {"length": ("long", "short"), "leapfrog_steps": (1, 3), "local_steps": (1, 2),
              "shared_noise": (1.0, 0.4, 0.0), "start": ("far", "mode")},
    "trajectory": {"length": ("long", "short"), "leapfrog_steps": (1, 3)},
    "DESGLD": {"mixing": ("complete", "opposed"), "start": ("far", "mode")},
    "DESGHMC": {"start": ("far", "mode")},
    "StaleSGLD": {"staleness": ("0", "1"), "start": ("far", "mode")}}


def possible(line: lines.Line, family: str, choice: Choice) -> bool:
    """Is it measured? Laws of more numbers than two, or of many draws one after the other, are not."""
    clients, draws = len(line.clients), pairs_of(line) if len(line.clients) < 3 else np.inf
    if clients > 2:
        return family == "StaleSGLD"
    if family == "FALD":
        drawn = choice["participation"]
        if (drawn == "II" and np.ptp(line.weights) > 1e-12) or (drawn != "all" and clients == 1):
            return False
        if choice["schedule"] != "constant" and (drawn != "all" or choice["local_steps"] > 1):
            return False
        return choice["local_steps"] == 1 or draws == 1 or (draws <= FEW and choice["shared_noise"] == 0.0)
    if family == "trajectory":
        return draws == 1 and not line.noise
    if family == "FAHMC":
        if choice["leapfrog_steps"] > 1 and (line.noise or draws > 1):
            return False  # more draws than one in an update
        if choice["local_steps"] > 1 and choice["shared_noise"] == 0.4:
            return False
        return draws == 1 or (draws <= FEW and choice["shared_noise"] != 0.4)
    return {"DESGLD": clients == 2 and draws <= FEW, "DESGHMC": clients == 1, "StaleSGLD": True}[family]


def algorithm(line: lines.Line, family: str, choice: Choice) -> Any:
    """With steps within the hypotheses."""
    def curvatures(like: Any) -> tuple[float, float]:
        known = line.constants(like, 0.0)
        return known.strong_convexity, known.smoothness

    if family == "FALD":
        low, high = curvatures(fs.FALD(1e-3))
        steps = 0.4 / high if choice["schedule"] == "constant" else fs.schedules.Harmonic.from_theorem(
            strong_convexity=low, smoothness=high)
        return fs.FALD(steps, choice["local_steps"], shared_noise=choice["shared_noise"],
                       participation=DRAWN[choice["participation"]])
    if family in ("FAHMC", "trajectory"):
        low, high = curvatures(fs.FAHMC(1e-3, 1))
        length = 0.99 * np.sqrt(low) / (2.0 * high) if choice["length"] == "long" else 1e-3
        return fs.FAHMC(float(length) / choice["leapfrog_steps"], choice["leapfrog_steps"],
                        choice.get("local_steps", 1), choice.get("shared_noise", 1.0))
    if family == "StaleSGLD":
        return fs.StaleSGLD(0.3 / curvatures(fs.StaleSGLD(1e-3, 0))[1], AGES[choice["staleness"]])
    matrix = network(choice.get("mixing", "complete"), len(line.clients))
    low_high = curvatures(fs.DESGLD(1e-3, matrix))
    if family == "DESGLD":
        return fs.DESGLD(0.5 * theory.de_sgld.step_size_limit(*low_high, matrix), matrix)
    step = 0.7 * theory.de_sghmc.step_size_limit(*low_high, matrix)
    momentum = 0.5 * theory.de_sghmc.largest_momentum(*low_high, matrix, step)
    return fs.DESGHMC(step, (1.0 - momentum) / step, matrix)


def _trajectories(line: lines.Line, one: fs.FAHMC, start: float, rounds: int) -> Iterator[Side]:
    yield from trajectories.oracle(line, one)
    yield from trajectories.paths(line, one)


def _fa_hmc(line: lines.Line, one: fs.FAHMC, start: float, rounds: int) -> Iterator[Side]:
    short = one.leapfrog_steps * float(one.schedule.largest) < 2e-3  # no grid shows it
    if one.local_steps == 1 and not short:
        yield from trajectories.w2(line, one, start, rounds)
    once = list(trajectories.Updates(line, one, start, False).sides())
    if not line.noise and (one.local_steps == 1 or (pairs_of(line) == 1 and one.shared_noise == 1.0)):
        once += trajectories.Updates(line, one, start, True).coupled()
    yield from (replace(side, rounds=1) for side in once)


MEASURED = {"FALD": federated.sides, "FAHMC": _fa_hmc, "trajectory": _trajectories, "DESGLD": planes.gossip,
            "DESGHMC": planes.heavy_ball, "StaleSGLD": planes.stale}
"""What makes the exact sides of (line, algorithm, start, rounds)."""


def judge(line: lines.Line, family: str, choice: Choice) -> list[Found]:
    """Every statement of a family that is about this line."""
    one = algorithm(line, family, choice)
    start = line.minimizer + (2.5 / np.sqrt(line.m) if choice.get("start") == "far" else 0.0)
    sides = MEASURED[family](line, one, start, ROUNDS)
    return list(compare(sides, line.constants(one, start), one, ROUNDS, line.bound))


def cells(choose: Any = cover) -> Iterator[tuple[str, str, Choice]]:
    """Names of lines, families, and choices of their options: a cover, or all."""
    for name, make in all_lines(choose).items():
        line = make()
        for family, options in OPTIONS.items():
            for choice in choose(options, lambda one, line=line, family=family: possible(line, family, one)):
                yield name, family, choice


UNMEASURED = {
    "fa_hmc.main_part_bound": "a part of an expansion in a proof; with the rest it is one_step_bound's",
    "fa_hmc.maxima_bound": "of the dimension alone",
    "fa_hmc.lower_bound": "of quadratic clients, by its statement",
    "stale.gradient_gap_bound": "of a quadratic f, by its hypothesis",
    "de_sgld.connectivity_bound": "of constants alone",
    "de_sghmc.connectivity_bound": "of constants alone", "de_sghmc.factor_bound": "of constants alone",
    "de_sghmc.gradient_coefficient_bound": "of constants alone",
    "de_sghmc.ratio_bound": "of constants alone",
    "de_sghmc.damping_bound": "of two Euler schemes beside four coordinates of two clients",
    "de_sghmc.coupling_bound": "the same",
    "de_sghmc.disagreement_bound": "positions and velocities of two clients",
    "de_sghmc.gradient_error_bound": "the same", "de_sghmc.lyapunov_bound": "the same"}
"""Statements without an exact side here, and why; those on privacy are of mechanisms, not of shapes."""
