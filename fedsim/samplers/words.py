"""A sampler about itself: its round in words and as LaTeX, and the temperature that it aims at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..settings.network import connected_components
from ..settings.validation import Array
from .clients import Clients
from .loops import Body
from .rounds import Rounds, conserved, kept
from .trace import Past, Trace

CLOSE = 1e-8
"""Relative differences below this are rounding."""


class SamplerWarning(UserWarning):
    """A sampler that can run and hardly means what it says, as sqrt(eta) for sqrt(2 eta).

    Examples
    --------
    >>> import warnings
    >>> from fedsim.samplers import grad, noise, sqrt
    >>> @fs.sampler
    ... def cold(x, *, step_size):
    ...     return x - step_size * grad(x) + sqrt(step_size) * noise()
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     law = theory.exact_law(fs.Quadratic([1.0], [[0.0]]), cold(step_size=0.1), 3)
    >>> print(str(told[0].message)[:72])
    cold aims at exp(-f/0.5): noise and gradients fit temperature 0.5, not 1
    """


class Aim(NamedTuple):
    """The law that small steps of a sampler follow: exp(-f / temperature).

    f is of the clients' own weights unless `other_weights`; `why` says what there is where no law is.
    """

    temperature: float
    other_weights: bool = False
    why: str = ""


def aim_of(trace: Trace, components: bool) -> Aim:
    """The temperature that the formulas of a round fit, by the slow mode of a round without curvature.

    With l'M = l' and M p = p, where p moves every client by one and l'p = 1, the number l'z moves by
    l'B g + l'E xi: it is a Langevin step at temperature |l'E|^2 / (-2 l'B g) for gradients g of one in all.
    """
    N = trace.n_clients
    shares = np.full(N, 1.0) if components else trace.weights
    uneven = 1.0 + np.arange(N) % 7 / 3.0  # gradients of all clients one, or uneven ones
    pulls = -np.stack([np.ones(N), uneven])[:, :, None] / shares.sum()
    rounds = Rounds.of(trace, Clients(np.zeros((2, N, 1, 1)), pulls, None))
    whole, basis = kept(rounds.round())
    left, right = _null(whole.deviation[0])
    if not left.shape[1]:
        return Aim(np.nan, why="without gradients a round moves clients that agree, as if something pulled "
                   "them to the origin")
    adding = left @ _null(right.T @ left)[1]  # it is kept for ever, and moves other parts
    if adding.shape[1]:
        return Aim(np.nan, why="gradients add up in another part of the state, "
                   f"{_parts(rounds, basis @ adding)}, which is kept for ever: a momentum has to fade, and a "
                   "tracker to give back what it took")
    if left.shape[1] > 1:
        return Aim(np.nan, why=f"without gradients a round leaves {left.shape[1]} directions alone, and not "
                   "one, so that it follows no f")
    slow, p = left[:, 0], right[:, 0]
    moved = (basis @ p)[:rounds.sizes()[0]]
    if np.ptp(moved) > CLOSE * np.abs(moved).max(initial=0.0):
        return Aim(np.nan, why="a round without gradients keeps clients apart that agree")
    slow = slow / (slow @ p) * moved.mean()
    even, other = -(whole.shift @ slow)
    if not even > 0.0:
        return Aim(np.nan, why="it does not move against the gradient")
    meant = even * (shares @ uneven) / shares.sum()
    return Aim(float(slow @ whole.noise[0] @ slow) / (2.0 * float(even)), abs(other - meant) > CLOSE * meant)


def _parts(rounds: Rounds, columns: Array) -> str:
    """The parts of the state that these columns (n, k) have numbers in."""
    ends = np.cumsum(rounds.sizes())[:-1]
    split = zip(rounds.trace.names, np.split(columns, ends), strict=True)
    return ", ".join(_named(part) for part, rows in split if np.abs(rows).max(initial=0.0) > CLOSE)


def _null(matrix: Array) -> tuple[Array, Array]:
    """Columns u of u'M = 0, and v of M v = 0."""
    U, size, V = np.linalg.svd(matrix)
    none = size <= CLOSE * max(1.0, float(size.max(initial=0.0)))
    return U[:, none], V.T[:, none]


def complaints(name: str, trace: Trace, follows: str, temperature: float) -> Iterator[str]:
    """A sentence for each thing that is hardly meant."""
    for node, _ in trace.every():
        if node.kind != "mix":
            continue
        rows, columns = (np.abs(node.payload.sum(axis=axis) - 1.0).max() for axis in (2, 1))
        if rows > CLOSE:
            yield (f"{name} mixes by a matrix whose rows do not sum to one (by {rows:.2g}): clients that "
                   "agree are moved")
        elif columns > CLOSE:
            yield (f"{name} mixes by a matrix whose columns do not sum to one (by {columns:.2g}): mixing "
                   "moves the average, and clients count differently")
    groups = groups_of(trace)
    if len(groups) > 1:
        told = ", ".join(str(set(group)) for group in groups[:4]) + (", ..." if len(groups) > 4 else "")
        yield (f"{name} has clients that never meet, {told}: no product with a matrix and no average joins "
               "them, so that each group follows gradients of its own")
        return
    if trace.period > 1 or trace.how_many("each"):
        return  # no single round, or none that is a matrix
    aim = aim_of(trace, follows == "components")
    if aim.why:
        yield f"{name} aims at no law exp(-f/T): {aim.why}"
        return
    if aim.other_weights:
        yield f"{name} follows other weights than the clients': their gradients enter the average otherwise"
    if abs(aim.temperature - temperature) > CLOSE * max(1.0, temperature):
        yield f"{name} {_misses(trace, aim.temperature, temperature)}"


def _misses(trace: Trace, aimed: float, wanted: float) -> str:
    """The law that a round aims at instead of its target, and the mend."""
    if not aimed > CLOSE:
        why = "has noise that does not reach the average" if trace.how_many("noise") else "has no noise"
        return f"{why}: it descends f, and samples no law"
    ratio = wanted / aimed
    return (f"aims at exp(-f/{aimed:.6g}): noise and gradients fit temperature {aimed:.6g}, not {wanted:g}; "
            f"noise sqrt({ratio:.6g}) = {np.sqrt(ratio):.6g} times as large would aim at it")


def groups_of(trace: Trace) -> list[list[int]]:
    """The clients that a round joins, in any of its turns, by products with matrices or by averages."""
    links: list[Array] = []
    for node, _ in trace.every():
        if node.kind == "mean":
            return [list(range(trace.n_clients))]  # all get it
        if node.kind == "mix":
            links.append((node.payload != 0.0).any(axis=0))
        elif node.kind == "random":  # the row of an average is for all
            links.append((np.stack([node.payload.mean, *node.payload.roots]) != 0.0).any(axis=0))
    if not links:
        return [[client] for client in range(trace.n_clients)]
    shape = (trace.n_clients, trace.n_clients)
    count, group = connected_components(np.broadcast_to(np.any(np.broadcast_arrays(*links), axis=0), shape))
    return sorted(np.flatnonzero(group == one).tolist() for one in range(count))


def conserved_words(rounds: Rounds) -> str:
    """The sums that no round changes, by parts of the state; "" without."""
    found = conserved(rounds.round())
    if not found.shape[1]:
        return ""
    return f"{found.shape[1]} of {len(found)} numbers, made of {_parts(rounds, found)}"


def _named(part: str | Past) -> str:
    return part if isinstance(part, str) else f"past({part[0]}, {part[1]})"


def _factor(c: Any) -> str:
    if not isinstance(c, np.ndarray):
        return f"{c:.6g}"
    return f"({'one a client' if c.shape[1] > 1 else 'one a round'}: {c.ravel()[0]:.4g}, ...)"


def _sum(terms: Sequence[tuple[int, Any]], names: Sequence[str]) -> str:
    text = ""
    for node, c in terms:
        number = not isinstance(c, np.ndarray)
        sign = "-" if number and c < 0 else "+"
        size = _factor(abs(c) if number else c)
        what = names[node] if size == "1" else f"{size} {names[node]}"
        text += f" {sign} {what}" if text else f"-{what}" if sign == "-" else what
    return text or "0"


def lines_of(nodes: Any, out: Sequence[int], news: Sequence[str], given: Sequence[str] = (),
             indent: str = "") -> list[str]:
    """A line for each thing that is computed, then one for each new value."""
    names, lines = list(given), []
    letters = {"noise": "xi", "grad": "g", "mix": "m", "mean": "a", "random": "r", "lin": "u", "each": "e",
               "potential": "f", "loop": ""}
    count = dict.fromkeys(letters, 0)
    for node in nodes:
        kind, payload, terms = node
        if kind in ("state", "past"):
            names.append(_named(payload))
            continue
        if kind == "out":
            names.append(f"{names[terms[0][0]]}[{payload + 1}]")
            continue
        count[kind] += 1
        if kind == "loop":
            body: Body = payload
            inputs = [f"y{i + 1}" for i in range(body.n_inputs)]
            begins = [names[m] if m >= 0 else "0" for m, _ in terms]
            begun = ", ".join(map(" = ".join, zip(inputs, begins, strict=True)))
            lines.append(f"{indent}{body.turns} times, from {begun}:")
            lines += lines_of(body.nodes, body.outputs, inputs, inputs, indent + "    ")
            names.append("y")
            continue
        name = f"{letters[kind]}{count[kind]}"
        if kind == "noise":
            names.append(f"{name}{' (common)' if payload else ''}")
            continue
        if kind == "each":
            lines.append(f"{indent}{name} = {payload.name}({', '.join(names[m] for m, _ in terms)})")
            names.append(name)
            continue
        shape = f"mean({{}}, drawn={payload.of!r})" if kind == "random" and len(payload.mean) == 1 else {
            "grad": "grad({})", "potential": "potential({})", "mix": "W @ ({})", "mean": "mean({})",
            "random": "(random W) @ ({})", "lin": "{}"}[kind]
        what = shape.format(_sum(terms, names))
        lines.append(f"{indent}{name} = {what}")
        names.append(name)
    return lines + [f"{indent}new {new} = {names[o]}" for new, o in zip(news, out, strict=True)]


def words_of(trace: Trace) -> str:
    """A round, line by line; xi are standard normals, drawn anew."""
    return "\n".join(lines_of(trace.nodes, trace.out, [_named(part) for part in trace.names]))


def latex_of(trace: Trace) -> str:
    """The same as rows of an aligned formula.

    Examples
    --------
    >>> from fedsim.samplers import grad, noise, sqrt
    >>> @fs.sampler
    ... def langevin(x, *, step_size):
    ...     return x - step_size * grad(x) + sqrt(2 * step_size) * noise()
    >>> print(langevin(step_size=0.5).latex(fs.Quadratic([1.0], [[0.0]])))
    \\begin{aligned}
    g_{1} &= \\nabla f(x) \\\\
    u_{1} &= x - 0.5 g_{1} + \\xi_{1} \\\\
    x' &= u_{1}
    \\end{aligned}
    """
    rows = []
    for line in words_of(trace).splitlines():
        left, equals, right = line.partition(" = ")
        if not equals:
            rows.append(rf"&\text{{{line.strip()}}}")
            continue
        for old, new in ((r"new ([\w(), ]+)", r"\1'"), (r"\bxi(\d+) \(common\)", r"\\bar\\xi_{\1}"),
                         (r"\bxi(\d+)", r"\\xi_{\1}"), (r"\b([efgmauy])(\d+)", r"\1_{\2}"),
                         (r"grad\((.*)\)", r"\\nabla f(\1)"), (r"potential\((.*)\)", r"f(\1)"),
                         (r"W @ \((.*)\)", r"W (\1)"),
                         (r"mean\((.*)\)", r"\\overline{\1}"), (r"past\((\w+), (\d+)\)", r"\1^{(-\2)}")):
            left, right = re.sub(old, new, left), re.sub(old, new, right)
        rows.append(f"{left.strip()} &= {right}")
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"
