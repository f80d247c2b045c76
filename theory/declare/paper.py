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

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np

import fedsim
from fedsim.interfaces import Algorithm

from ..facts.constants_of_problem import Constants
from .bibliography import cite
from .bound import Bound
from .corrections import Demonstration, Evidence, erratum
from .registry import Theorem, enter
from .statement import Statement, by_index

IDLE = "Of no influence."
RECORDED = {"round": "Rounds, see `fedsim.recorded_rounds`.",
            "local_step": "Local steps up to n_rounds times the steps of a round, see "
                          "`fedsim.recorded_rounds`.",
            "leapfrog_step": "Leapfrog steps, see `fedsim.recorded_rounds`."}


class TheoremFunction(Protocol):
    """What a theorem is to its callers; some take further arguments, see their docstrings."""

    __name__: str

    def __call__(self, constants: Constants, algorithm: Algorithm, *, n_rounds: int = ..., record: Any = None,
                 variant: str = ..., **given: Any) -> Bound: ...


@dataclass(frozen=True)
class Paper:
    """What all statements of a paper about one algorithm share.

    Parameters
    ----------
    id : str
        First part of the theorems' ids: the package's name.
    name : str
    key : str
        Of ``theory/declare/papers.bib``; "" for what no paper says.
    algorithm : type
        Class of the algorithms it speaks about.
    convention : str
        Of the potentials it speaks about; constants of another one are refused.
    setting : callable -> s
        The paper's letters, from constants, algorithm, and what else it takes.
    to_target : tuple of str
        Quantities that are distances to the target: refused where gradients are those of another law.
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
    only : mapping
        Values of a `theory.worst_case.ProblemClass` outside of which no hypotheses hold.
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
    require: Callable[[Any], object] | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    raises: str = ""
    example: str = ""
    only: Mapping[str, Any] = field(default_factory=dict)

    def theorem(self, number: str, **declaration: Any) -> Callable[[Callable[..., Any]], TheoremFunction]:
        """Decorator: the public function of a `Statement`, entered in the catalogue."""
        def register(body: Callable[..., Any]) -> TheoremFunction:
            statement = Statement(self, number, body, **declaration)
            theorem: Any = statement.function()
            theorem.__doc__ = described(statement)
            enter(Theorem(statement.id, self.name, number, statement.kind, statement.quantity,
                          tuple(h.words for h in statement.hypotheses), tuple(statement.variants), theorem,
                          statement.algorithm, statement.index, statement.applies, statement.inputs, self.key,
                          statement.require, statement.only))
            return cast(TheoremFunction, theorem)

        return register

    def erratum(self, name: str, where: str, grade: str, consequence: str, theorems: tuple[str, ...],
                printed: str, corrected: str, derivation: str = "", *, kind: str = "numerical",
                ) -> Callable[[Demonstration], Demonstration]:
        """`erratum` of `corrections`, in the order in which it is read; names are those within the paper."""
        touched = tuple(one if "." in one else f"{self.id}.{one}" for one in theorems)
        return erratum(id=f"{self.id}.{name}", paper=self.name, where=where, printed=printed,
                       corrected=corrected, grade=grade, derivation=derivation, consequence=consequence,
                       theorems=touched, kind=kind)

    def reading(self, name: str, where: str, grade: str, theorems: tuple[str, ...], printed: str,
                corrected: str, derivation: str, *, kind: str = "typographical") -> None:
        """Register an entry without numbers, settled by reading or derivation; nothing falls with any."""
        self.erratum(name, where, grade, "nothing", theorems, printed, corrected, derivation, kind=kind)(
            lambda: Evidence(False, {}, derivation))


def described(statement: Statement) -> str:
    """The statement's own words, followed by hypotheses, parameters, return value, errors and example."""
    own, _, example = (inspect.getdoc(statement.body) or "").partition("\nExamples\n--------\n")
    sections = [own.rstrip()]
    if statement.paper.key:
        sections.append(_wrapped(f"Paper: {cite(statement.paper.key)}"))
    if statement.hypotheses:
        sections.append(_wrapped(f"Hypotheses: {'; '.join(h.words for h in statement.hypotheses)}."))
    sections += [_section("Parameters", _parameters(statement)),
                 _section("Returns", "Bound\n" + _indented(_returned(statement))),
                 _section("Raises", "ValueError\n" + _indented(_raised(statement)))]
    if example:
        sections.append(_section("Examples", _example(example.strip(), statement)))
    return textwrap.indent("\n\n".join(sections), "    ", lambda line: bool(line.strip())).lstrip()


def _parameters(statement: Statement) -> str:
    parameters, arguments = statement.signature.parameters, statement.arguments
    idle = parameters["n_rounds"].default is not inspect.Parameter.empty
    lines = [f'constants : Constants\n    Convention "{statement.paper.convention}".',
             f"algorithm : {_public(statement.algorithm)}"]
    own = "record" in arguments  # what it counts is said with the other arguments
    if idle:
        lines.append(("n_rounds" if own else "n_rounds, record") + f"\n    {IDLE}")
    else:
        lines.append("n_rounds : int")
        lines += [] if own else ["record : sequence of int, optional", _indented(RECORDED[statement.index])]
    for name in parameters:
        if name in arguments:
            kind, _, words = arguments[name].partition(": ")
            lines.append(f"{name} : {kind}" + (f"\n{_indented(words)}" if words else ""))
    first, *others = (f'"{name}"' for name in statement.variants)
    meanings = [f'"{name}": {words}' for name, words in statement.variants.items() if words]
    lines.append("variant : " + " or ".join([f"{first} (default)" if others else first, *others])
                 + "".join(f"\n{_indented(words)}" for words in meanings))
    return "\n".join(lines)


def _returned(statement: Statement) -> str:
    names = [f'"{name}"' for name in statement.terms]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    word = {"upper": "Upper bound on", "lower": "Lower bound of", "rate": "Rate (up to a constant) of"}
    by = "" if statement.index == "round" else " by " + statement.index.replace("_", " ")
    return f'{word[statement.kind]} "{statement.quantity}"{by}, with terms {listed}.'


def _raised(statement: Statement) -> str:
    paper, counts = statement.paper, statement.uses("rounds", "n_rounds")
    parts = ["Naming argument, value and condition: constants of another convention than "
             f'"{paper.convention}", another class of algorithm, an unknown variant'
             + (", rounds below 0, and a `record` beyond them." if counts else "."),
             paper.raises if statement.uses("s") else "",
             "Settings that the hypotheses exclude." if any(h.refuses for h in statement.hypotheses) else ""]
    return " ".join(filter(None, parts))


def _example(example: str, statement: Statement) -> str:
    """The statement's lines after those that make `problem`, `algorithm` and `bound`, where it has none."""
    if "bound = " in example:
        return example
    begin, mark, rest = example.partition(">>> algorithm")
    setup = [begin + mark + rest.partition("\n")[0]] if mark else statement.paper.example.splitlines()
    example = rest.partition("\n")[2] if mark else example
    call = [">>> known = theory.constants(problem, algorithm)",
            f">>> bound = theory.{statement.id}(known, algorithm, n_rounds=100)"]
    if any(parameter.default is inspect.Parameter.empty for name, parameter
           in statement.signature.parameters.items() if name not in ("constants", "algorithm", "n_rounds")):
        call = [f'>>> bound = theory.examine("{statement.id}", problem, algorithm, n_rounds=100).bound']
    return "\n".join([*setup, *call, example])


def _public(algorithm: type) -> str:
    """Its name for users, or those of its subclasses where it is only their common part."""
    home = "theory.exact" if algorithm.__module__.startswith("theory.") else "fedsim"
    offered = home != "fedsim" or hasattr(fedsim, algorithm.__name__)
    return " or ".join(f"{home}.{one.__name__}" for one in ([algorithm] if offered else
                                                            algorithm.__subclasses__()))


def _section(name: str, text: str) -> str:
    return f"{name}\n{'-' * len(name)}\n{text}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 105)


def _indented(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, 101), "    ")
