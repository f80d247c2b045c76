"""Leapfrog steps in the code of a program: what operations do in three passes each, one does for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import operations as ops

OUT, A, B, K, L, M, TIMES, C = 1, 2, 3, 4, 5, 6, 7, 9
"""Columns of the code; as a leap has them: x after, x and v before, factors of the first kick, of drifts and
of further kicks, times, and v after.

v is lost where it and x would go to the same register."""
_READS = {ops.FILL: (), ops.ADD: (OUT, A), ops.ADD_PAIR: (OUT, A, B), ops.PAIR: (A, B), ops.NOISE: (OUT,),
          ops.SHARED_NOISE: (OUT,), ops.KICK: (OUT, A), ops.SHARED_KICK: (OUT, A),
          ops.DAMPED_KICK: (OUT, A), ops.STEP: (OUT,), ops.EACH: (A, B, C), ops.LEAP: (A, B)}
"""Columns of the registers that an operation reads; (A,) for all others."""
MOST_TIMES = 10_000
"""Leaps of one operation, which is not stopped while it runs."""

Line = list[int]


def with_leaps(code: Sequence[Line], widths: Sequence[int], tables: Any) -> list[Line]:
    """The code of one part, of clients one after the other, with its leapfrog steps in one operation each.

    Parameters
    ----------
    code : sequence of lines
    widths : sequence of int
        1 for registers that are kept beyond the part.
    tables
        Of coefficients.
    """
    code, found, at = _as_late(list(code)), [], 0
    while at < len(code):
        leap, length = _leap(code[at:at + 3], tables)
        read, rest = code[at:at + length], code[at + length:]
        lost = {line[OUT] for line in read if line[0] == ops.MODES_GRAD} - {*leap[OUT:OUT + 1]}
        if leap and all(_is_free(gradient, rest, widths) for gradient in lost):
            found.append(leap)
            at += length
        else:
            found.append(code[at])
            at += 1
    return _merged(found, widths, tables)


def repeats(line: Line, turns: int) -> bool:
    """Whether so many turns of this are one leap: it goes on from where it ends, and not for long."""
    goes_on = [line[OUT], line[C], line[K]] == [line[A], line[B], line[M]]
    return line[0] == ops.LEAP and goes_on and line[TIMES] * turns <= MOST_TIMES


def _as_late(code: list[Line]) -> list[Line]:
    """The same with every gradient beside what reads it."""
    for at in reversed(range(len(code) - 1)):
        while at + 1 < len(code) and code[at][0] == ops.MODES_GRAD:
            line, other = code[at], code[at + 1]
            used = {other[column] for column in (OUT, *_READS.get(other[0], (A,)))} | (
                {other[C]} if other[0] == ops.LEAP else set())
            if line[OUT] in used or other[OUT] == line[A]:
                break
            code[at], code[at + 1], at = other, line, at + 1
    return code


def _is_free(register: int, code: Sequence[Line], widths: Sequence[int]) -> bool:
    """Whether nothing reads a register any more before it is written."""
    for line in code:
        if any(line[column] == register for column in _READS.get(line[0], (A,))):
            return False
        if line[OUT] == register or (line[0] == ops.LEAP and line[C] == register):
            return True
    return not widths[register]


def _sum(line: Line, one: int) -> dict[int, int]:
    """The terms of a sum: registers, and the places of their coefficients; that of 1 is `one`."""
    if line[0] == ops.PAIR:
        return {line[A]: line[K], line[B]: line[L]}
    if line[0] == ops.ADD:
        return {line[OUT]: one, line[A]: line[K]}
    return {line[OUT]: one, line[A]: line[K], line[B]: line[L]} if line[0] == ops.ADD_PAIR else {}


def _leap(code: Sequence[Line], tables: Any) -> tuple[Line, int]:
    """The leap that these lines begin with, if any, and how many of them it stands for."""
    one, kinds = tables.coefficient(1.0), [line[0] for line in code]
    sums, outs = [_sum(line, one) for line in code], [line[OUT] for line in code]
    if kinds[:1] == [ops.MODES_GRAD] and len(code) == 3:  # v + k g, x + l v
        g, x, (v_out, out) = outs[0], code[0][A], outs[1:]
        for v in sums[1].keys() - {g, x}:
            if sums[1] == {v: one, g: sums[1].get(g)} and sums[2] == {x: one, v_out: sums[2].get(v_out)}:
                return _line(out, x, v, sums[1][g], sums[2][v_out], v_out), 3
    last: dict[int, int] = {}  # a last step, whose v nothing reads: x + l v + m g, as a kick by m / l
    if kinds[:1] == [ops.MODES_GRAD]:
        g, x, out, length = outs[0], code[0][A], outs[1] if len(code) > 1 else g, 2
        if kinds[1:] == [ops.SCALE, ops.ADD_PAIR] and outs[1] == outs[2] == code[1][A] == g:
            last, length = {code[2][A]: code[2][K], code[2][B]: code[2][L], g: code[1][K]}, 3
        elif len(code) > 1 and outs[1] != g:
            last = sums[1]
    elif kinds == [ops.PAIR, ops.MODES_GRAD, ops.ADD] and outs[0] == outs[2] and code[2][A] == outs[1]:
        g, x, out, length = outs[1], code[1][A], outs[0], 3
        last = sums[0] | {g: code[2][K]} if g not in sums[0] and out not in (g, x) else {}
    if len(last) == 3 and last.get(x) == one and g in last:
        (v,) = last.keys() - {x, g}
        kick = tables.ratio(last[g], last[v])
        if kick is not None:
            return _line(out, x, v, kick, last[v], out), length
    return [], 1


def _line(out: int, x: int, v: int, kick: int, drift: int, v_out: int) -> Line:
    return [ops.LEAP, out, x, v, kick, drift, kick, 1, 0, v_out]


def _merged(code: Sequence[Line], widths: Sequence[int], tables: Any) -> list[Line]:
    """The same with consecutive leaps as one of so many times."""
    merged: list[Line] = []
    for at, line in enumerate(code):
        if merged and line[0] == merged[-1][0] == ops.LEAP:
            before, rest = merged[-1], code[at + 1:]
            lost = {before[OUT], before[C]} - {line[OUT], line[C]}
            kicks = {line[K], line[M]} | ({before[M]} if before[TIMES] > 1 else set())
            values = [tables.values(kick) for kick in sorted(kicks)]
            same = all(np.allclose(values[0], one, rtol=1e-15, atol=0.0) for one in values[1:])
            if ([line[A], line[B], line[L]] == [before[OUT], before[C], before[L]] and same
                    and all(_is_free(register, rest, widths) for register in lost)):
                times = before[TIMES] + line[TIMES]
                merged[-1] = [ops.LEAP, line[OUT], *before[A:M], min(kicks), times, 0, line[C]]
                continue
        merged.append(list(line))
    return merged
