"""A sampler in sentences: warnings, once each, and the parts of `fedsim.explain`."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from typing import Any

import numpy as np

from ..fingerprints import fingerprint
from ..interfaces import Problem
from ..settings.network import RandomMixing
from ..settings.validation import shown
from .trace import Trace, shared_parts
from .words import SamplerWarning, aim_of, complaints, conserved_words, groups_of, words_of

HOUSE = ("fedsim", "theory")
_LOOKED_AT: set[tuple[str | None, int]] = set()
"""Samplers, by fingerprint and number of clients, that have been looked at."""
_TOLD: set[tuple[str | None, int]] = set()
"""Those that were complained about, whatever their step size."""


def warn_once(one: Any, found: Trace) -> None:
    """Warn of what is hardly meant: once for each sampler, its parameters but the step size, and size."""
    key = fingerprint(one), found.n_clients
    if key in _LOOKED_AT:
        return
    _LOOKED_AT.add(key)
    said = dict.fromkeys(complaints(type(one).__name__, found, one._follows, one.temperature))
    if not said:
        return
    key = fingerprint(dataclasses.replace(one, step_size=1.0)), found.n_clients
    if key in _TOLD:
        return
    _TOLD.add(key)
    for told in said:
        warnings.warn(told, SamplerWarning, stacklevel=_outside())


def _outside() -> int:
    """How far up the first caller stands that is not of this house."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in HOUSE:
        frame, level = frame.f_back, level + 1
    return level


def require_potential(one: Any, found: Trace, problem: Problem) -> None:
    """Raise ValueError where a round reads potentials and the problem has none."""
    missing = problem._without_potential() if found.how_many("potential") else ""
    if missing:
        raise ValueError(f"problem={shown(problem)} must have a potential that can be compiled: "
                         f"{type(one).__name__} reads potential(x); {missing}")


def explained(one: Any, problem: Problem) -> list[tuple[str, str]]:
    """The parts of `fedsim.explain` for a sampler: round, costs, conserved sums, temperature."""
    found, costs = one.trace(problem), one.costs(problem, 1)
    parts = [("a round", "\n".join(["", *(f"    {line}" for line in words_of(found).splitlines())])),
             ("costs", f"a round has {found.how_many('grad')} gradients a client, "
                       f"{found.how_many('mix')} mixings, {found.how_many('mean')} averages, "
                       f"{found.how_many('noise')} noises, and sends {costs['floats_sent']:g} floats"),
             ("shared by all", ", ".join(str(part) for part, shared in shared_parts(found).items() if shared)
              or "no part of the state")]
    if problem.is_judged and found.period == 1 and not found.how_many("each"):
        parts.append(("conserved", conserved_words(
            one.rounds(problem.curvature_problem(), None)) or "nothing"))
        aim = aim_of(found, one._follows == "components")
        groups = groups_of(found)
        parts.append(("temperature", f"none: there are {len(groups)} groups of clients that never meet"
                      if len(groups) > 1 else aim.why or f"{aim.temperature:.6g}, by noise and gradients"))
    return [*parts, ("certified", "the exact law follows from this formula, and cannot tell that it is "
                     "the one that was meant: compare the round with its source")]


def prices(one: Any, problem: Problem) -> dict[str, float]:
    """The price of a round for one replica, as `Algorithm.costs` names it."""
    found, sent = one.trace(problem), 0.0
    for node, times in found.every():
        if node.kind == "mix":
            links = np.count_nonzero(node.payload, axis=(1, 2)) - np.count_nonzero(
                np.diagonal(node.payload, axis1=1, axis2=2), axis=1)
            sent += times * float(links.mean())
        elif node.kind == "mean" or (node.kind == "random" and not isinstance(node.payload.of, RandomMixing)):
            sent += times * 2.0 * (found.n_clients if node.kind == "mean"
                                   else node.payload.of._total_active(found.n_clients, 1))
        elif node.kind == "random":
            W = node.payload.of
            links = np.count_nonzero(W.matrices, axis=(1, 2)) - found.n_clients
            sent += times * float(W.chances @ links)
    gradients = found.how_many("grad")
    if one._follows == "global":  # a server's: for each gradient a point is sent, and the gradient back
        return {"communications": float(gradients), "gradient_evaluations": float(gradients),
                "floats_sent": 2.0 * gradients * problem.dim}
    return {"communications": float(sum(map(found.how_many, ("mix", "mean", "random")))),
            "gradient_evaluations": float(gradients * problem.n_clients),
            "floats_sent": sent * problem.dim}
