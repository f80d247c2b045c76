"""The parts of a theorem's docstring that follow from its declaration."""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING

import fedsim

from .bibliography import cite

if TYPE_CHECKING:
    from .statement import Statement

IDLE = "Of no influence."
RECORDED = {"round": "Rounds, see `fedsim.recorded_rounds`.",
            "local_step": "Local steps up to n_rounds times the steps of a round, see "
                          "`fedsim.recorded_rounds`.",
            "leapfrog_step": "Leapfrog steps, see `fedsim.recorded_rounds`."}


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
