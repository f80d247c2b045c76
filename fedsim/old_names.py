"""Modules under the names that they had before: each works for one release, with a DeprecationWarning.

docs/renamed.md is the same table as a page. Public names (`fs.Quadratic`, `theory.check`) never moved.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "fedsim.engine.warming": "fedsim.engine.running",
    "fedsim.engine.written": "fedsim.engine.job",
    "fedsim.laws.checks": "fedsim.laws.law_checks",
    "fedsim.laws.drawing": "fedsim.laws.plots",
    "fedsim.laws.saved": "fedsim.laws.loading",
    "fedsim.laws.trees": "fedsim.laws.run",
    "fedsim.offering": "fedsim.interfaces",
    "fedsim.problems.custom.arguments": "fedsim.problems.custom.problem",
    "fedsim.problems.quadratic.labels": "fedsim.problems.quadratic.problem",
    "fedsim.problems.regression.drawing": "fedsim.problems.regression.minibatch_rows",
    "fedsim.problems.regression.softmax_mode": "fedsim.problems.regression.softmax",
    "fedsim.settings.graphs": "fedsim.settings.network",
    "fedsim.settings.lazy": "fedsim.settings.lazy_import",
    "theory.assumption": "theory.declare.bound",
    "theory.bibliography": "theory.declare.bibliography",
    "theory.bound": "theory.declare.bound",
    "theory.checking": "theory.judge.checking",
    "theory.corrections": "theory.declare.corrections",
    "theory.crossing": "theory.tuning.first_round",
    "theory.decentralized.sghmc.beginning": "theory.decentralized.sghmc.start_terms",
    "theory.examining": "theory.judge.examining",
    "theory.fa_hmc.coupled": "theory.fa_hmc.coupling_recursion",
    "theory.federated": "theory.theorem_parts",
    "theory.paper": "theory.declare.paper",
    "theory.pictures": "theory.declare.pictures",
    "theory.potentials": "theory.facts.potentials_of_problem",
    "theory.ranges": "theory.float_range",
    "theory.recursions.floor": "theory.recursions.bounds",
    "theory.registry": "theory.declare.registry",
    "theory.scoring": "theory.judge.scoring",
    "theory.stale.slips": "theory.stale.errata_typos",
    "theory.stale.updates": "theory.stale.recursion",
    "theory.statement": "theory.declare.statement",
    "theory.tuning.crossings": "theory.tuning.first_rounds_together",
    "theory.verdict": "theory.judge.verdict",
    "theory.worst_case.aiming": "theory.worst_case.targets",
    "theory.worst_case.classes": "theory.worst_case.problem_class",
    "theory.worst_case.closed.arguments": "theory.worst_case.closed.closed_form",
    "theory.worst_case.closed.pair": "theory.worst_case.closed.two_clients",
    "theory.worst_case.closed.quantities": "theory.worst_case.closed.closed_form",
    "theory.worst_case.closed.rotated": "theory.worst_case.closed.fa_ld",
    "theory.worst_case.closed.sums": "theory.worst_case.closed.two_clients",
    "theory.worst_case.cube": "theory.worst_case.algorithm_templates",
    "theory.worst_case.duals": "theory.worst_case.numbers",
    "theory.worst_case.forms": "theory.worst_case.algorithm_templates",
    "theory.worst_case.found": "theory.worst_case.search_result",
    "theory.worst_case.instances": "theory.worst_case.targets",
    "theory.worst_case.intervals": "theory.worst_case.numbers",
    "theory.worst_case.limits": "theory.worst_case.targets",
    "theory.worst_case.portfolio": "theory.worst_case.searching",
    "theory.worst_case.problems": "theory.worst_case.algorithm_templates",
    "theory.worst_case.records": "theory.worst_case.search_result",
    "theory.worst_case.rounding": "theory.worst_case.numbers",
    "theory.worst_case.values": "theory.worst_case.exact_values",
}
"""Old name -> new name."""


class _Moved(MetaPathFinder, Loader):
    """Finds a module by its old name, and hands out what the one of the new name has."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is called {new} now; the old name goes with the next release",
                      DeprecationWarning, stacklevel=2)
        there = importlib.import_module(new)
        vars(module).update(__doc__=there.__doc__, __getattr__=lambda name: getattr(there, name))


def install() -> None:
    """Let `import` find old names; no other name is affected."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
