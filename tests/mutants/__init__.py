"""Deliberately wrong programs, made through the door by which every new algorithm comes in.

A mutant is a subclass of the program's algorithm with one fault. The law test must catch it. `Mutants` holds
those of one algorithm; the files of this folder fill one each. There are three kinds of fault.

What Python hands to compiled code is wrong: change the kernel, or the arrays of the problem. The program's
own compiled code runs, so this costs nothing to compile::

    @FA_LD.kernel_change("temperature dropped", "full")
    def _(kernel, problem):
        return kernel._replace(temperature=1.0)

    @FA_LD.arrays_change("gradient noise doubled", "full")
    def _(arrays):
        return arrays._replace(factors=2.0 * arrays.factors)

A method is wrong: override it::

    FA_LD.override("the paper's rho taken for its square", "from paper", from_paper=classmethod(...))

Compiled code is wrong: `FA_LD.kernel` is a second kernel class, that of the program with one more field,
`fault`. Bodies are registered for it as for any kernel, and ask for the fault by number. One class serves
all faults of an algorithm, so that compiling is paid once::

    TWICE = FA_LD.switch("noise too large by sqrt(2)", "full")

    @local_update.register(FA_LD.kernel)
    def _langevin_step(kernel, problem, ...):
        size = np.sqrt((4.0 if kernel.fault == TWICE else 2.0) * ...)

These bodies are a second writing: `Mutants.control` runs them with fault 0, and must give the program's bits.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scores import all_scores

import fedsim as fs
import theory


class Case(NamedTuple):
    """What shows a fault: a problem, the algorithm as a function of its class, and a start.

    `n_replicas` is there where so many show it and those of the other cases do not.
    """

    problem: Any
    make: Callable[[type], Any]
    start: Any = None
    n_replicas: int | None = None


class Mutant(NamedTuple):
    """A fault by name, the case that shows it, and the classes that have it."""

    name: str
    case: str
    algorithm: type
    problem: Callable[[Any], Any]


class Mutants:
    """The mutants of one algorithm.

    Parameters
    ----------
    program : class of the algorithm
    kernel : the NamedTuple that its `_kernel` returns
    cases : dict of Case
        By name; every fault names the case that shows it.
    n_rounds, n_replicas, seed : int
        Of every run.
    record : sequence of int, optional
        As for `simulate`.

    Attributes
    ----------
    kernel : NamedTuple class
        Register faulty bodies for it: the program's kernel and one more field, `fault`.
    all : dict of Mutant by name
    """

    def __init__(self, program, kernel, cases, *, n_rounds, n_replicas, seed, record=None):
        self.program, self.cases, self.all = program, cases, {}
        self.kernel = namedtuple(f"Faulty{kernel.__name__}", (*kernel._fields, "fault"), module=__name__)
        self._sizes, self._seed, self._record = (n_rounds, n_replicas), seed, record
        self._switched = False

    def override(self, name, case, problem=lambda given: given, **methods):
        """Add a mutant whose class has these methods instead of the program's."""
        assert case in self.cases and name not in self.all, name
        self.all[name] = Mutant(name, case, type("Mutant", (self.program,), methods), problem)

    def kernel_change(self, name, case):
        """Decorator of a function (kernel, problem) that returns what compiled code shall see instead."""
        def add(change):
            def changed(algorithm, problem):
                given = self.program._kernel(algorithm, problem)
                return _of_its_types(change(given, problem), given)

            self.override(name, case, _kernel=changed)
            return change

        return add

    def arrays_change(self, name, case):
        """Decorator of a function of the problem's compiled form that returns another of the same class."""
        def add(change):
            self.override(name, case, lambda problem: with_arrays(problem, change))
            return change

        return add

    def switch(self, name, case, number=None):
        """Add a mutant that the bodies of `self.kernel` know by the number returned, its ``kernel.fault``.

        A given `number` is that of the same fault, which another case shows too.
        """
        self._switched, number = True, len(self.all) + 1 if number is None else number
        self.override(name, case, _kernel=self._faulty(number))
        return number

    def _faulty(self, number):
        return lambda algorithm, problem: self.kernel(*self.program._kernel(algorithm, problem), number)

    def run(self, case, n_replicas=None):
        """The program itself."""
        return self._simulate(case, self.program, n_replicas=n_replicas)

    def control(self, case, n_replicas):
        """A run without a fault, by the bodies of `self.kernel` where there are any: the bits of `run`."""
        methods = {"_kernel": self._faulty(0)} if self._switched else {}
        return self._simulate(case, type("Control", (self.program,), methods), n_replicas=n_replicas)

    def scores(self, name):
        """Deviations of the mutant of this name from the program's exact law, as normal numbers."""
        mutant = self.all[name]
        run = self._simulate(mutant.case, mutant.algorithm, mutant.problem)
        return all_scores(run, self.law(mutant.case))

    def law(self, case):
        """The program's exact law."""
        problem, make, start, _ = self.cases[case]
        return theory.exact_law(problem, make(self.program), self._sizes[0], start=start, record=self._record)

    def _simulate(self, case, algorithm, change=lambda problem: problem, n_replicas=None):
        problem, make, start, own = self.cases[case]
        n_rounds, all_cases = self._sizes
        return fs.simulate(change(problem), make(algorithm), n_rounds, n_replicas or own or all_cases,
                           seed=self._seed, start=start, record=self._record)


def with_arrays(problem, change):
    """The problem as an instance of a subclass whose compiled form is changed."""
    program = type(problem)

    def arrays(self):
        given = program._arrays(self)
        return _of_its_types(change(given), given)

    mutant = type("Mutant", (program,), {"_arrays": arrays})
    changed = object.__new__(mutant)
    vars(changed).update(vars(problem))
    return changed


def _of_its_types(changed, given):
    """Read-only where the program's arrays are: a writable array is another type, and compiled for again."""
    for new, old in zip(changed, given, strict=True):
        if isinstance(old, tuple):
            _of_its_types(new, old)
        elif isinstance(old, np.ndarray) and not old.flags.writeable:
            new.setflags(write=False)
    return changed
