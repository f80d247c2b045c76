"""`certify`: the worst value of a quantity over a class of problems, between two proved ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedsim.settings.validation import instance, one_of, positive, whole

from ..certificates import refuse_flushing
from .boxes import Maximum, allowed, maximise
from .closed import QUANTITIES
from .closed.closed_form import Part, class_of, parts_of, require_left_out
from .exact_values import Instance, of_quantity
from .numbers import Interval
from .problem_class import ProblemClass

SAME = 1e-9
"""Relative difference up to which the project's own exact laws have to agree."""
ROUNDING = 1e-12
"""And the same relative to the target's standard deviation: a W2 near 0 is known no better."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Certified(Instance, Maximum):
    """The worst value of a quantity over a class: at least `lower` and at most `upper`, as is proved.

    Attributes
    ----------
    quantity, family : str
    lower, upper : float
        The value at `point` is at least `lower`, and no problem of the class has more than `upper`.
    point : dict of name -> float
        The unknowns where the value is at least `lower`; exactly these doubles.
    boxes : int
        How many were evaluated.
    at_point : float
        The value at `point` is at most this: how far rounding leaves it open.
    closed : bool
        Whether the relative width came below the tolerance, or the worst value is 0. Otherwise the boxes did
        not suffice, or rounding keeps the ends apart.
    interrupted : bool
        Whether Ctrl-C ended it; the ends are proved nevertheless.
    problem, algorithm, start, n_rounds
        The instance at `point`, for `theory.stationary_law` and `theory.exact_law`.
    problem_class : ProblemClass

    Examples
    --------
    >>> worst = theory.worst_case.certify("stale.variance_ratio", curvatures=(1.0, 10.0), step_size=0.05)
    >>> worst.point, round(worst.lower, 6), round(worst.verify(), 6)  # 1/(1 - step_size * curvature/2)
    ({'curvature': 10.0}, 1.333333, 1.333333)
    """

    quantity: str
    family: str
    problem_class: ProblemClass

    @property
    def relative_width(self) -> float:
        """(upper - lower)/lower; infinite where `lower` is not above 0."""
        return (self.upper - self.lower) / self.lower if self.lower > 0.0 else math.inf

    def verify(self) -> float:
        """The quantity at `point` by the project's exact laws, which share nothing with the closed form.

        Raises
        ------
        ValueError
            Where it is not between `lower` and `at_point`, up to the rounding of those laws.
        RuntimeError
            Where the thread flushes subnormal numbers to zero.
        """
        refuse_flushing()
        name, target = self.quantity.rpartition(".")[2], self.algorithm.target(self.problem)
        found = of_quantity(name, self).value
        unit = math.sqrt(target.variances.sum()) if QUANTITIES[name].squared else 1.0
        slack = SAME * self.lower + ROUNDING * unit
        if not self.lower - slack <= found <= self.at_point + slack:
            raise ValueError(f"lower={self.lower!r} of {self.quantity} comes out as {found!r} at "
                             f"{self.point}; it must be the same to {SAME:g}, or up to {self.at_point!r}")
        return found

    def __repr__(self) -> str:
        state = "" if self.closed else ", interrupted" if self.interrupted else ", not closed"
        at = ", ".join(f"{name}={value:.6g}" for name, value in self.point.items())
        rotated = "" if self.family == "commuting" else f" ({self.family})"
        return (f"Certified({self.quantity}{rotated} in [{self.lower:.9g}, {self.upper:.9g}]"
                f"{' at ' + at if at else ''}, {self.boxes} boxes{state})")


def certify(quantity: str, problem_class: ProblemClass | None = None, *, curvatures: Any = None,
            step_size: Any = None, local_steps: int = 1, leapfrog_steps: int = 1, shared_noise: Any = 0.0,
            weight: Any = 0.5, distance: Any = None, heterogeneity: Any = None, gradient_noise: Any = 0.0,
            mixing: Any = None, staleness: int = 0, start: Any = None, n_rounds: int | None = None,
            family: str = "commuting", tolerance: float = 1e-4, most_boxes: int = 1_000_000,
            progress: bool = False) -> Certified:
    """The worst value of a quantity over a class of scalar problems, between two proved ends.

    The class is a `ProblemClass`, as for `search`, or made of the numbers that follow it. Every number may be
    a pair (low, high): then it is an unknown, and the worst of the range is meant. At most four unknowns: two
    take well below a second, three seconds, four a minute. All numbers are the doubles that they are.

    Parameters
    ----------
    quantity : str
        "fa_ld.", "fa_hmc.", "de_sgld." or "stale." and one of "stationary_w2", "w2" (at round `n_rounds`),
        "stationary_bias" (distance of the mean from the minimizer; not of "stale") or "variance_ratio"
        (stationary variance over the target's, of which the largest is meant).
    problem_class : ProblemClass, optional
        Of two clients in one dimension, or of rotated Hessians with ``spectra="ends"``; of several numbers of
        steps or rounds the worst is meant. No other argument about the class may be given then.
    curvatures : float or (low, high)
        Of both clients: a pair is two unknowns, but one of "stale". Of "de_sgld" those of the components
        that agents follow, as its gradients and their noise are.
    step_size : float or (low, high)
    local_steps, leapfrog_steps : int
        Of "fa_ld" and "fa_hmc"; of "fa_hmc".
    shared_noise, weight : float or (low, high)
        Of "fa_ld" and "fa_hmc"; `weight` is that of client 1, strictly between 0 and 1.
    distance : float or (low, high)
        Between the clients' minimizers, which are 0 and `distance`. Either this or
    heterogeneity : float or (low, high)
        Largest norm of a client's gradient at the global minimizer x_*; the gradients are opposite, as
        large as that allows, and in the worse direction; of a start only the distance matters then.
    gradient_noise : float or (low, high)
        Standard deviation of every gradient.
    mixing : float or (low, high)
        w of "de_sgld", strictly between 0 and 1, where the mixing matrix is [[1-w, w], [w, 1-w]].
    staleness : 0 or 1
        Of "stale": age of every gradient.
    start : float or (low, high), optional
        Of "w2": the point where all begin, measured from client 1's minimizer where `distance` is given,
        and from x_* otherwise. 0 by default.
    n_rounds : int
        Of "w2". What is stale is long to evaluate, and hard to close, after hundreds.
    family : "commuting" or "rotated"
        "rotated" is "fa_ld" in the plane with equal weights, where the clients' Hessians have both
        `curvatures` as eigenvalues and any angle between them: `cosine_squared` of half of it is an
        unknown. With one local step, or little heterogeneity, Hessians that commute are worse: see
        `commuting_supremum`.
    tolerance : float
        Relative width at which to stop.
    most_boxes : int
        How many to evaluate at most. With fewer than needed the interval is wider, `closed` is False, and
        all is still proved.
    progress : bool
        Print a line now and then.

    Returns
    -------
    Certified

    Raises
    ------
    ValueError
        Naming argument, value and condition, before any work begins: also where a problem of the class has no
        stationary law, or arguments do not belong to the quantity.
    RuntimeError
        Where the thread flushes subnormal numbers to zero.

    Source: derived here: closed forms of `theory.worst_case.closed`, interval arithmetic and branch and
    bound.

    Examples
    --------
    >>> worst = theory.worst_case.certify("fa_ld.stationary_w2", curvatures=(1.0, 10.0), step_size=0.02,
    ...                                   local_steps=5, distance=2.0, tolerance=1e-6)
    >>> round(worst.lower, 6), round(worst.upper, 6), round(worst.point["curvature_1"], 6)
    (0.110193, 0.110193, 10.0)
    >>> bool(abs(worst.verify() / worst.lower - 1.0) < 1e-9)
    True

    The class of a search:

    >>> cls = theory.worst_case.ProblemClass(condition=10.0, step_size=0.02, local_steps=5, heterogeneity=3.0,
    ...                                      weights="equal", shared_noise=0.0, gradient_noise=0.0)
    >>> found = theory.worst_case.search("fa_ld.stationary_w2", cls, budget=100)
    >>> bool(found.value <= theory.worst_case.certify("fa_ld.stationary_w2", cls).upper)
    True
    """
    given = {name: value for name, value in locals().items()
             if name not in ("quantity", "problem_class", "tolerance", "most_boxes", "progress")}
    defaults: Any = certify.__kwdefaults__
    told = {name: value for name, value in given.items() if not (value is defaults[name] or (
        type(value) in (int, float, str) and value == defaults[name]))}
    refuse_flushing()
    if problem_class is None:
        problem_class = class_of(quantity, given, told)
    else:
        instance("problem_class", problem_class, ProblemClass)
        require_left_out(told, (), "the problem class says it")
    cases = [case for part in parts_of(quantity, problem_class) for case in _cases(part)]
    tolerance, most = positive("tolerance", tolerance), whole("most_boxes", most_boxes, 1)
    one_of("progress", progress, (True, False))
    for case in cases:  # what the problems refuse is refused before the work
        for end in (0, 1):
            case.form.instance(_floats(case, tuple(ends[end] for ends in case.ranges.values())))
    row, best = cases[0].quantity, None
    upper, boxes, closed, interrupted = -math.inf, 0, True, False
    for case in cases:
        found = _maximum(case, tolerance * (2.0 if row.squared else 1.0),
                         1 if interrupted else max(most // len(cases), 1), progress)
        if best is None or found.lower > best[0].lower:
            best = found, case
        upper, boxes = max(upper, found.upper), boxes + found.boxes
        closed, interrupted = closed and found.closed, interrupted or found.interrupted
    assert best is not None
    (found, case), values = best, _floats(best[1], best[0].point)
    lower, at_point = found.lower, found.at_point
    if row.squared:
        lower = float(Interval(max(lower, 0.0), math.inf).sqrt().lo)
        upper, at_point = (float(Interval(0.0, max(end, 0.0)).sqrt().hi) for end in (upper, at_point))
    at: dict[str, Any] = vars(case.form.instance(values)) | {"n_rounds": case.counts.get("n_rounds")}
    point = {name: values[name] for name in case.ranges}
    return Certified(lower, upper, at_point, point, boxes, closed, **at, interrupted=interrupted,
                     quantity=quantity, family=case.form.family, problem_class=problem_class)


def _cases(cls: Part) -> Iterator[Part]:
    """The class in parts where its formula is smooth: whose weight is the smaller, on which side a start is.

    Both matter only where gradients are bounded: the lighter client's is the largest then, and its sign is
    free.
    """
    plain = replace(cls, counts={**cls.counts, "lighter": 1, "side": 1}, fixed={"start": 0.0, **cls.fixed})
    if not cls.form.apart:
        yield plain
    elif "heterogeneity" not in {*cls.fixed, *cls.ranges}:
        away = {} if "distance" in {*cls.fixed, *cls.ranges} else {"distance": 0.0}
        yield replace(plain, fixed={**plain.fixed, **away})
    else:
        for side in (1, -1) if "start" in cls.ranges or cls.fixed.get("start", 0.0) != 0.0 else (1,):
            low, high = cls.ranges.get("weight", (cls.fixed.get("weight", 0.5),) * 2)
            cut = [(low, min(high, 0.5), 1), (max(low, 0.5), high, 2)]
            for begin, end, lighter in cut if low < 0.5 < high else cut[:1] if high <= 0.5 else cut[1:]:
                ranges = {name: (begin, end) if name == "weight" else ends
                          for name, ends in cls.ranges.items()}
                yield replace(plain, ranges=ranges, counts={**plain.counts, "lighter": lighter, "side": side})


def _maximum(case: Part, tolerance: float, most: int, progress: bool) -> Maximum:
    """The largest value of the objective on one part."""
    known = {**{name: Interval.exact(value) for name, value in case.fixed.items()}, **case.counts}

    def objective(unknowns: list[Any]) -> Any:
        values: Mapping[str, Any] = {**known, **dict(zip(case.ranges, unknowns, strict=True))}
        return case.quantity.objective(case.form.moments(values, case.counts.get("n_rounds")))

    if case.ranges:
        return maximise(objective, list(case.ranges.values()), tolerance=tolerance, most_boxes=most,
                        progress=progress)
    value = objective([])
    low, high = float(value.lo), float(value.hi)
    return Maximum(low, high, high, (), 1, high <= allowed(low, tolerance))


def _floats(case: Part, point: tuple[float, ...]) -> dict[str, float]:
    """All numbers at a point."""
    return {**case.fixed, **case.counts, **dict(zip(case.ranges, point, strict=True))}
