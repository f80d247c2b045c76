"""Shared by the figures of DE-SGLD and DE-SGHMC: networks, their looks, and what the theorems say of them.

A theorem is drawn only where its formula has a value; `applied` says for every setting whether its
hypotheses hold, and if not which one fails and by how much. A disconnected network has no bound at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from theory.decentralized.paper import step_range
from theory.decentralized.sghmc.setting import MOMENTUM_RANGE, STEP_RANGE

from .. import plot
from ..figure import Parameter, Tables

HOLD, VIOLATED, NOT_APPLICABLE = "hold", "violated", "not applicable"
ALL_HOLD, NOT_CONNECTED = "all hypotheses hold", "the network is not connected"
AVERAGE, AGENTS = "average", "mean of the agents"
"""What a theorem bounds, in words."""
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


def algorithm_on(network: str, p: Any) -> Any:
    """The algorithm of a figure's parameters on one of `NETWORKS`: DE-SGHMC where there is a friction."""
    mixing = NETWORKS[network].mixing(p.n_clients)
    if hasattr(p, "friction"):
        return fs.DESGHMC(p.step_size, p.friction, mixing)
    return fs.DESGLD(p.step_size, mixing)


def printed(place: str, step_size: float, friction: float | None = None) -> list[Parameter]:
    """Step size, and friction if any, as the paper prints them in a place."""
    values = {"step_size": ("eta", step_size), "friction": ("gamma", friction)}
    return [Parameter(name, value, "paper", f"{place}: {symbol} = {value:g}")
            for name, (symbol, value) in values.items() if value is not None]


def method_of(names: Iterable[str]) -> tuple[str, str]:
    """Method and theorem of a figure with parameters of these names."""
    return ("DE-SGHMC", "Theorem 11") if "friction" in names else ("DE-SGLD", "Theorem 1")


class Application(NamedTuple):
    """A theorem applied to one setting.

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
    bound: theory.Bound | None

    def row(self, **labels: Any) -> dict[str, Any]:
        """A row (labels, status, why, symbols, has_value) for a table of hypotheses."""
        return {**labels, "status": self.status, "why": self.why, "symbols": self.symbols,
                "has_value": self.bound is not None}

    def curve(self, **labels: Any) -> pd.DataFrame:
        """The bound as rows (labels, round, bound, vacuous, within_hypotheses); none without a value."""
        if self.bound is None:
            return pd.DataFrame()
        return pd.DataFrame({**labels, "round": self.bound.rounds, "bound": self.bound.value,
                             "vacuous": bool(self.bound.is_vacuous),
                             "within_hypotheses": self.status == HOLD})


def applied(quantity: str, constants: Any, algorithm: Any, n_rounds: int = 1,
            record: Any = None) -> Application:
    """Theorem 1 or 11, whichever is the algorithm's, on the W2 of `AVERAGE` or `AGENTS`."""
    if not fs.network.is_connected(algorithm.mixing):
        return Application(NOT_APPLICABLE, NOT_CONNECTED, NOT_CONNECTED, None)
    theorems: Any = theory.de_sgld
    if isinstance(algorithm, fs.DESGHMC):
        theorems, chain = theory.de_sghmc, theory.de_sghmc.chain(constants, algorithm)
        conditions, momentum = chain.hypotheses, chain.largest_beta
    else:
        conditions, momentum = step_range(theory.de_sgld.setting(constants, algorithm)), 0.0
    theorem = theorems.w2_bound if quantity == AVERAGE else theorems.w2_clients_bound
    try:
        bound = theorem(constants, algorithm, n_rounds=n_rounds, record=record)
    except theory.de_sgld.NotApplicable:  # it would divide by zero or take roots of negative numbers
        bound = None
    beyond = {item.name: _beyond(item, momentum) for item in conditions if not item.holds}
    if not beyond and bound is not None:
        return Application(HOLD, ALL_HOLD, ALL_HOLD, bound)
    why, symbols = "; ".join(f"{name}: {text}" for name, text in beyond.items()), "\n".join(
        f"{SYMBOLS.get(name, name)}: {text}" for name, text in beyond.items())
    return Application(VIOLATED, why, symbols, bound)


def _beyond(item: theory.Assumption, momentum: float) -> str:
    """By how much a hypothesis fails; `momentum` is the largest allowed one."""
    if item.name == MOMENTUM_RANGE and momentum <= 0.0:
        return "no momentum is allowed"
    text = f"{1.0 - item.margin:.3g}"
    return f"{text if text != '1' else f'{1.0 - item.margin:.6g}'} times the limit"


def empty(*names: str) -> dict[str, list[Any]]:
    """A list for the rows of each table."""
    return {name: [] for name in names}


def tables_of(rows: Mapping[str, list[Any]]) -> Tables:
    """Every list of rows, or of tables, as one table; none where there is no row."""
    filled = {name: [part for part in parts if len(part)] for name, parts in rows.items()}
    return {name: pd.concat(parts, ignore_index=True) if isinstance(parts[0], pd.DataFrame)
            else pd.DataFrame(parts) for name, parts in filled.items() if parts}


def remark(ax: Axes, text: str, x: float = 0.02, y: float = 0.02, **options: Any) -> None:
    """A note on a panel, from its lower left corner by default; x and y are shares of the panel."""
    look: dict[str, Any] = {"fontsize": 9.0, "ha": "left" if x < 0.5 else "right",
                            "va": "bottom" if y < 0.5 else "top", "color": "#404040", **options}
    ax.text(x, y, text, transform=ax.transAxes, zorder=6,
            bbox={"facecolor": "white", "edgecolor": plot.GREY, "linewidth": 0.6, "alpha": 0.9,
                  "boxstyle": "round,pad=0.3"}, **look)


def point_mass(ax: Axes, distance: float, linewidth: float = 1.1) -> None:
    """A line at the distance of a point mass at the posterior's mean."""
    ax.axhline(distance, color=plot.COLOURS[3], linestyle="-.", linewidth=linewidth,
               label="a point mass at the posterior's mean")


def bound(ax: Axes, x: Any, y: Any, vacuous: bool, outside: bool, name: str, colour: str,
          of_average: bool) -> None:
    """A theorem's bound; that of the agents has its own dashes, so that both are told apart in grey too."""
    plot.bound(ax, x, y, vacuous, outside, name, colour)
    ax.lines[-1].set_linestyle("--" if of_average else (0, (6, 2, 1, 2, 1, 2)))


def snapped(values: Any) -> np.ndarray:
    """Zero where there is nothing beyond rounding."""
    return np.where(np.abs(values) < ROUNDING, 0.0, values)
