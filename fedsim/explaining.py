"""`explain`: which compiled bodies, lanes, random numbers and laws belong to a problem and an algorithm.

Everything is read where it is decided, from the registries of compile-time dispatch and from the objects that
a run would hand to compiled code, so that it says what would run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .engine.rounds import LEAF
from .engine.state import FEW_REPLICAS, by_coordinate
from .interfaces import EXPLAINERS, Algorithm, Problem, SimulatedAlgorithm, offers, validate_sizes
from .random.slots import NormalRoom
from .random.streams import lane_set
from .samplers.declarations import declared
from .samplers.sampler import Sampled
from .vector.compile import STUBS, body_of
from .vector.memory import TILE

MOST_STEPS = 1000
"""Local and leapfrog steps of a round that are followed one by one."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """What `explain` says, to be printed.

    Attributes
    ----------
    title : str
        Algorithm and problem.
    parts : tuple of (str, str)
        What is explained, and its words; bodies of compiled code as "module:function".
    """

    title: str
    parts: tuple[tuple[str, str], ...]

    def __getitem__(self, name: str) -> str:
        """The words of the part of this name."""
        return dict(reversed(self.parts))[name]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.parts) + 2
        return "\n".join([self.title, *(f"  {name:<{width}}{words}" for name, words in self.parts)])

    __repr__ = __str__


def explain(problem: Problem, algorithm: Algorithm) -> Explanation:
    """What would run, before anything runs: compiled bodies, lanes, random numbers, stability, exact law.

    Parameters
    ----------
    problem, algorithm : e.g. `Quadratic` and `FALD`
        A step size beyond stability is explained too.

    Returns
    -------
    Explanation
        Print it. Every function of compiled code whose body is chosen by a class has a line: the body that is
        registered for the class of this problem or algorithm, or the general one. Not every algorithm calls
        all functions of a problem. A slot is a client, or a step.

    Raises
    ------
    ValueError
        As `fedsim.validate`, save for the step size.

    Examples
    --------
    >>> problem = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]], [[0.0, 1.0]])
    >>> told = fs.explain(problem, fs.FALD(0.1, local_steps=3))
    >>> told["advance"], told["langevin"]
    ('fedsim.algorithms.federated:federated_round', 'fedsim.problems.quadratic.gradients:_langevin_plane')
    >>> told["normals"]
    'fedsim.random.normals:_normals_double'
    """
    validate_sizes(problem, algorithm)
    if not isinstance(algorithm, Sampled):
        offers("algorithm", algorithm, SimulatedAlgorithm)
    clients = "1 client" if problem.n_clients == 1 else f"{problem.n_clients} clients"
    title = (f"{type(algorithm).__name__} on {type(problem).__name__}: {clients}, "
             f"{algorithm._participation_words(problem)} in a round, dimension {problem.dim}")
    followed, bound = algorithm._bind(problem, None)
    first = algorithm.explained(problem) if isinstance(algorithm, Sampled) else [
        ("a round", _a_round(problem, algorithm)), *_compiled(followed, bound)]
    laws = [("exact law", words(problem, algorithm)) for words in EXPLAINERS]
    return Explanation(title, (
        *first,
        ("minibatches", "drawn for every gradient" if followed.has_minibatches else "none: all data"),
        ("gradient noise", "none" if followed.gradient_noise is None else "normal, in every gradient"),
        ("stability", _judgement(problem, algorithm)),
        *(laws or [("exact law", "import theory: it says which exact law answers")])))


def _a_round(problem: Problem, algorithm: Algorithm) -> str:
    """The equation, from its declaration in the notation; or why there is none."""
    try:
        found = declared(algorithm)
        steps = getattr(found, "local_steps", 1) * getattr(found, "leapfrog_steps", 1)
        for count, of in ((steps, "steps"), (getattr(found, "age", 0), "rounds back")):
            if count > MOST_STEPS:
                raise ValueError(f"its {count} {of} are more than the {MOST_STEPS} that are followed here")
        lines = found.words(problem).splitlines()
    except ValueError as error:
        return f"not said: {error}"
    return "\n".join(["", *(f"    {line}" for line in lines)])


def _judgement(problem: Problem, algorithm: Algorithm) -> str:
    if not problem.is_judged:
        return "not judged: nothing bounds the Hessians"
    try:
        stability = algorithm.stability(problem)
    except ValueError as error:  # a round that is no matrix
        return f"not judged: {error}"
    return (f"{'stable' if stability.stable else 'not stable'}: radius {stability.radius:.6g} at "
            f"step_size={stability.step_size:g}, {stability.limit} ({stability.source})")


def _compiled(problem: Problem, algorithm: SimulatedAlgorithm) -> Iterator[tuple[str, str]]:
    """What compiled code is given, and the bodies chosen by it."""
    kernel, arrays, lanes = algorithm._kernel(problem), problem._arrays(), lane_set(0, 0, LEAF)
    work = algorithm._workspace(problem, np.zeros((problem.dim, LEAF)), np.float64)
    yield "kernel", _name(kernel)
    yield from _bodies("kernel", kernel)
    yield from _bodies("work", work)
    yield "gradients", _name(arrays)
    yield from _bodies("problem", arrays)
    yield "lanes", f"replicas, in {_name(lanes)} of whole tiles of {TILE}"
    few = by_coordinate(problem, algorithm, 1, "double")
    yield f"below {FEW_REPLICAS} replicas", ("the same" if few is None else
                                             f"pairs of coordinates, of {_name(few)}")
    yield from _bodies("lane_set", lanes)
    for name, room in work._asdict().items():
        if isinstance(room, NormalRoom):
            _, rows, slots, lanes = room.slots.shape
            yield f"{name} normals", f"a call draws {rows} rows for each of {slots} slots of {lanes} lanes"


def _name(value: Any) -> str:
    """The class of a NamedTuple, with those of its parts."""
    parts = [_name(part) for part in value if hasattr(part, "_fields")]
    return type(value).__name__ + (f"({', '.join(parts)})" if parts else "")


def _bodies(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The bodies of all functions that ask for the class of an argument of this name; then of its parts."""
    for stub in STUBS:
        body = body_of(stub, type(value))
        own = type(value) in stub.bodies
        if stub.by == name and body is not None and (own or name == "problem"):
            yield stub.__name__, f"{body.__module__}:{body.__name__}{'' if own else ' (the general one)'}"
    for field, part in value._asdict().items():
        if hasattr(part, "_fields"):
            yield from _bodies(field, part)
