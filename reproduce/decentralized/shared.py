"""Shared by the figures of DE-SGLD and DE-SGHMC: networks, their looks, and what the theorems say of them.

A theorem is drawn only where its formula has a value; `judgement` says for every setting whether its
hypotheses hold, and if not which one fails and by how much. A disconnected network has no bound at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from theory import Assumption, Bound
from theory.de_sghmc import chain
from theory.de_sgld import NotApplicable, setting
from theory.decentralized.sghmc.setting import MOMENTUM_RANGE, STEP_RANGE
from theory.decentralized.sgld.paper import hypotheses

from .. import plot

PAPER = "Decentralized stochastic gradient Langevin dynamics and Hamiltonian Monte Carlo"
HOLD, VIOLATED, NOT_APPLICABLE = "hold", "violated", "not applicable"
NOT_CONNECTED = "the network is not connected"
SYMBOLS = {
    "step_size <= (1 + lambda_N)/smoothness": r"$\eta \leq (1+\lambda_N)/L$",
    "step_size <= 1/(smoothness + strong_convexity)": r"$\eta \leq 1/(L+\mu)$",
    STEP_RANGE: r"$\eta^2 \leq (1+\lambda_N)/(2(L+\mu))$",
    MOMENTUM_RANGE: r"$1-\gamma\eta \leq \bar\beta$ of (38)",
}
"""Hypotheses of Theorems 1 and 11 as they stand on pictures."""


class Network(NamedTuple):
    """A network of the paper: how it is called, made and drawn."""

    title: str
    mixing: Callable[[int], Any]
    colour: str
    marker: str


NETWORKS = {
    "complete": Network("fully connected", fs.network.complete, plot.COLOURS[0], "o"),
    "ring": Network("circular", fs.network.ring, plot.COLOURS[1], "s"),
    "disconnected": Network("disconnected", fs.network.disconnected, plot.COLOURS[2], "^"),
}
"""The three networks of the experiments, in the paper's order."""
CONNECTED = ("complete", "ring")
ROUNDING = 1e-9
"""Eigenvalues below it are zero: stored tables have ten digits."""


class Judgement(NamedTuple):
    """What a theorem says about one setting.

    Attributes
    ----------
    status : "hold", "violated" or "not applicable"
        Of the hypotheses; the last for networks that are not connected.
    why : str
        Which hypothesis fails, and by how much; "all hypotheses hold" otherwise.
    symbols : str
        The same with the paper's symbols, for pictures.
    bound : theory.Bound or None
        None where the formula has no value.
    """

    status: str
    why: str
    symbols: str
    bound: Bound | None


def judgement(theorem: Callable[..., Bound], constants: Any, algorithm: Any, n_rounds: int,
              record: Any = None) -> Judgement:
    """Evaluate a bound of Theorem 1 or 11, with its hypotheses, where it says anything."""
    if not fs.network.is_connected(algorithm.mixing):
        return Judgement(NOT_APPLICABLE, NOT_CONNECTED, NOT_CONNECTED, None)
    momentum = isinstance(algorithm, fs.DESGHMC)
    conditions = chain(constants, algorithm).hypotheses if momentum else hypotheses(
        setting(constants, algorithm))
    failing = [item for item in conditions if not item.holds]
    try:
        found = theorem(constants, algorithm, n_rounds=n_rounds, record=record)
    except NotApplicable:  # beyond its range the formula divides by zero or takes roots of negative numbers
        found = None
    if not failing and found is not None:
        return Judgement(HOLD, "all hypotheses hold", "all hypotheses hold", found)
    beyond = [_beyond(item, momentum and chain(constants, algorithm).largest_beta) for item in failing]
    why = "; ".join(f"{item.name}: {text}" for item, text in zip(failing, beyond, strict=True))
    short = "\n".join(f"{SYMBOLS.get(item.name, item.name)}: {text}"
                      for item, text in zip(failing, beyond, strict=True))
    return Judgement(VIOLATED, why, short, found)


def _beyond(item: Assumption, allowed: float) -> str:
    """By how much a hypothesis fails; `allowed` is the largest momentum, or 0."""
    if item.name == MOMENTUM_RANGE and allowed <= 0.0:
        return "no momentum is allowed"
    text = f"{1.0 - item.margin:.3g}"
    return f"{text if text != '1' else f'{1.0 - item.margin:.6g}'} times the limit"


def judgement_row(found: Judgement, **labels: Any) -> dict[str, Any]:
    """A row (labels, status, why, symbols, has_value) for a table of hypotheses."""
    return {**labels, "status": found.status, "why": found.why, "symbols": found.symbols,
            "has_value": found.bound is not None}


def bound_rows(found: Judgement, **labels: Any) -> pd.DataFrame:
    """The bound as rows (labels, round, bound, vacuous, within_hypotheses); none where it has no value."""
    if found.bound is None:
        return pd.DataFrame()
    return pd.DataFrame({**labels, "round": found.bound.rounds, "bound": found.bound.value,
                         "vacuous": bool(found.bound.is_vacuous), "within_hypotheses": found.status == HOLD})


def remark(ax: Axes, text: str, x: float = 0.02, y: float = 0.02, **options: Any) -> None:
    """A note on a panel, from its lower left corner by default; x and y are shares of the panel."""
    look: dict[str, Any] = {"fontsize": 8.0, "ha": "left" if x < 0.5 else "right",
                            "va": "bottom" if y < 0.5 else "top", "color": "#404040", **options}
    ax.text(x, y, text, transform=ax.transAxes, zorder=6,
            bbox={"facecolor": "white", "edgecolor": plot.GREY, "linewidth": 0.6, "alpha": 0.9,
                  "boxstyle": "round,pad=0.3"}, **look)


def bound(ax: Axes, x: Any, y: Any, vacuous: bool, outside: bool, name: str, colour: str,
          of_average: bool) -> None:
    """A theorem's bound; that of the agents has its own dashes, so that both are told apart in grey too."""
    plot.bound(ax, x, y, vacuous, outside, name, colour)
    ax.lines[-1].set_linestyle("--" if of_average else (0, (6, 2, 1, 2, 1, 2)))


def legend_below(ax: Axes, columns: int = 2, offset: float = 0.15) -> None:
    """The legend under a panel, `offset` of its height below, clear of the data."""
    plot.once(ax, loc="upper center", bbox_to_anchor=(0.5, -offset), ncol=columns, fontsize=9)


def snapped(values: Any) -> np.ndarray:
    """Zero where there is nothing beyond rounding."""
    return np.where(np.abs(values) < ROUNDING, 0.0, values)


def among(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows with these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    return table


def listed(items: list[str]) -> str:
    """Words in a row: "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
