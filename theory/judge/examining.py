"""examine: a theorem's own bound on a problem, against the exact quantity it is about."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from fedsim.interfaces import Algorithm, Problem, offers
from fedsim.provenance import Provenance, compared
from fedsim.settings.validation import instance, one_of, shown, whole

from ..declare.bound import Bound
from ..declare.privacy_numbers import CHECKS, NUMBERS
from ..declare.registry import Theorem, TheoremLike, about
from ..declare.statement import called
from ..facts.constants_of_problem import Constants, constants
from ..float_range import float64_range
from .checking import QUANTITIES, TOLERANCE, Measured, measure, verdict_on
from .verdict import Verdict, instead_of_verdict


def examine(theorem: TheoremLike, problem: Problem, algorithm: Algorithm,
            n_rounds: int, *, start: Any = None, record: Any = None, variant: str | None = None,
            known: Constants | None = None, privacy: Mapping[str, Any] | None = None) -> Verdict:
    """Evaluate a theorem on a problem and check it against the exact quantity.

    Parameters
    ----------
    theorem : str, Theorem or callable
        An id of `theory.catalogue`, e.g. "fa_ld.w2_bound", a number as "Theorem 4.7", or the function.
    problem, algorithm, n_rounds, start
        As for `theory.exact_law`.
    record : sequence of int, optional
        Rounds (or local steps, where the theorem counts those) to compare at.
    variant : str, optional
        The theorem's default variant when not given.
    known : Constants, optional
        In place of ``theory.constants(problem, algorithm, start)``.
    privacy : mapping, optional
        Needed by statements on privacy, about numbers that neither problem nor algorithm has: those of
        sensitivity, batch_fraction, delta0, delta1, delta2 and client_sizes that the statement takes, as for
        `theory.privacy.guarantee`.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        For rates, for constants that are known to be of another problem or start, and where a statement on
        privacy lacks a number.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2)
    >>> verdict = theory.examine('fa_ld.w2_bound', problem, algorithm, 50)
    >>> verdict.holds, verdict.hypotheses_met
    (True, True)
    """
    offers("problem", problem, Problem)
    entry = about(theorem, algorithm)
    n_rounds = whole("n_rounds", n_rounds)
    entry.require(algorithm, problem)
    numbers = numbers_of(entry, checked_numbers(privacy))
    facts = constants(problem, algorithm, start) if known is None else instance("known", known, Constants)
    bound, measured = both_sides(entry, problem, algorithm, n_rounds, facts, start=start, record=record,
                                 variant=variant, given=numbers)
    note = compared(bound.of, Provenance.of(problem, algorithm, start), ("bound", "law"), True)
    return verdict_on(bound, measured, note, True)


def checked_numbers(privacy: Any) -> dict[str, Any]:
    """The argument `privacy`: numbers by name, each as it has to be."""
    numbers = dict(instance("privacy", privacy, Mapping, type(None)) or {})
    for name, value in numbers.items():
        one_of("privacy", name, NUMBERS)
        if name in CHECKS:
            CHECKS[name](name, value)
    return numbers


def asks_for(entry: Theorem) -> list[str]:
    """Names of the numbers on privacy that a statement takes; none of other statements."""
    return [name for name in NUMBERS if name in inspect.signature(entry.function).parameters]


def numbers_of(entry: Theorem, numbers: Mapping[str, Any]) -> dict[str, Any] | None:
    """Those `numbers` that a statement on privacy takes, or a ValueError; None for other statements."""
    names = asks_for(entry)
    missing = [name for name in names if name not in numbers and name != NUMBERS[-1]]
    if missing:
        raise ValueError(f"privacy={shown(dict(numbers) or None)} must give {', '.join(missing)}: "
                         f"theorem={entry.id!r} is about them, and neither problem nor algorithm has them")
    return {name: numbers[name] for name in names if name in numbers} if names else None


def drawn_numbers(entry: Theorem, problem: Problem, algorithm: Algorithm, n_rounds: int,
                  start: Any = None) -> dict[str, Any] | None:
    """What searches over random settings give as `privacy`, drawn by the statement's own rule."""
    if not asks_for(entry) or entry.inputs is None:
        return None
    return entry.inputs(problem, algorithm, constants(problem, algorithm, start), n_rounds, start)


def bound_of(entry: Theorem, problem: Problem, algorithm: Algorithm, n_rounds: int, facts: Constants, *,
             start: Any = None, record: Any = None, variant: str | None = None,
             given: Mapping[str, Any] | None = None) -> Bound:
    """A theorem's bound with the further arguments that its own rule takes from the problem.

    Arguments are those of `examine`, checked; `facts` are the constants, and `given` are further arguments in
    place of the rule's.
    """
    extra = dict(given or {})
    if given is None and entry.inputs is not None:
        with float64_range(lambda: f"problem={problem!r} in {entry.id}"):
            extra = entry.inputs(problem, algorithm, facts, n_rounds, start)
    bound = entry.function(facts, algorithm, n_rounds=n_rounds, record=record,
                           variant=entry.variants[0] if variant is None else variant, **extra)
    object.__setattr__(bound, "given", ())  # by the theorem's own rule, from the problem itself
    return bound


def measured_of(bound: Bound, problem: Problem, algorithm: Algorithm, n_rounds: int, *, start: Any = None,
                record: Any = None, known: dict[Any, Any] | None = None) -> Measured:
    """The exact quantity that a bound is about; `known` keeps what other bounds on the same run need too."""
    last = int(bound.rounds[-1]) if bound.index == "round" else n_rounds
    row, kept = QUANTITIES[bound.quantity], {} if known is None else known
    law = kept.get((row.exact, last)) if row.of_run else None
    if law is None:
        law = called(row.exact, {"problem": problem, "algorithm": algorithm, "bound": bound, "n_rounds": last,
                                 "start": start, "record": record})
    if row.of_run:
        kept[row.exact, last] = law
    # compared without its own provenance: some quantities are read from something derived from the problem
    measured = measure(bound, law, 0.999)
    if row.rounding is not None:
        measured = measured._replace(rounding=max(TOLERANCE, row.rounding(problem, algorithm)))
    return measured


def both_sides(entry: Theorem, problem: Problem, algorithm: Algorithm, n_rounds: int, facts: Constants, *,
               start: Any = None, record: Any = None, **options: Any) -> tuple[Bound, Measured]:
    """A theorem's bound and the exact quantity it is about, as `examine` compares them."""
    bound = bound_of(entry, problem, algorithm, n_rounds, facts, start=start, record=record, **options)
    if bound.kind == "rate":
        raise ValueError(f"theorem={entry.id!r} is a rate: it {instead_of_verdict(bound)}")
    return bound, measured_of(bound, problem, algorithm, n_rounds, start=start, record=record)
