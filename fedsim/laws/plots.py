"""Pictures of laws, runs and bounds: one look for each kind of curve. Needs matplotlib (extra `plot`).

`fs.plot` is the picture of all together; `from fedsim.plot import exact` and the like give the parts that it
is made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..settings.validation import instance, one_of, shown, whole, whole_numbers
from .distance import check_quantile

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .law import Law


class Bounds(Protocol):
    """A bound of `theory`, told from laws by this."""

    @property
    def hypotheses_hold(self) -> bool:
        """False draws it in grey."""


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#8C8C8C"
EXACT, BAND, FLOOR, BOUND = ("exact law", "replicas (95% band)", "finite-replica floor", "bound")
BY_HAND = "law as given"
"""What a law is called that nobody knows the algorithm of."""
QUANTITIES = ("w2", "mean", "variance")
MOST_COORDINATES = 6
"""Coordinates that `draw_law` tells apart."""


def exact(ax: Axes, x: Any, y: Any, colour: str, label: str = EXACT, **options: Any) -> None:
    """The exact law: a solid line."""
    ax.plot(x, y, color=colour, label=label, solid_capstyle="butt", **options)


def replicas(ax: Axes, x: Any, value: Any, low: Any, high: Any, colour: str,
             label: str | None = BAND) -> None:
    """Replicas: a thin line with its band."""
    ax.fill_between(x, low, high, color=colour, alpha=0.22, linewidth=0, label=label)
    ax.plot(x, value, color=colour, linewidth=0.8, alpha=0.9, linestyle=(0, (1, 1)))


def floor(ax: Axes, level: float, label: str | None = FLOOR) -> None:
    """The distance that a fit to this many perfect draws would show."""
    ax.axhline(level, color="#000000", linestyle=":", linewidth=1.1, label=label)


def bound(ax: Axes, x: Any, y: Any, vacuous: bool, outside: bool, name: str = BOUND,
          colour: str = COLOURS[6]) -> None:
    """A published bound; grey, and called so, where it is vacuous or outside its hypotheses."""
    remarks = [text for text, holds in (("vacuous", vacuous), ("outside its hypotheses", outside)) if holds]
    label = f"{name} ({', '.join(remarks)})" if remarks else name
    ax.plot(x, y, color=GREY if remarks else colour, linestyle="--", label=label)


def once(ax: Axes, **options: Any) -> None:
    """A legend in which every name stands once."""
    handles, labels = ax.get_legend_handles_labels()
    names = dict(zip(labels, handles, strict=True))
    ax.legend(names.values(), names.keys(), **options)


def new_figure(size: tuple[float, float] = (6.4, 4.4)) -> Figure:
    """An empty figure of this width and height, in inches.

    Raises
    ------
    ImportError
        Where matplotlib is not installed, naming the extra.
    """
    return _pyplot().figure(figsize=size, layout="constrained")


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'fedsim-theory[plot]'") from None
    return pyplot


def new_axes(ax: Axes | None) -> Axes:
    """The given axes, or those of a new figure; an ImportError as that of `new_figure`."""
    if ax is None:
        return new_figure().subplots()
    _pyplot()
    from matplotlib.axes import Axes

    return instance("ax", ax, Axes, advice="None makes a new figure")


def plot(*what: Law | Bounds, ax: Axes | None = None, legend: bool = True) -> Axes:
    """W2 to the target against rounds: exact laws, replicas with band and floor, bounds, on the same axes.

    Parameters
    ----------
    *what : Law, Run and Bound
        At least one, in any order; bounds on W2 only. A bound that is vacuous or outside its hypotheses is
        grey and called so.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    legend : bool
        Below the axes, where it hides nothing.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        Naming what is no law, run or bound, or a bound on something else than W2.
    ImportError
        Where matplotlib is not installed.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.05, local_steps=5)
    >>> law = theory.exact_law(problem, algorithm, n_rounds=50)
    >>> bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
    >>> fs.plot(law, bound).get_ylabel()
    '$W_2$ to the target'
    """
    from .law import Law

    if not what:
        raise ValueError("plot() has nothing to draw; pass laws, runs or bounds")
    parts: tuple[Any, ...] = what
    for number, one in enumerate(parts):
        if isinstance(one, Law):
            continue
        if isinstance(one, type) or not hasattr(one, "hypotheses_hold"):
            raise ValueError(f"argument {number} of plot is {type(one).__name__}; it must be a Law, Run or "
                             "Bound")
        if one.quantity != "w2" or one.index != "round":
            raise ValueError(f"argument {number} of plot is a bound on {one.quantity} at {one.index}s; it "
                             "must be one on w2 at rounds: theory.check(bound, law).plot() draws others")
    one_of("legend", legend, (True, False))
    axes = new_axes(ax)
    kinds = {kind: sum(_kind(one) == kind for one in parts) for kind in ("law", "run", "bound")}
    for number, one in enumerate(parts):
        colour = COLOURS[number % 6]
        many = kinds[_kind(one)] > 1
        if _kind(one) == "bound":
            name = f"{one.source} ({one.variant})" if many else f"{BOUND}: {one.source}"
            bound(axes, one.rounds, one.value, one.is_vacuous, not one.hypotheses_hold, name,
                  colour if many else COLOURS[6])
        else:
            draw_law(axes, one, "w2", colour, f" of {_named(one)}" if many else "")
    axes.set(xlabel="communication rounds", ylabel="$W_2$ to the target")
    finish(axes, max(int(one.rounds[-1]) for one in parts), legend)
    return axes


def _kind(one: Any) -> str:
    return "bound" if hasattr(one, "hypotheses_hold") else "run" if hasattr(one, "n_replicas") else "law"


def _named(one: Any) -> str:
    return one.of.algorithm.words if one.of.algorithm is not None else one.label or type(one).__name__


def _word(one: Any) -> str:
    """What a law or run is called in a legend: exact is what was worked out for an algorithm alone."""
    return BAND if _kind(one) == "run" else EXACT if one.of.algorithm is not None else BY_HAND


def draw_law(ax: Axes, law: Any, what: str, colour: str = COLOURS[0], more: str = "") -> None:
    """One quantity of a law or run against rounds.

    Parameters
    ----------
    what : "w2", "mean" or "variance"
        The latter two have a line for each of the first coordinates, and dotted ones for the target.
    more : str
        Stands behind the names in the legend.
    """
    from .law import variances_of

    run = law if _kind(law) == "run" else None
    if what == "w2":
        value = law.w2()
        if run is None:
            exact(ax, law.rounds, value, colour, _word(law) + more)
            return
        low, high = run.w2_interval().T
        replicas(ax, run.rounds, value, low, high, colour, _word(run) + more)
        floor(ax, float(run.w2_floor()[-1]), FLOOR + more)
        return
    values = law.mean if what == "mean" else variances_of(law._covariance())
    aims = None if law.target is None else law.target.mean if what == "mean" else law.target.variances
    for i in range(min(law.dim, MOST_COORDINATES)):
        own = COLOURS[i]
        ax.plot(law.rounds, values[:, i], color=own, label=f"{what} of coordinate {i}{more}",
                linestyle="-" if run is None else (0, (1, 1)))
        if aims is not None:
            ax.axhline(aims[i], color=own, linestyle=":", linewidth=1.1, label="the target's")


def draw_one(law: Any, ax: Axes | None, what: str) -> Axes:
    """`Law.plot` and `Run.plot`."""
    one_of("what", what, QUANTITIES)
    if what == "w2":
        return plot(law, ax=ax)
    axes = new_axes(ax)
    draw_law(axes, law, what)
    axes.set(xlabel="communication rounds", ylabel=what)
    finish(axes, int(law.rounds[-1]), True, log=False)
    return axes


def finish(ax: Axes, last: int, legend: bool = True, log: bool = True) -> None:
    """Scales that keep round 0, and the legend."""
    if last > 2000:  # where recorded rounds are spaced logarithmically
        ax.set_xscale("symlog", linthresh=1.0)
    lines = np.concatenate([np.asarray(line.get_ydata(), float).ravel() for line in ax.lines])
    if log and (lines > 0.0).any():  # what is 0 throughout, as from a start at the target, has no logarithm
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.4 * float(lines[lines > 0.0].min()))  # bands may reach down to 0
    if legend:
        once(ax, loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=9, ncols=2, frameon=False)


def animate(law: Any, *others: Any, coordinates: Any = None, level: float = 0.95,
            interval: int = 80) -> FuncAnimation:
    """Laws over their recorded rounds: densities of one coordinate, or ellipses of two.

    Parameters
    ----------
    law, *others : Law or Run
        With the same recorded rounds, and covariances.
    coordinates : one or two numbers, optional
        By default the first two, or the only one.
    level : float
        Probability inside each ellipse.
    interval : int
        Milliseconds a frame.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        ``.to_jshtml()`` for a notebook, ``.save("laws.gif")`` for a file.

    Raises
    ------
    ValueError
        Naming what does not fit.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0, 1.0], [1.0, 0.0]]), fs.FALD(0.05)
    >>> movie = fs.animate(theory.exact_law(problem, algorithm, n_rounds=3))
    >>> movie.to_jshtml()[:1]
    '\\n'
    """
    from .law import Law

    laws = [instance(f"laws[{number}]", one, Law) for number, one in enumerate((law, *others))]
    for number, one in enumerate(laws):
        if not np.array_equal(one.rounds, law.rounds) or one.dim != law.dim:
            raise ValueError(f"laws[{number}] has other rounds or another dimension; all must have the same")
    chosen = [0, 1][:law.dim] if coordinates is None else whole_numbers("coordinates", coordinates).tolist()
    if not 1 <= len(chosen) <= 2:
        raise ValueError(f"coordinates={shown(coordinates)} must be one or two numbers")
    interval = whole("interval", interval, 1)
    check_quantile(level)
    axes = new_axes(None)
    from matplotlib.animation import FuncAnimation

    figure: Any = axes.get_figure(root=True)
    frames = [[one.at(int(number)).marginal(chosen) for one in laws] for number in law.rounds]
    targets = [] if law.target is None else [law.target.marginal(chosen)]
    shape = _density if len(chosen) == 1 else lambda one, span: one.ellipse(level).T
    span = _span([one for row in frames for one in row] + targets)
    for target in targets:
        axes.plot(*shape(target, span), color="#000000", linestyle=":", label="target")
    lines = [axes.plot([], [], color=COLOURS[number], linestyle="--" if _kind(one) == "run" else "-",
                       label=f"{_word(one).removesuffix(' (95% band)')} of {_named(one)}")[0]
             for number, one in enumerate(laws)]
    axes.set(xlim=span[0], xlabel=f"coordinate {chosen[0]}")
    if len(chosen) == 2:
        axes.set(ylim=span[1], ylabel=f"coordinate {chosen[1]}")
    else:
        heights = [shape(one, span)[1].max() for one in [*targets, *frames[-1]]]
        axes.set(ylim=(0.0, 1.6 * max(heights)), ylabel="density")
    once(axes, loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize=9, frameon=False)

    def show(number: int) -> Any:
        for line, one in zip(lines, frames[number], strict=True):
            line.set_data(*shape(one, span))
        axes.set_title(f"round {law.rounds[number]}")
        return lines

    return FuncAnimation(figure, show, frames=len(frames), interval=interval)


def _span(laws: list[Any]) -> list[tuple[float, float]]:
    """Limits of each coordinate that hold the laws."""
    low = np.min([one.mean - 3.5 * np.sqrt(one.variances) for one in laws], axis=0)
    high = np.max([one.mean + 3.5 * np.sqrt(one.variances) for one in laws], axis=0)
    wide = np.where(high > low, 0.0, 1.0)
    return [(float(a), float(b)) for a, b in zip(low - wide, high + wide, strict=True)]


def _density(one: Any, span: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """A density along the axis; of a point, a line at it."""
    x = np.linspace(*span[0], 400)
    if one.variances[0] == 0.0:
        return np.repeat(one.mean, 2), np.array([0.0, 1e3])
    return x, one.pdf(x[:, None])
