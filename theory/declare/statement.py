"""What a statement consists of: its hypotheses, its terms, and the way from arguments to a `Bound`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsim.algorithms.federated import Federated
from fedsim.interfaces import Algorithm, Problem
from fedsim.laws.law import Gaussian, recorded_rounds
from fedsim.provenance import Identity, attach
from fedsim.settings.validation import instance, one_of, set_fields, whole

from ..facts.constants_of_problem import Constants, refuse_off_target
from ..float_range import float64_range
from .bound import INDICES, KINDS, Assumption, Bound
from .registry import named_variant

if TYPE_CHECKING:
    from .paper import Paper

COMMON = ("n_rounds", "record", "variant")
"""Arguments of every theorem; what else is given by hand is said by `Bound.given`."""
OWN = ("constants", "algorithm", *COMMON, "s", "rounds")
"""What a statement, a hypothesis or a start distance may take besides what the user gives."""


def by_index(algorithm: Federated, n_rounds: int, record: Any, index: str) -> np.ndarray:
    """The rounds recorded, or the local steps 0..n_rounds*K."""
    if index == "round":
        return recorded_rounds(n_rounds, record)
    return recorded_rounds(whole("n_rounds", n_rounds) * algorithm.local_steps, record)


@dataclass(frozen=True)
class Hypothesis:
    """A condition of a theorem: its words in the catalogue, and who judges it.

    Parameters
    ----------
    words : str
    judge : callable -> Assumption, several of them, or None
        Called by the names of its arguments, as the statement; None says nothing, for variants that do not
        ask for the condition.
    refuses : callable(algorithm, problem) -> str
        Why the theorem says nothing about this algorithm and has no value, "" where it does. The problem is
        None where it is not known.
    """

    words: str
    judge: Callable[..., Assumption | Iterable[Assumption] | None] | None = None
    refuses: Callable[[Any, Any], str] | None = None

    def require(self, algorithm: Algorithm, problem: Problem | None = None) -> None:
        """Raise ValueError with the refusal, where there is one."""
        refusal = self.refuses(algorithm, problem) if self.refuses else ""
        if refusal:
            raise ValueError(refusal)


BY_QUANTITY: Any = object()


@dataclass(frozen=True)
class Terms:
    """What a statement returns where its terms are not all: see the attributes of `Bound`.

    `rounds` replaces those recorded; `target` and `start_distance` those of the quantity.
    """

    terms: Mapping[str, Any]
    floor: float | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    rounds: Any = None
    target: Gaussian | None = None
    start_distance: float | None = BY_QUANTITY
    is_root: bool = False


@dataclass(frozen=True)
class Statement:
    """One theorem as it is declared: from arguments to its `Bound`.

    Parameters
    ----------
    paper : Paper
    number : str
        Of the statement in the paper.
    body : callable
        What makes the terms.
    quantity, kind, index, source : as in `Bound`
        `source` is paper and number by default, and may depend on the variant.
    terms : tuple of str
        Names of the terms that some variant may have.
    hypotheses : tuple of Hypothesis
    variants : mapping name -> what it is, or tuple of names
        The first is the default.
    algorithm : type, optional
        A class in place of the paper's.
    inputs : callable(problem, algorithm, constants, n_rounds, start) -> dict, optional
        Further arguments, where `theory.examine` has to find them from the problem.
    formerly : mapping, optional
        Names that variants had before -> what they mean now.
    arguments : mapping name -> str, optional
        For the docstring: arguments of this statement besides the paper's.
    only : mapping, optional
        Values of a `theory.worst_case.ProblemClass` outside of which no hypotheses hold, besides the paper's.
    """

    paper: Paper
    number: str
    body: Callable[..., Mapping[str, Any] | Terms]
    quantity: str
    terms: tuple[str, ...]
    kind: str = "upper"
    hypotheses: tuple[Hypothesis, ...] = ()
    source: str | Callable[[str], str] = ""
    variants: Any = ("printed",)
    index: str = "round"
    algorithm: Any = None
    inputs: Callable[..., dict[str, Any]] | None = None
    formerly: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("kind", self.kind, KINDS)
        one_of("index", self.index, INDICES)
        for name, value in (("variants", self.variants), ("terms", self.terms)):
            if isinstance(value, str):
                raise ValueError(f"{name}={value!r} must be a tuple of names")
            if not value or not all(value):
                raise ValueError(f"{name}={value!r} of {self.id} must name at least one")
        named = self.variants if isinstance(self.variants, Mapping) else dict.fromkeys(self.variants, "")
        set_fields(self, variants=named, algorithm=self.algorithm or self.paper.algorithm,
                   arguments={**self.paper.arguments, **self.arguments},
                   only={**self.paper.only, **self.only})
        self._require_consistent()

    @property
    def id(self) -> str:
        """Name of the statement in the catalogue."""
        return f"{self.paper.id}.{self.body.__name__}"

    @functools.cached_property
    def extras(self) -> dict[str, inspect.Parameter]:
        """What the user gives beyond the common arguments, by name."""
        own = [p for p in inspect.signature(self.body).parameters.values() if p.kind is p.KEYWORD_ONLY]
        unknown = set(inspect.signature(self.body).parameters) - set(OWN) - {p.name for p in own}
        if unknown:
            raise ValueError(f"arguments {sorted(unknown)} of {self.id} must be among {OWN}, or by keyword "
                             "only")
        of_setting = inspect.signature(self.paper.setting).parameters.values() if self.uses("s") else ()
        return {p.name: p.replace(kind=p.KEYWORD_ONLY, annotation=Any)
                for p in (*own, *of_setting) if p.name not in OWN}

    def _require_consistent(self) -> None:
        """Raise ValueError where the declaration contradicts itself, or names what is not there."""
        for gone, meant in self.formerly.items():
            one_of(f"formerly[{gone!r}] of {self.id}", meant, tuple(self.variants))
        unsaid = set(self.extras) - set(self.arguments)
        if unsaid:
            raise ValueError(f"arguments {sorted(unsaid)} of {self.id} must have words for the docstring")
        rules = [h.judge for h in self.hypotheses] + [self.paper.start_distances.get(self.quantity)]
        for rule in filter(None, rules):
            unknown = set(inspect.signature(rule).parameters) - {*OWN, *self.extras}
            if unknown:
                raise ValueError(f"arguments {sorted(unknown)} of a hypothesis or the start distance of "
                                 f"{self.id} must be among {(*OWN, *self.extras)}")

    def uses(self, *names: str) -> bool:
        """Whether the body or a hypothesis takes one of these arguments."""
        judges = [hypothesis.judge for hypothesis in self.hypotheses if hypothesis.judge]
        return any(name in inspect.signature(part).parameters for part in (self.body, *judges)
                   for name in names)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """What users see."""
        kinds = inspect.Parameter
        counts = self.uses("rounds", "n_rounds")
        common = [kinds("constants", kinds.POSITIONAL_OR_KEYWORD, annotation=Constants),
                  kinds("algorithm", kinds.POSITIONAL_OR_KEYWORD, annotation=self.algorithm),
                  kinds("n_rounds", kinds.KEYWORD_ONLY, annotation=int, default=kinds.empty if counts else 0),
                  kinds("record", kinds.KEYWORD_ONLY, annotation=Any, default=None)]
        variant = kinds("variant", kinds.KEYWORD_ONLY, annotation=str, default=next(iter(self.variants)))
        return inspect.Signature([*common, *self.extras.values(), variant], return_annotation=Bound)

    def applies(self, algorithm: Algorithm, problem: Problem | None = None) -> bool:
        """Whether the theorem speaks about these settings; the problem may be unknown."""
        try:
            self.require(algorithm, problem)
        except ValueError:
            return False
        return True

    def require(self, algorithm: Algorithm, problem: Problem | None = None) -> None:
        """Raise ValueError where a hypothesis excludes these settings; the problem may be unknown."""
        if self.paper.require is not None:
            self.paper.require(algorithm)
        for hypothesis in self.hypotheses:
            hypothesis.require(algorithm, problem)

    def function(self) -> Callable[..., Bound]:
        """The public function of the statement."""
        @functools.wraps(self.body)
        def theorem(constants: Constants, algorithm: Algorithm, **options: Any) -> Bound:
            return self.bound(constants, algorithm, options)

        theorem.__signature__ = self.signature  # type: ignore[attr-defined]
        return theorem

    def bound(self, constants: Constants, algorithm: Algorithm, options: dict[str, Any]) -> Bound:
        """The theorem's value, after what all theorems check."""
        self._check(constants, algorithm)

        def what() -> str:
            numbers = "".join(f", {name}={value!r}" for name, value in options.items()
                              if isinstance(value, (int, float)))
            return f"constants={constants!r}{numbers} in {self.id}"

        with float64_range(what):
            return self._bound(constants, algorithm, options)

    def _bound(self, constants: Constants, algorithm: Algorithm, options: dict[str, Any]) -> Bound:
        try:
            arguments = self.signature.bind(constants, algorithm, **options)
        except TypeError as error:
            raise TypeError(f"theory.{self.id}(): {error}; it takes {', '.join(self.signature.parameters)}"
                            ) from None
        arguments.apply_defaults()
        arguments.arguments["n_rounds"] = whole("n_rounds", arguments.arguments["n_rounds"])
        known = Known(self, arguments.arguments)
        variant = known["variant"]
        if not (isinstance(variant, str) and variant in self.variants):
            known["variant"] = variant = named_variant(variant, tuple(self.variants), self.id,
                                                       self.formerly, 5)
        result = known.call(self.body)
        result = result if isinstance(result, Terms) else Terms(result)
        if not set(result.terms) <= set(self.terms):
            raise ValueError(f"terms={sorted(result.terms)} of {self.id} must be among {self.terms}")
        target = result.target or (constants.target if self.quantity in self.paper.to_target else None)
        start = result.start_distance
        if start is BY_QUANTITY:
            rule = self.paper.start_distances.get(self.quantity) if self.kind != "rate" else None
            start = rule and known.call(rule)
        source = self.source(variant) if callable(self.source) else self.source
        if not all(np.isfinite(part).all() for part in result.terms.values()):
            raise ValueError(f"constants={constants!r}: the bound {self.id} leaves the range of float64; "
                             "rescale the problem, or choose another start")
        make = Bound._of if result.rounds is None else Bound.from_terms
        bound = make(
            result.terms, known["rounds"] if result.rounds is None else result.rounds,
            assumptions=known.assumptions(), quantity=self.quantity, kind=self.kind,
            source=source or f"{self.paper.name} {self.number}", variant=variant, target=target,
            start_distance=start, floor=result.floor, index=self.index, inputs=result.inputs, theorem=self.id,
            is_root=result.is_root)
        object.__setattr__(bound, "given", tuple(
            name for name, value in options.items() if name not in COMMON and value is not None))
        return attach(bound, dataclasses.replace(constants.of, algorithm=Identity.of(algorithm)))

    def _check(self, constants: Any, algorithm: Any) -> None:
        where = f"{self.paper.name} {self.number}"
        instance("constants", constants, Constants)
        instance("algorithm", algorithm, self.algorithm, advice=where)
        if constants.convention != self.paper.convention:
            raise ValueError(f"convention={constants.convention!r} of the constants must be "
                             f"{self.paper.convention!r} ({where}); use theory.constants(problem, algorithm)")
        if self.quantity in self.paper.to_target:
            refuse_off_target(constants, f"theory.{self.id} ({where})")
        self.require(algorithm)


@functools.cache
def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def called(function: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    """The function, called by the names of its arguments; those not known have their defaults."""
    return function(**{name: known[name] for name in _arguments(function) if name in known})


class Known(dict[str, Any]):
    """Arguments by name; `s` and `rounds` are made when they are first asked for."""

    def __init__(self, statement: Statement, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self._statement = statement

    def __missing__(self, name: str) -> Any:
        paper = self._statement.paper
        if name == "s":
            self[name] = self.call(paper.setting)
        elif name == "rounds":
            self[name] = paper.recorded(self["algorithm"], self["n_rounds"], self["record"],
                                        self._statement.index)
        else:
            raise KeyError(name)
        return self[name]

    def call(self, function: Callable[..., Any]) -> Any:
        """The function, called by the names of its arguments."""
        return function(**{name: self[name] for name in _arguments(function)})

    def assumptions(self) -> tuple[Assumption, ...]:
        """Every hypothesis judged."""
        judged = [self.call(h.judge) for h in self._statement.hypotheses if h.judge]
        groups = [(part,) if isinstance(part, Assumption) else part or () for part in judged]
        return tuple(assumption for group in groups for assumption in group)
