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
from fedsim.settings.validation import whole

from .bound import Bound
from .docstring import described
from .facts import Constants
from .registry import Theorem, enter
from .statement import Statement


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

    def theorem(self, number: str, **declaration: Any) -> Callable[[Callable[..., Any]], TheoremFunction]:
        """Decorator: the public function of a `Statement`, entered in the catalogue."""
        def register(body: Callable[..., Any]) -> TheoremFunction:
            statement = Statement(self, number, body, **declaration)

            @functools.wraps(body)
            def theorem(constants: Constants, algorithm: Any, **given: Any) -> Bound:
                return statement.bound(constants, algorithm, given)

            theorem.__signature__ = statement.signature  # type: ignore[attr-defined]
            theorem.__doc__ = described(statement)
            enter(Theorem(statement.id, self.name, number, statement.kind, statement.quantity,
                          tuple(h.words for h in statement.hypotheses), tuple(statement.variants), theorem,
                          statement.algorithm, statement.index, statement.applies, statement.inputs, self.key,
                          statement.require))
            return theorem

        return register
