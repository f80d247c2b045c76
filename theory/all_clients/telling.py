"""Certificates in words, and in LaTeX."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

from .tracing import Polynomial, Table

WIDTH = 118
"""Columns of a printed line."""


def sentence(found: Any) -> str:
    """The statement that is proved, in a paragraph."""
    n = len(found.weights)
    clients = "one client" if n == 1 else f"{n} clients" if found.between is None else "any number of clients"
    (m, L), *others = sorted(set(found.curvatures))
    potentials = (f"potentials of {clients} with curvatures of their own" if others else
                  f"{float(m):g}-strongly convex, {float(L):g}-smooth potentials of {clients}")
    network = "" if found.between is None else ", on every network with eigenvalues from {:g} to {:g}".format(
        *map(float, found.between))
    starts = (f", from starts that agree in {' and in '.join(found.starts)}" if found.starts else
              ", from any two starts")
    forms = "one form" if len(found.modes) == 1 else f"a form for each of {len(found.modes)} modes"
    rate = _up(found.rate)
    return textwrap.fill(
        f"{found.name}: for all {potentials}{network} a round brings two chains with the same noise closer "
        f"by {rate}, in a norm with {forms}{starts}. Some quadratic clients have {found.quadratic:.9g}.",
        WIDTH, break_on_hyphens=False)


def _up(rate: Fraction) -> str:
    """At least the rate, by nine decimals."""
    return str(Decimal(ceil(rate * 10**9)).scaleb(-9).normalize())


def latex(found: Any) -> str:
    """The inequality, its tables, and for each mode what is proved."""
    one = len(set(found.curvatures)) == 1
    m, L = (_double(x) for x in found.curvatures[0]) if one else ("m_i", "L_i")
    lines = [
        r"\begin{align*}",
        rf"&\rho^2 \begin{{pmatrix}} P_j & 0 \\ 0 & 0 \end{{pmatrix}} - (F\;G)^\top P_j (F\;G)"
        rf" - \sum_i \lambda_i S_i \succeq 0, \qquad \rho = {_number(found.rate)},\\",
        rf"&2 S_i = (e_i - {m} y_i)({L} y_i - e_i)^\top + ({L} y_i - e_i)(e_i - {m} y_i)^\top,"
        r"\qquad y_i \text{ row } i \text{ of } (C T\;D),\\",
        r"&F = (T^\top T)^{-1} T^\top A T, \quad G = (T^\top T)^{-1} T^\top B,"
        r"\qquad T = I \text{ unless said},\\",
        rf"&\lambda = ({', '.join(map(_number, found.multipliers))})." + ("" if one else r" \\"),
        *([] if one else [r"&(m, L) = " + ", ".join(f"({_double(a)}, {_double(b)})"
                                                    for a, b in found.curvatures) + "."]),
        r"\end{align*}"]
    ones = "all clients" if found.by_client else "the mode of ones"
    systems = [(ones, found.rounds.consensus)]
    if found.rounds.rest is not None:
        systems.append(("other modes", found.rounds.rest))
    for name, system in systems:
        states = ", ".join(rf"\text{{{part}}}" for part in system.parts)
        lines.append(rf"\[ \text{{{name}}} \;({states}): \quad (A\;B) = {_polynomials(system.step)}, "
                     rf"\quad (C\;D) = {_polynomials(system.points)} \]")
    for number, one in enumerate(found.modes):
        at = (rf"\text{{{ones}}}" if not number else r"\text{other modes}" if one.at is None else
              rf"{_number(found.between[0])} \le w \le {_number(found.between[1])}" if found.between else
              rf"w = {_number(one.at.centre)} \pm {_number(one.at.radius)}")
        held = "".join(rf", \quad u = ({', '.join(map(_number, u))})" for u in one.kept.conserved)
        if one.kept.conserved and one.kept.basis:
            columns = [list(map(_number, row)) for row in zip(*one.kept.basis, strict=True)]
            held += rf", \quad T = {_matrix(columns)}"
        lines.append(rf"\[ {at}: \quad P = {_matrix([list(map(_number, row)) for row in one.form])}{held} \]")
    return "\n".join(lines)


def _number(x: Fraction) -> str:
    """A fraction as a decimal where it is one of at most 20 digits, and as a quotient elsewhere."""
    for digits in range(21):
        if (x * 10**digits).denominator == 1:
            whole = abs(x.numerator * 10**digits // x.denominator)
            text = str(whole).rjust(digits + 1, "0")
            sign = "-" if x < 0 else ""
            return sign + (f"{text[:-digits]}.{text[-digits:]}" if digits else text)
    return _double(x)


def _double(x: Fraction) -> str:
    """The shortest decimal of a double, which stands for that double."""
    near = float(x)
    if near != x:
        return rf"\tfrac{{{x.numerator}}}{{{x.denominator}}}"
    return repr(near).removesuffix(".0")


def _polynomial(one: Polynomial) -> str:
    terms = [(_double(c), "" if k == 0 else "w" if k == 1 else f"w^{k}") for k, c in enumerate(one) if c]
    told = " + ".join((c if not w else w if c == "1" else f"-{w}" if c == "-1" else f"{c} {w}")
                      for c, w in terms).replace("+ -", "- ")
    return told or "0"


def _polynomials(table: Table) -> str:
    return _matrix([[_polynomial(one) for one in row] for row in table])


def _matrix(rows: Sequence[Sequence[str]]) -> str:
    inner = r" \\ ".join(" & ".join(row) for row in rows)
    return rf"\begin{{pmatrix}} {inner} \end{{pmatrix}}"
