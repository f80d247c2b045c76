"""A theorem said once: `Paper.theorem` makes the public function, its `Bound`, docstring and catalogue entry.

A paper says once what all its statements share; a statement is then a function of its numbers:

    theorem = Paper(id="fa_ld", name="FA-LD", key="deng2021", algorithm=FALD, convention="federated",
                    setting=setting, ...).theorem

    @theorem("Lemma B.3", quantity="divergence", terms=("drift", "noise"), hypotheses=(STEP_RANGE,),
             variants={"corrected": "", "printed": "112 and 8 for 28 and 4"}, index="local_step")
    def divergence_bound(s, steps, variant):
        '''How far clients drift apart inside a round. (What is guaranteed, and its source.)'''
        return {"drift": ..., "noise": ...}

The function is called by the names of its arguments: constants, algorithm, n_rounds, record, variant, `s`
(what the paper's `setting` makes of constants and algorithm) and `rounds` (those recorded; what they count
is said by `index`). What it takes by keyword only the user gives, as what `setting` takes beyond these.
It returns its named terms, or `Terms` where there is more to say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedsim.laws.law import recorded_rounds
from fedsim.settings.validation import one_of, whole

from .bound import INDICES, KINDS, Bound
from .docstring import described
from .facts import Constants
from .registry import Theorem, enter
from .statement import Hypothesis, Statement, Terms


class TheoremFunction(Protocol):
    """What a theorem is to its callers; some take further arguments, see their docstrings."""

    __name__: str

    def __call__(self, constants: Constants, algorithm: Any, *, n_rounds: int = ..., record: Any = None,
                 variant: str = ..., **given: Any) -> Bound: ...


def by_index(algorithm: Any, n_rounds: int, record: Any, index: str) -> np.ndarray:
    """The rounds recorded, or the local steps 0..n_rounds*K."""
    if index == "round":
        return recorded_rounds(n_rounds, record)
    return recorded_rounds(whole("n_rounds", n_rounds) * algorithm.local_steps, record)


@dataclass(frozen=True)
class Paper:
    """What all statements of a paper about one algorithm share.

    Parameters
    ----------
    id : str
        First part of the theorems' ids: the package's name.
    name : str
    key : str
        Of ``theory/papers.bib``; "" for what no paper says.
    algorithm : type
        Class of the algorithms it speaks about.
    convention : str
        Of the potentials it speaks about; constants of another one are refused.
    setting : callable -> s
        The paper's letters, from constants, algorithm, and what else it takes.
    to_target : tuple of str
        Quantities that are distances to the target.
    start_distances : mapping quantity -> callable
        The quantity at the start, or an upper bound of it: called by the names of its arguments.
    recorded : callable(algorithm, n_rounds, record, index) -> (n,)
    require : callable(algorithm)
        What all statements ask of an algorithm: raises a ValueError where it is not so.
    arguments : mapping name -> str
        For the docstrings: what the user gives.
    raises : str
        For the docstrings: what `setting` refuses.
    example : str
        For the docstrings: lines that make `problem` and `algorithm`.
    """

    id: str
    name: str
    key: str
    algorithm: type
    convention: str
    setting: Callable[..., Any]
    to_target: tuple[str, ...] = ("w2",)
    start_distances: Mapping[str, Callable[..., float | None]] = field(default_factory=dict)
    recorded: Callable[[Any, int, Any, str], np.ndarray] = by_index
    require: Callable[[Any], None] = lambda algorithm: None
    arguments: Mapping[str, str] = field(default_factory=dict)
    raises: str = ""
    example: str = ""

    def theorem(self, number: str, *, quantity: str, terms: tuple[str, ...], kind: str = "upper",
                hypotheses: tuple[Hypothesis, ...] = (), source: str | Callable[[str], str] = "",
                variants: Mapping[str, str] | tuple[str, ...] = ("printed",), index: str = "round",
                algorithm: type | None = None, inputs: Callable[..., dict[str, Any]] | None = None,
                formerly: Mapping[str, str] | None = None, arguments: Mapping[str, str] | None = None,
                ) -> Callable[[Callable[..., Mapping[str, Any] | Terms]], TheoremFunction]:
        """Decorator: the public function of a statement, entered in the catalogue.

        Parameters
        ----------
        number : str
            Of the statement in the paper.
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
            For the docstring: arguments of this statement alone.
        """
        one_of("kind", kind, KINDS)
        one_of("index", index, INDICES)
        for name, value in (("variants", variants), ("terms", terms)):
            if isinstance(value, str):
                raise ValueError(f"{name}={value!r} must be a tuple of names")
        named = dict(variants) if isinstance(variants, Mapping) else dict.fromkeys(variants, "")
        subject = algorithm or self.algorithm

        def register(body: Callable[..., Mapping[str, Any] | Terms]) -> TheoremFunction:
            id = f"{self.id}.{body.__name__}"
            statement = Statement(self, id, number, quantity, kind, hypotheses, tuple(named), index,
                                   subject, source, terms, body, formerly)

            told = {**self.arguments, **(arguments or {})}
            statement.require_consistent(told)

            @functools.wraps(body)
            def theorem(constants: Constants, algorithm: Any, **given: Any) -> Bound:
                return statement.bound(constants, algorithm, given)

            entry = Theorem(id, self.name, number, kind, quantity, tuple(h.words for h in hypotheses),
                            tuple(named), theorem, subject, index, statement.applies, inputs, self.key,
                            statement.require)
            theorem.__signature__ = statement.signature  # type: ignore[attr-defined]
            theorem.__doc__ = described(body, entry, statement, named, told)
            enter(entry)
            return theorem

        return register
