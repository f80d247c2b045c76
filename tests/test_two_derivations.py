"""Each shipped algorithm has its law from two derivations that share no code above a named floor.

By hand (`theory.exact.federated`, `.gossip`, `.delay`), by the trace of the declaration, and by brute force
and twins on numbers. `docs/guide/equations.md` has the table.
"""

from __future__ import annotations

import ast
import functools

import pages
import pytest
from algorithms import ROWS
from layout import ROOT, executed, name_of, sources, tree_of

from fedsim.samplers import declared
from theory.exact.families import family_of

FLOOR = ("fedsim.equality", "fedsim.fingerprints", "fedsim.hints", "fedsim.interfaces", "fedsim.laws",
         "fedsim.problems", "fedsim.provenance", "fedsim.random", "fedsim.settings", "fedsim.vector",
         "fedsim.stability.batches", "fedsim.stability.search", "theory.exact.affine", "theory.exact.batches",
         "theory.exact.evolution",
         "theory.exact.families", "theory.exact.joint_laws", "theory.exact.stacked", "theory.exact.tables")
"""Both stand on it: problems, settings, laws as results, and the powers of an affine map once it is known."""
BY_HAND = ("theory.exact.federated", "theory.exact.gossip", "theory.exact.delay")
BY_TRACE = ("theory.exact.traced", "fedsim.samplers")
KERNELS = ("de_sghmc", "de_sgld", "fa_hmc", "fa_ld", "stale")
BY_NUMBERS = ("brute_force", "brute_force_decentralized", "brute_force_fa_hmc", "naive",
              "naive_decentralized", "naive_fa_hmc", "naive_regression", "naive_stale", "naive_stepwise")


@functools.cache
def graph():
    """{module: modules whose code it executes}; a name counts as the module that it is, or stands in."""
    found = {name_of(path): list(executed(path)) for path in sources("fedsim", "theory")}
    return {module: {target for _, base, name in rows
                     for target in [next((one for one in (f"{base}.{name}", base) if one in found), None)]
                     if target is not None and target not in ("fedsim", "theory")}
            for module, rows in found.items()}


def within(module, places):
    return any(module == place or module.startswith(f"{place}.") for place in places)


def stands_on(places, needs):
    """All that the modules of these places need, directly or through others."""
    seen, todo = set(), [module for module in needs if within(module, places)]
    while todo:
        if (module := todo.pop()) not in seen:
            seen.add(module)
            todo += needs[module]
    return seen


def shared(needs):
    """Modules of both derivations that are not of the floor."""
    return {module for module in stands_on(BY_HAND, needs) & stands_on(BY_TRACE, needs)
            if not within(module, FLOOR)}


def test_derivations_share_the_floor_alone():
    needs = graph()
    by_hand, by_trace = stands_on(BY_HAND, needs), stands_on(BY_TRACE, needs)
    assert shared(needs) == set()
    both = by_hand & by_trace
    assert not [place for place in FLOOR if not any(within(module, (place,)) for module in both)]
    assert not any(within(module, BY_TRACE) for module in by_hand)
    assert not any(within(module, (*BY_HAND, "fedsim.algorithms")) for module in by_trace)


@pytest.mark.parametrize(("module", "borrows"), [
    ("fedsim.samplers.blocks", "theory.exact.gossip.general"),
    ("theory.exact.traced", "theory.exact.delay.closed"),
    ("theory.exact.federated.rounds", "fedsim.samplers.rounds"),
    ("theory.exact.delay.family", "theory.exact.traced"),
    ("theory.exact.evolution", "theory.exact.gossip.white")])
def test_a_loan_is_seen(module, borrows):
    needs = graph() | {module: graph()[module] | {borrows}}
    assert shared(needs)


def test_declarations_take_no_more_than_classes_of_the_kernels():
    path = ROOT / "fedsim" / "algorithms" / "declared.py"
    taken = {name for _, module, name in executed(path) if module.startswith("fedsim.algorithms")}
    assert taken == {kind.__name__ for kind in ROWS}
    assert {module.rpartition(".")[2] for _, module, _ in executed(path)
            if module.startswith("fedsim.algorithms")} == set(KERNELS)


@pytest.mark.parametrize("name", BY_NUMBERS)
def test_numbers_share_nothing_with_either(name):
    """They take of fedsim what users see, and the numbers of streams."""
    path = ROOT / "tests" / f"{name}.py"
    modules = {module for _, module, _ in executed(path) if module.split(".")[0] in ("fedsim", "theory")}
    assert modules <= {"fedsim", "fedsim.random.streams"}
    used = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name) and node.value.id == "fs"}
    assert used <= {"DESGHMC", "DESGLD", "FixedParticipation", "Gaussian", "IndependentParticipation",
                    "SoftmaxRegression", "Participation"}


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
def test_every_algorithm_has_both_and_the_table_says_where(kind):
    algorithm = ROWS[kind].plainest.algorithm
    by_hand, by_trace = family_of(algorithm), family_of(declared(algorithm))
    assert within(type(by_hand).__module__, BY_HAND) and within(type(by_trace).__module__, BY_TRACE)
    twin = ROWS[kind].twin
    assert twin.__module__ in BY_NUMBERS
    page = (pages.DOCS / "guide" / "equations.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `fs.{kind.__name__}` |")]
    assert f"`{type(declared(algorithm)).__name__}`" in row and f"tests/{twin.__module__}.py" in row
    folder = type(by_hand).__module__.split(".")[2]
    assert f"theory/exact/{folder}" in row
