"""Samplers that nobody wrote: functions of the notation, made of random lines."""

from __future__ import annotations

import linecache
from itertools import count

import numpy as np
from hypothesis import strategies as st

import fedsim as fs
from fedsim import samplers

NOT_SYMMETRIC = np.array([[0.5, 0.2, 0.3], [0.0, 0.6, 0.4], [0.7, 0.1, 0.2]])
MATRICES = {"W": fs.network.ring(3), "V": NOT_SYMMETRIC, "U": NOT_SYMMETRIC.T.copy(),
            "T": [NOT_SYMMETRIC, fs.network.complete(3)]}
FACTORS = ("0.5", "-0.3", "0.8", "1.0", "weights()", "sqrt(weights())", "step_size", "rate")
KINDS = ("sum", "sum", "grad", "noise", "common", "mix", "mean", "past", "loop", "known")
_NUMBER = count()


@st.composite
def _sums(draw, names):
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    return " + ".join(f"{draw(st.sampled_from(FACTORS))} * {name}" for name in chosen)


@st.composite
def _lines(draw, names, states, new):
    """One line that defines `new`; sometimes a loop that a trace rolls."""
    x, y = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    kind = draw(st.sampled_from(KINDS))
    if kind == "loop":
        inside = draw(st.sampled_from((f"{new} - 0.1 * grad({new}) + 0.2 * noise()",
                                       f"0.9 * {new} + 0.1 * W @ {new} + 0.1 * noise(common=True)",
                                       f"{new} - 0.2 * grad({new}) + 0.1 * {y}",
                                       f"V @ {new} + 0.3 * noise() - 0.1 * grad({x})")))
        return [f"{new} = {draw(_sums(names))}", f"for _ in range({draw(st.integers(2, 6))}):",
                f"    {new} = {inside}"]
    return [f"{new} = " + {
        "sum": lambda: draw(_sums(names)), "grad": lambda: f"grad({x})", "noise": lambda: "noise()",
        "common": lambda: "noise(common=True)", "mean": lambda: f"mean({x})",
        "mix": lambda: f"{draw(st.sampled_from(sorted(MATRICES)))} @ {x}",
        "known": lambda: f"mean({x}, of=((0, 1), (2,)))",
        "past": lambda: f"past({draw(st.sampled_from(states))}, {draw(st.integers(1, 3))})"}[kind]()]


@st.composite
def sources(draw):
    """The text of a sampler's function."""
    states = list("abc"[:draw(st.integers(1, 3))])
    names, lines = list(states), []
    for number in range(draw(st.integers(1, 6))):
        lines += draw(_lines(names, states, f"u{number}"))
        names.append(f"u{number}")
    results = [draw(st.one_of(_sums(names), st.sampled_from(names))) for _ in states]
    body = "\n".join(f"    {line}" for line in lines)
    return (f"def made({', '.join(states)}, *, step_size, rate, W, V, U, T):\n{body}\n"
            f"    return {', '.join(results)}\n")


def sampler_of(source, follows):
    """The sampler of a source, with a schedule and with numbers a client."""
    name = f"<sampler {next(_NUMBER)}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names = {word: getattr(samplers, word) for word in ("grad", "noise", "mean", "past", "weights", "sqrt")}
    exec(compile(source, name, "exec"), names)
    return fs.sampler(names["made"], follows=follows)(
        step_size=[0.3, 0.2, 0.1], rate=[0.5, 0.25, -0.5], **MATRICES)
