"""The law test has power: wrong algorithms are caught by the very scores that the right one passes.

The sources of the kernels are copied with every mutation built in, each behind its own switch. So a
mutant is compiled code that differs from the program by one expression, and with all switches off
the copy gives the bits of the program itself.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from test_replicas_against_law import scores

import fedsim as fs
import fedsim.compile
import theory
from fedsim.compile import cache_folder

REPLICAS = 200_000
ROUNDS = 5
SOURCES = {"participation": "participation.py", "kernels": "problems/quadratic/kernels.py",
           "federated": "algorithms/federated.py", "fa_ld": "algorithms/fa_ld.py"}


class Mutation(NamedTuple):
    """In source `file`, `old` becomes `new`; a word ON(x) there is true when this mutation is chosen."""

    name: str
    case: str
    file: str
    old: str
    new: str


MUTATIONS = [
    Mutation("noise too large by sqrt(2)", "full", "fa_ld", "\n    size = np.sqrt(2.0 * eta",
             "\n    size = np.sqrt((4.0 if ON(kernel) else 2.0) * eta"),
    Mutation("noise too large by 2 percent", "full, own noise", "fa_ld", "\n    size = ",
             "\n    size = (1.02 if ON(kernel) else 1.0) * "),
    Mutation("temperature dropped", "full", "fa_ld", "self.local_steps, self.temperature,",
             "self.local_steps, 1.0 if ON() else self.temperature,"),
    Mutation("shared noise without its square root", "full", "fa_ld",
             "shared_size = np.sqrt(2.0 * eta * kernel.temperature * kernel.shared_noise)",
             "shared_size = np.sqrt(2.0 * eta * kernel.temperature * kernel.shared_noise"
             " * (kernel.shared_noise if ON(kernel) else 1.0))"),
    Mutation("the paper's rho taken for its square", "full, from paper", "fa_ld",
             'fraction("rho", rho) ** 2', 'fraction("rho", rho) ** (1 if ON() else 2)'),
    Mutation("schedule one step late", "full", "fa_ld", "step_size(kernel.schedule, step)",
             "step_size(kernel.schedule, step + (1 if ON(kernel) else 0))"),
    Mutation("schedule counts rounds", "full", "fa_ld", "step_size(kernel.schedule, ",
             "step_size(kernel.schedule, step // kernel.local_steps if ON(kernel) else "),
    Mutation("gradient at the server's value", "full", "fa_ld", "    langevin(problem, lane_set,",
             "    if ON(kernel):\n"
             "        stochastic_gradient(problem, lane_set, client, step, 0, work.server, work.scratch,\n"
             "                            work.gradient)\n"
             "        for i in range(work.server.shape[0]):\n"
             "            lanes.langevin_shared(work.local[slot, i], eta, work.gradient[i], size, private,\n"
             "                                  normal_row(own, i), shared_size, normal_row(shared, i))\n"
             "    else:\n"
             "        langevin(problem, lane_set,"),
    Mutation("private noise over the weight, not its root", "full", "federated",
             "private = 1.0 / np.sqrt(problem.weights)",
             "private = 1.0 / (problem.weights if ON() else np.sqrt(problem.weights))"),
    Mutation("weights ignored in the average", "full", "federated", "AllClients(problem.weights, private",
             "AllClients(np.full_like(problem.weights, 1.0 / problem.n_clients) if ON() else "
             "problem.weights, private"),
    Mutation("synchronisation a local step late", "full", "federated",
             "range(first, first + kernel.local_steps)",
             "range(first, first + kernel.local_steps + (1 if ON(kernel) else 0))"),
    Mutation("synchronisation a local step early", "full", "federated", "range(first, first + ",
             "range(first, first - (1 if ON(kernel) else 0) + "),
    Mutation("no broadcast after the average", "full", "federated",
             "        receive(kernel, work, slot)\n",
             "        if not (ON(kernel) and round > 0):\n            receive(kernel, work, slot)\n"),
    Mutation("shared noise drawn for each client", "full", "federated", "    local_update(kernel, problem",
             "    if ON(kernel) and kernel.shared_noise > 0.0:\n"
             "        normals(lane_set, SHARED_NOISE, step // per_draw, slot + 1, work.shared.rows[0])\n"
             "    local_update(kernel, problem"),
    Mutation("shared noise the same in every round", "full", "federated",
             "SHARED_NOISE, step // per_draw, 0,",
             "SHARED_NOISE, (step - first if ON(kernel) else step) // per_draw, 0,"),
    Mutation("own noise the same in every round", "full", "federated",
             "normals(lane_set, OWN_NOISE, step //",
             "normals(lane_set, OWN_NOISE, (step % kernel.local_steps if ON(kernel) else step) //"),
    Mutation("gradient noise dropped", "full", "kernels",
             "            lanes.axpy(out[i], element(problem.factors, client, i, j), scratch.normals[j])",
             "            for _ in range(0 if ON(problem) else 1):\n    "
             "            lanes.axpy(out[i], element(problem.factors, client, i, j), scratch.normals[j])"),
    Mutation("gradient noise doubled", "full", "kernels", " else 1):", " else 2 if ON(problem) else 1):"),
    Mutation("gradient noise uncorrelated", "full", "kernels", "scratch.normals[j])",
             "scratch.normals[i if ON(problem) else j])"),
    Mutation("gradient noise the same at every step", "full", "kernels",
             "step, client, scratch.normals)\n    for i in range(x.shape[0]):\n        for",
             "0 if ON(problem) else step, client, scratch.normals)\n"
             "    for i in range(x.shape[0]):\n        for"),
    Mutation("scheme I draws uniformly", "scheme I", "federated", "np.cumsum(problem.weights)",
             "np.cumsum(np.full_like(problem.weights, 1.0 / problem.n_clients) if ON() else "
             "problem.weights)"),
    Mutation("scheme I: fresh noise for a client drawn twice", "scheme I", "federated",
             "    own = Normals(",
             "    if ON(kernel) and fresh and kernel.shared_noise < 1.0:\n"
             "        normals(lane_set, OWN_NOISE + 8 + slot, step // per_draw, client, work.gradient)\n"
             "        for i in range(dim):\n"
             "            lanes.copy(work.own.slots[room][i, slot % together], work.gradient[i])\n"
             "    own = Normals("),
    Mutation("own noise of the group's first client", "full", "federated",
             "Normals(work.own.slots[room], slot % together,",
             "Normals(work.own.slots[room], 0 if ON(kernel) else slot % together,"),
    Mutation("scheme I: own noise of the slot's number", "scheme I", "federated",
             "Listed(work.drawn, slot)", "Listed(clients.order if ON(clients) else work.drawn, slot)"),
    Mutation("scheme I: the same clients in every round", "scheme I", "federated",
             "draw_clients(lane_set, round,", "draw_clients(lane_set, 0 if ON(clients) else round,"),
    Mutation("scheme I: one client fills all slots", "scheme I", "participation",
             "drawn[slot, b] = min(client, n_clients - 1)",
             "drawn[slot, b] = drawn[0, b] if ON(chosen) and slot > 0 else min(client, n_clients - 1)"),
    Mutation("scheme I: a client's weight used twice", "scheme I", "federated",
             "entry(clients.private, drawn)",
             "entry(clients.private if not ON(clients) else clients.squared, drawn)"),
    Mutation("scheme I: late synchronisation", "scheme I", "federated", " + kernel.local_steps + (",
             " + kernel.local_steps + (1 if ON(kernel) else 0) + ("),
    Mutation("scheme II draws with replacement", "scheme II", "participation", "drawn[slot, b] = chosen",
             "drawn[slot, b] = int(u * n_clients) if ON(mutant) else chosen"),
    Mutation("scheme II: a shuffle that forgets to swap", "scheme II", "participation",
             "pool[other, b] = pool[slot, b]",
             "pool[other, b] = pool[other, b] if ON(mutant) else pool[slot, b]"),
    Mutation("scheme II averages over all clients' number", "scheme II", "federated",
             "share = 1.0 / work.local.shape[0]",
             "share = 1.0 / (work.pool.shape[0] if ON(clients) else work.local.shape[0])"),
]

# What carries the switch to where it is asked for.
CARRIERS = [
    ("fa_ld", "from ..gradients import langevin",
     "from .. import lanes\nfrom ..slots import normal_row\n"
     "from ..gradients import langevin, stochastic_gradient"),
    ("fa_ld", "    clients: Any\n", "    clients: Any\n    mutant: int\n"),
    ("fa_ld", "self._clients(problem))", "self._clients(problem), SWITCH.value)"),
    ("federated", "    cumulative_weights: Array\n    private: Array\n    replace: bool\n",
     "    cumulative_weights: Array\n    private: Array\n    replace: bool\n"
     "    mutant: int\n    squared: Array\n    order: Array\n"),
    ("federated", "private, self.participation.replace)",
     "private, self.participation.replace, SWITCH.value, private**2,\n"
     "                np.tile(np.arange(self.participation.n_active)[:, None], (1, 512)))"),
    ("federated", "work.drawn, work.pool)\n", "work.drawn, work.pool, clients.mutant)\n"),
    ("participation", "cumulative_weights, drawn, pool):", "cumulative_weights, drawn, pool, mutant):"),
    ("kernels", "    exact: Any\n    factors: Array\n",
     "    exact: Any\n    factors: Array\n    mutant: int\n"),
]


def with_switch(text, number):
    """ON(kernel) -> (kernel.mutant == number), ON() -> (SWITCH.value == number)."""
    def condition(match):
        holder = match[1]
        if holder in ("mutant", "chosen"):
            return f"(mutant == {number})"
        return f"({holder}.mutant == {number})" if holder else f"(SWITCH.value == {number})"

    return re.sub(r"ON\((\w*)\)", condition, text)


def replaced_once(source, old, new, name):
    """The source with `old` replaced; it must occur exactly once, and the result must differ."""
    assert source.count(old) == 1, f"{name}: {source.count(old)} places read {old!r}"
    result = source.replace(old, new)
    assert result != source, name
    return result


def absolute_imports(source, folder, swapped):
    """Relative imports as absolute ones, from the copies where there is one."""
    def line(match):
        dots, rest = len(match[1]), match[2]
        parts = ["fedsim", *Path(folder).parts]
        base = ".".join(parts[:len(parts) - dots + 1])
        module = f"{base}.{rest}" if rest else base
        return f"from {swapped.get(module, module)} import"

    result = re.sub(r"^from (\.+)([\w.]*) import", line, source, flags=re.MULTILINE)
    assert not re.search(r"^from \.", result, flags=re.MULTILINE)
    return result


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """The mutated modules, with `.switch` to choose one mutation (0: none)."""
    root, folder = Path(fs.__file__).parent, tmp_path_factory.mktemp("mutants")
    text = {file: (root / path).read_text() for file, path in SOURCES.items()}
    for file, old, new in CARRIERS:
        text[file] = replaced_once(text[file], old, new, f"carrier in {file}")
    for number, mutation in enumerate(MUTATIONS, start=1):
        text[mutation.file] = replaced_once(text[mutation.file], mutation.old,
                                            with_switch(mutation.new, number), mutation.name)
    modules = SimpleNamespace(switch=SimpleNamespace(value=0))
    swapped = {"fedsim.participation": "fedsim_mutant_participation",
               "fedsim.algorithms.federated": "fedsim_mutant_federated"}
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(fedsim.compile, "cache_folder", lambda: folder)  # their machine code goes there
    for file, path in SOURCES.items():
        name = f"fedsim_mutant_{file}"
        target = folder / f"{name}.py"
        target.write_text(absolute_imports(text[file], Path(path).parent, swapped))
        spec = importlib.util.spec_from_file_location(name, target)
        module = importlib.util.module_from_spec(spec)
        module.SWITCH = modules.switch
        sys.modules[name] = module  # dataclasses and the copies look there
        spec.loader.exec_module(module)
        setattr(modules, file, module)
    monkeypatch.undo()
    yield modules
    for file in SOURCES:
        del sys.modules[f"fedsim_mutant_{file}"]


HARMONIC = fs.schedules.Harmonic(5.0, 0.7)


def contrasted(n_clients, weights, flattest=0.3):
    """Clients whose curvatures differ tenfold and whose gradient noise is correlated the same way."""
    scale = np.linspace(flattest, 3.0, n_clients)[:, None, None]
    return fs.Quadratic(scale * np.array([[1.0, 0.3], [0.3, 0.8]]),
                        2.0 * np.random.default_rng(5).standard_normal((n_clients, 2)), weights,
                        np.broadcast_to([[3.0, 2.0], [2.0, 2.5]], (n_clients, 2, 2)))


# Without a difference of curvatures the amount of shared noise does not show at all.
PROBLEMS = {"full": contrasted(3, [0.5, 0.3, 0.2]), "full, own noise": contrasted(3, [0.5, 0.3, 0.2]),
            "full, from paper": contrasted(2, None, 0.01), "scheme I": contrasted(3, [0.5, 0.3, 0.2]),
            "scheme II": contrasted(4, None)}


def algorithm_of(case, module, participation):
    """FA-LD of this module (the program's, or the mutated copy's) for a case."""
    if case == "full, from paper":
        return module.FALD.from_paper(fs.schedules.Harmonic(3.0, 0.01), 3, 3.0, 0.5)
    if case == "full, own noise":
        return module.FALD(HARMONIC, 3, 3.0, 0.0)
    if case == "full":
        return module.FALD(HARMONIC, 3, 0.6, 0.4)
    replace = case == "scheme I"
    return module.FALD(HARMONIC, 3, 0.6, 0.2, participation.Participation(3 if replace else 2, replace))


@pytest.fixture(scope="module")
def outcome(copies):
    """A function of (case, number of the mutation): run of the copy, and the exact law of the program."""
    def run(case, number):
        problem = PROBLEMS[case]
        law = theory.exact_law(problem, algorithm_of(case, fs, fs), ROUNDS)

        class Copied(fs.Quadratic):
            def _arrays(self):
                given = super()._arrays()
                return copies.kernels.NoisyQuadratic(given.exact, given.factors, number)

        copies.switch.value = number
        copied = Copied(problem.hessians, problem.minimizers, problem.weights, problem.gradient_noise)
        algorithm = algorithm_of(case, copies.fa_ld, copies.participation)
        assert type(algorithm) is not fs.FALD
        return fs.simulate(copied, algorithm, ROUNDS, REPLICAS, seed=21), law

    return run


@pytest.mark.parametrize("case", PROBLEMS)
def test_without_a_mutation_the_copy_is_the_program(case, outcome, alarm):
    run, law = outcome(case, 0)
    program = fs.simulate(PROBLEMS[case], algorithm_of(case, fs, fs), ROUNDS, REPLICAS,
                          seed=21)
    assert program.mean.tobytes() == run.mean.tobytes()
    assert program.cov.tobytes() == run.cov.tobytes()
    alarm.assert_normal(scores(program, law), case)


@pytest.mark.parametrize("number", range(1, len(MUTATIONS) + 1),
                         ids=[mutation.name for mutation in MUTATIONS])
def test_the_mutation_is_caught(number, outcome, alarm):
    mutation = MUTATIONS[number - 1]
    run, law = outcome(mutation.case, number)
    alarm.must_fail(scores(run, law), mutation.name)


def test_foreign_code_stays_out_of_the_shared_cache(outcome):
    """An index that names a class of another module could not be read without that module."""
    outcome("full", 0)
    kept = list(cache_folder().rglob("*.nbi"))
    assert kept
    assert not [path.name for path in kept if b"fedsim_mutant" in path.read_bytes()]
