"""The debug mode of the random streams: every word that a kernel asks Philox for, and words used twice.

A program, because kernels must be compiled anew: ``python tests/recorder.py FALD`` runs the cases of one
algorithm with code that also writes down each counter it gives to Philox, and prints what is wrong.

The rule. A word is one address (tag, position, client, unit, replica), and stands for one random variable. So
within a round it is drawn once by each lane that carries its replica (lanes that fill a tile repeat the last
one); if it belongs to a client, once for each slot in which this client stands (scheme I may draw a client
twice, a group of slots that is not full repeats the last, and slots that a lane does not need hold any
client). No other round draws it again, unless steps that share a draw lie in both rounds. And what the
definition of the algorithm asks for is there: for every step, every client that takes part, every evaluation
of a gradient.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":  # before numba is imported: quick to compile, and a cache of its own
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    _FOLDER = tempfile.TemporaryDirectory()
    os.environ |= {"NUMBA_OPT": "0", "NUMBA_CACHE_DIR": _FOLDER.name}

import numpy as np
from algorithms import ROWS
from examples_of import posterior
from llvmlite import ir
from mutants.fa_ld import FA_LD
from numba.core.errors import NumbaWarning
from problems import quadratic

import fedsim as fs
from fedsim.algorithms.bodies import advance
from fedsim.engine.block import lane_state
from fedsim.engine.job import make_job
from fedsim.random import philox, streams
from fedsim.random.normals import steps_per_draw
from fedsim.random.slots import NormalRoom
from fedsim.vector.compile import compiled
from fedsim.vector.memory import TILE
from fedsim.vector.tiles import INDEX, Words
from fedsim.vector.trajectories import Modes

LOG = np.zeros((2_000_000, 4), np.uint64)
COUNT = np.zeros(1, np.int64)
FAR = 2**16
"""Replicas, and steps, beyond the first 16 bits."""


@compiled
def one_round(kernel, problem, lanes, work, round):
    """As `run_rounds` calls it."""
    advance(kernel, problem, lanes, work, round)


def keep_counters() -> None:
    """Let all code that is compiled from now on write its counters to `LOG`."""
    original = philox.rounds

    def place(builder: Any, array: Any, index: Any) -> Any:
        return builder.gep(builder.inttoptr(INDEX(array.ctypes.data), INDEX.as_pointer()), [index])

    def rounds(*words: Any) -> Any:
        if not isinstance(words[0], Words):
            return original(*words)
        counter = [word & 0xFFFFFFFF for word in words[:4]]
        builder, end = words[0].builder, place(words[0].builder, COUNT, INDEX(0))
        values = [word.value for word in counter]
        tiled = [isinstance(value.type, ir.VectorType) for value in values]
        for lane in range(TILE if any(tiled) else 1):
            row = builder.load(end)
            for i, value in enumerate(values):
                one = builder.extract_element(value, INDEX(lane)) if tiled[i] else value
                builder.store(one, place(builder, LOG, builder.add(builder.mul(row, INDEX(4)), INDEX(i))))
            builder.store(builder.add(row, INDEX(1)), end)
        return original(*words)

    philox.rounds = rounds


def taken() -> np.ndarray:
    """The counters (n, 4) since the last call."""
    assert COUNT[0] < len(LOG), "the log is full"
    rows, COUNT[0] = LOG[:COUNT[0]].copy(), 0
    return rows


class Setting(NamedTuple):
    """One simulation: blocks of replicas as (first, last), and the rounds that are run of each."""

    problem: Any
    algorithm: Any
    start: Any
    n_rounds: int
    noise: str = "double"
    blocks: tuple[tuple[int, int], ...] = ((0, 34),)
    rounds: tuple[int, ...] = ()


class Checker:
    """Judges the words of one block, round by round."""

    def __init__(self, setting: Setting, job: Any, state: Any, block: tuple[int, int],
                 seen: dict[Any, int], fault: Any) -> None:
        self.fault = fault
        self.job, self.work, (self.first, self.last), self.seen = job, state.work, block, seen
        self.stale = hasattr(job.algorithm, "staleness")
        self.n_clients, self.dim = job.problem.n_clients, job.problem.dim
        self.local_steps = getattr(job.algorithm, "local_steps", 1)
        self.per_draw = steps_per_draw(2 if hasattr(state.lanes, "pairs") else self.dim, job.dtype)
        self.unit = 4 if setting.noise == "single" else 2  # normals of one word address
        self.by_pairs = hasattr(state.lanes, "pairs")
        self.lanes = carriers(state.lanes)
        self.start_lanes = carriers(streams.lane_set(job.seed, self.first, self.last - self.first))
        self.chosen = getattr(job.algorithm, "participation", None)

    def slots(self, lane: int) -> list[int]:
        """The clients of this lane's slots, also of those that it does not need."""
        return list(range(self.n_clients)) if self.chosen is None else self.work.drawn[:, lane].tolist()

    def working(self, lane: int, round: int) -> list[int]:
        """The clients that take part in a lane's round."""
        if isinstance(self.chosen, fs.FixedParticipation):
            return list(self.chosen.sets[round % self.chosen.n_sets])
        if isinstance(self.chosen, fs.IndependentParticipation):
            return self.work.drawn[self.work.lane_shares[:, lane] > 0.0, lane].tolist()
        return self.slots(lane)

    def asked(self) -> int:
        """Numbers that decide who takes part in a lane's round."""
        if isinstance(self.chosen, fs.IndependentParticipation):
            return self.n_clients
        return self.chosen.n_active if isinstance(self.chosen, fs.Participation) else 0

    def holders(self, tag: int, client: int, replica: int) -> int:
        """How often a lane may draw this word in a round."""
        if not of_a_client(tag):  # common normals are those of client 0, and a draw of clients has a number
            return int(client == 0 or tag == streams.PARTICIPATION)
        slots, own = self.slots(replica - self.first), self.work.own
        together = own.slots.shape[2] if isinstance(own, NormalRoom) else 1
        beyond = -len(slots) % together if tag == streams.OWN_NOISE and not self.stale else 0
        if self.chosen is None:  # the last group may draw for clients that do not exist
            return int(client < len(slots) + beyond)
        return slots.count(client) + beyond * (client == slots[-1])

    def shared_by(self, position: int, round: int) -> bool:
        """Has the group of steps at this position one in this round?"""
        first = position * self.per_draw
        return first // self.local_steps <= round <= (first + self.per_draw - 1) // self.local_steps

    def faults(self, words: np.ndarray, round: int) -> Iterator[str]:
        """What is wrong with the words of a round; -1 is the start."""
        rows, counts = np.unique(self.fault(words), axis=0, return_counts=True)
        carried = self.lanes if round >= 0 else self.start_lanes
        for (place, position, replica, tag), count in zip(rows.tolist(), counts.tolist(), strict=True):
            client, unit = divmod(place, streams.MAX_PAIRS)
            address = f"tag {tag}, position {position}, client {client}, unit {unit}, replica {replica}"
            lanes = carried.get((replica, unit if self.by_pairs and round >= 0 else None), 0)
            if not lanes:
                yield f"round {round}: {address}: no lane carries this replica"
            elif count > lanes * self.holders(tag, client, replica):
                yield f"round {round}: {address}: drawn {count} times by {lanes} lanes"
            before = self.seen.get((place, position, replica, tag))
            group = tag in (streams.OWN_NOISE, streams.SHARED_NOISE) and not self.stale
            again = group and all(self.shared_by(position, i) for i in (before, round) if i is not None)
            if before is not None and not again:
                yield f"round {round}: {address}: drawn in round {before} before"
            self.seen[place, position, replica, tag] = round
        for lane in {0, self.last - self.first - 1}:
            missing = self.needed(lane, round) - self.seen.keys()
            if missing:
                yield f"round {round}: nothing drawn for {sorted(missing)[0]}, {len(missing)} in all"

    def needed(self, lane: int, round: int) -> set[Any]:
        """Addresses of all variables of a round in one lane."""
        rows = [(client * streams.MAX_PAIRS + unit, position, self.first + lane, tag)
                for tag, position, client, unit in self.variables(lane, round)]
        return set(map(tuple, self.fault(np.array(rows, np.uint64).reshape(-1, 4)).tolist()))

    def variables(self, lane: int, round: int) -> Iterator[tuple[int, int, int, int]]:
        """(tag, position, client, unit) of all variables of a round in one lane."""
        algorithm, problem = self.job.algorithm, self.job.problem
        if round < 0:
            if self.job.start_cov is not None:
                yield from ((streams.START, 0, 0, unit) for unit in range(-(-self.dim // 2)))
            return
        slots, shared = self.working(lane, round), getattr(algorithm, "shared_noise", 0.0)
        yield from ((streams.PARTICIPATION, round, number, 0) for number in range(self.asked()))
        batch = problem.batch_size or 0 if problem.has_minibatches else 0
        rows = -(-self.dim * (self.per_draw if not self.by_pairs else 1) // self.unit)
        for step in range(round * self.local_steps, (round + 1) * self.local_steps):
            for unit in range(rows):
                if shared > 0.0:
                    yield streams.SHARED_NOISE, step // self.per_draw, 0, unit
                if shared < 1.0:
                    yield from ((streams.OWN_NOISE, step // self.per_draw, c, unit) for c in slots)
            for draw in range(algorithm._gradients_per_step(problem)):
                for client in slots:
                    yield from ((streams.MINIBATCH + draw, step, client, k) for k in range(-(-batch // 4)))
                    if problem.gradient_noise is not None:
                        yield from ((streams.GRADIENT_NOISE + draw, step, client, unit)
                                    for unit in range(-(-self.dim // self.unit)))


def carriers(lanes: Any) -> dict[tuple[int, int | None], int]:
    """How many lanes carry each replica, or pair of coordinates of it; what fills a tile repeats the last."""
    replicas, pairs = lanes.replicas.tolist(), getattr(lanes, "pairs", None)
    carried = list(zip(replicas, [None] * len(replicas) if pairs is None else pairs.tolist(), strict=True))
    return dict(Counter(carried + carried[-1:] * (-len(carried) % TILE)))


def of_a_client(tag: int) -> bool:
    """Does the client's field of such an address hold a client that takes part?"""
    return tag not in (streams.SHARED_NOISE, streams.START, streams.PARTICIPATION) or tag == streams.OWN_NOISE


def no_fault(words: np.ndarray) -> np.ndarray:
    """The words of the program."""
    return words


def check(setting: Setting, fault: Any = no_fault) -> tuple[int, list[str]]:
    """How many words a setting draws, and what is wrong with them, or with what `fault` makes of them."""
    job = make_job(setting.problem, setting.algorithm, setting.n_rounds, max(b for _, b in setting.blocks),
                   seed=1, start=setting.start, covariance="none", noise=setting.noise, allow_unstable=True)
    seen: dict[Any, int] = {}
    faults: list[str] = []
    for first, last in setting.blocks:
        taken()
        state = lane_state(job, first, last)
        checker = Checker(setting, job, state, (first, last), seen, fault)
        faults += checker.faults(taken(), -1)
        for round in setting.rounds or range(setting.n_rounds):
            one_round(state.kernel, state.arrays, state.lanes, state.work, round)
            faults += checker.faults(taken(), round)
    return len(seen), faults


def settings_of(kind: type, everything: bool) -> Iterator[tuple[str, Setting]]:
    """The cases of an algorithm in `tests/algorithms.py`, with constant steps: schedules draw nothing."""
    row = ROWS[kind]
    for name, (problem, algorithm, start) in row.laws.items():
        yield name, Setting(diagonal(problem, algorithm), plain(algorithm), start, row.n_rounds)
    for name, group in row.groups.items():
        if not (everything or name.startswith(("regression", "coordinates", "schedules"))):
            continue
        for noise, (number, (problem, algorithm, start)) in itertools.product(
                group.noises, enumerate(group.options())):
            if not (isinstance(problem, (fs.Quadratic, fs.GaussianMean)) or problem.has_minibatches):
                continue  # full gradients of data draw no more than those of quadratics
            yield f"{name}, {noise}, {number}", Setting(
                diagonal(problem, algorithm), plain(algorithm), start, group.n_rounds, noise,
                ((0, 3),) if max(group.replicas) < 3 else ((0, 34),))


def plain(algorithm: Any) -> Any:
    """With a small constant step."""
    return dataclasses.replace(algorithm, step_size=1e-3)


def diagonal(problem: Any, algorithm: Any) -> Any:
    """The problem without what is beside the diagonals of its Hessians, so that there is less to compile.

    Exact gradients draw nothing, as `test_streams` says. Trajectories in modes have dense Hessians.
    """
    dense = isinstance(problem, fs.Quadratic) and problem.structure == "dense"
    if not dense or (isinstance(algorithm, fs.FAHMC) and isinstance(algorithm._kernel(problem).modes, Modes)):
        return problem
    return fs.Quadratic(np.diagonal(problem.hessians, axis1=1, axis2=2), problem.minimizers, problem.weights,
                        problem.gradient_noise)


def tag_fault(kind: str) -> Any:
    """A program in which this kind of randomness has the tag of the clients' own noise."""
    first, count = streams.TAGS[kind]

    def fault(words: np.ndarray) -> np.ndarray:
        changed = words.copy()
        tags = words[:, 3].astype(np.int64)
        changed[:, 3] = np.where((tags >= first) & (tags - first < count), tags - first, tags)
        return changed

    return fault


def field_fault(column: int, mask: int) -> Any:
    """A program that cuts a word of the counter off."""
    def fault(words: np.ndarray) -> np.ndarray:
        changed = words.copy()
        changed[:, column] &= np.uint64(mask)
        return changed

    return fault


FAULTS = {f"{kind} has the tag of OWN_NOISE": tag_fault(kind)
          for kind in streams.TAGS if kind not in ("OWN_NOISE", "EACH")} | {  # EACH: see test_each
    "replica modulo 2^16": field_fault(2, 0xFFFF), "step modulo 2^16": field_fault(1, 0xFFFF),
    "client modulo 2^8": field_fault(0, 0x00FFFFFF), "row modulo 2": field_fault(0, 0xFFFF0000)}
"""Faults whose words are known from those of the program."""

KERNEL_FAULTS = ("shared noise the same in every round", "own noise the same in every round",
                 "gradient noise the same at every step", "shared noise drawn for each client",
                 "scheme I: own noise of the slot's number", "scheme I: the same clients in every round")
"""Mutants of `tests/mutants/fa_ld.py` whose own words are wrong."""


def wide_settings() -> list[Setting]:
    """Every kind of randomness, and clients, steps and replicas with more bits than a field may lose."""
    start = fs.Gaussian(np.zeros(2), np.eye(2))
    many = fs.Quadratic(np.full((258, 4), 1.0), np.zeros((258, 4)), None, 1.0)
    return [Setting(quadratic(noise=1.0), fs.FALD(1e-3, 2, 1.0, 0.5, fs.Participation(3, True)), start, 2),
            Setting(posterior("linear", 2, batch_size=4), fs.FALD(1e-3), None, 1),
            Setting(many, fs.FALD(1e-3), None, FAR + 1, blocks=((0, 33), (FAR, FAR + 33)),
                    rounds=(0, FAR))]


def teeth() -> dict[str, list[str]]:
    """What is said of every fault in the first setting that shows it; "none" is the program, in all."""
    result = {name: next(filter(None, (check(setting, fault)[1] for setting in wide_settings())), [])
              for name, fault in {"none": no_fault, **FAULTS}.items()}
    for name in KERNEL_FAULTS:
        mutant = FA_LD.all[name]
        case = FA_LD.cases[mutant.case]
        result[name] = check(Setting(case.problem, case.make(mutant.algorithm), case.start, 2))[1]
    return result


def main(words: list[str]) -> dict[str, Any]:
    """Of an algorithm the numbers of settings and words, and faults by setting; or `teeth`."""
    keep_counters()
    if words == ["teeth"]:
        return {name: faults[:3] for name, faults in teeth().items()}
    settings = dict(settings_of(getattr(fs, words[0]), words[1:] == ["all"]))
    results = {name: check(setting) for name, setting in settings.items()}
    return {"settings": len(results), "words": sum(count for count, _ in results.values()),
            "faults": {name: faults[:3] for name, (_, faults) in results.items() if faults}}


if __name__ == "__main__":
    warnings.simplefilter("ignore", NumbaWarning)  # code that holds an address is not cached: so it shall
    print(json.dumps(main(sys.argv[1:])))
