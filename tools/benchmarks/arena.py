"""Interleaved timing: all contestants of a case stay alive and take turns, so that drift hits them alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .case import Case
from .judge import Finding, judge
from .laws import Laws

ROOT = Path(__file__).resolve().parents[2]
CONTESTANTS = ("fedsim", "fedsim single", "NumPy", "NumPy by updates", "NumPy in modes", "JAX natural",
               "JAX tuned", "JAX in modes", "JAX own normals", "desgld")
PEERS = ("desgld",)
"""Programs that are left out where they are not installed, and that another interpreter may run."""
FLOOR_SHARE = 0.5
FIRST_TURNS = 3
Say = Callable[[str], None]


class WorkerError(RuntimeError):
    """A worker ended before it answered."""


class Process:
    """A running worker, of this interpreter or of a peer's."""

    def __init__(self, contestant: str, case: str, threads: int, factor: float, cache: Path,
                 python: str = sys.executable) -> None:
        self.contestant, self.threads = contestant, threads
        # no BLAS threads: NumPy's products here are small, and waiting threads disturb everybody
        given = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
                              "NUMBA_CACHE_DIR": str(cache), "JAX_PLATFORMS": "cpu",
                              "PYTHONPATH": str(ROOT)}
        if threads == 1:
            given["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        self.process = subprocess.Popen(
            [python, "-m", "tools.benchmarks.worker", contestant, case, str(threads), str(factor)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=given)

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps({"do": do, **request}) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerError(f"{self.contestant}, {self.threads} threads: ended with code "
                              f"{self.process.wait()} at {do!r}")
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@dataclass
class Result:
    """One contestant on one case with one number of threads; seconds are of each repetition.

    `steps` are counted in the case's unit. With a `note` it computes something else and is not judged.
    """

    case: str
    contestant: str
    threads: int
    n_rounds: int
    n_replicas: int
    steps: int
    normals: int
    note: str = ""
    import_seconds: float = 0.0
    compile_seconds: float = 0.0
    first_seconds: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    floor_seconds: list[float] = field(default_factory=list)
    floor_normals: int = 0
    peak_bytes: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)
    failure: str = ""

    @property
    def valid(self) -> bool:
        """It ran, and every sample passed the law test; with a note, it ran."""
        if self.note:
            return not self.failure and bool(self.seconds)
        return not self.failure and bool(self.findings) and all(f.valid for f in self.findings.values())

    @property
    def rates(self) -> np.ndarray:
        """Seconds per step of each repetition."""
        return np.array(self.seconds) / self.steps

    @property
    def floor_ratio(self) -> np.ndarray:
        """Time of a run over that of its random numbers, of each repetition."""
        return (np.array(self.seconds) / self.normals) / (np.array(self.floor_seconds) / self.floor_normals)

    @property
    def ns_per_normal(self) -> np.ndarray:
        """Nanoseconds of a normal (and its share of minibatches) drawn alone, in the same lanes."""
        return 1e9 * np.array(self.floor_seconds) / self.floor_normals


class Arena:
    """All contestants of one case, at each number of threads."""

    def __init__(self, case: Case, factor: float, contestants: tuple[str, ...], threads: tuple[int, ...],
                 folder: Path, say: Say, peer_python: str = sys.executable) -> None:
        self.case, self.factor, self.folder, self.say = case, factor, folder, say
        self.peer_python = peer_python
        self.laws = Laws(case.tables())
        self.results: list[Result] = []
        self.processes: dict[int, Process] = {}
        self.finals: dict[int, list[np.ndarray]] = defaultdict(list)
        self.floors: dict[int, list[np.ndarray]] = defaultdict(list)
        for name in contestants:
            if name not in case.contestants:
                continue
            for n in threads[:1] if name in PEERS else threads:  # peers know nothing of threads
                rounds, replicas = case.rounds_of(name), case.replicas_of(name)
                self.results.append(Result(case.name, name, n, rounds, replicas, case.steps(rounds, replicas),
                                           case.normals(rounds), case.notes.get(name, "")))

    def _each(self, what: str, action: Callable[[Result, Process], None]) -> None:
        """Do something with every contestant that is still alive."""
        for result in self.results:
            if result.failure:
                continue
            try:
                action(result, self.processes[id(result)])
            except WorkerError as error:
                result.failure = str(error)
                self.say(f"  FAILED ({what}): {error}")

    def _process(self, result: Result) -> Process:
        python = self.peer_python if result.contestant in PEERS else sys.executable
        return Process(result.contestant, self.case.name, result.threads, self.factor, self.folder / "cache",
                       python)

    def _sample(self, process: Process, what: str, seed: int) -> tuple[dict[str, Any], np.ndarray]:
        path = self.folder / "samples.npy"
        answer = process.ask("run", what=what, seed=seed, path=str(path))
        return answer, np.load(path)

    def _prepare(self, result: Result, process: Process) -> None:
        result.import_seconds = process.ask("import")["seconds"]
        sizes = {"rounds": result.n_rounds, "replicas": result.n_replicas}
        result.compile_seconds = process.ask("prepare", what="timed", **sizes)["seconds"]
        if result.contestant.startswith("fedsim"):
            rounds = max(1, round(FLOOR_SHARE * result.n_rounds))
            process.ask("prepare", what="floor", rounds=rounds, replicas=self.case.n_replicas)
            result.floor_normals = self.case.normals(rounds)

    def _once(self, result: Result, process: Process, seed: int) -> None:
        """Run once more; seed 0 warms up."""
        answer, final = self._sample(process, "timed", seed)
        if seed:
            result.seconds.append(answer["seconds"])
            result.cpu_seconds.append(answer["cpu"])
            self.finals[id(result)].append(final)
        if result.floor_normals:
            answer, final = self._sample(process, "floor", seed)
            if seed:
                result.floor_seconds.append(answer["seconds"])
                self.floors[id(result)].append(final)

    def _first(self, result: Result, _process: Process) -> None:
        if result.threads > 1:
            return
        for _ in range(FIRST_TURNS):  # each in a process of its own, whose compiled code is on disk
            process = self._process(result)
            try:
                process.ask("import")
                result.first_seconds.append(process.ask("first", replicas=result.n_replicas)["seconds"])
            finally:
                process.close()

    def _memory(self, result: Result, process: Process) -> None:
        result.peak_bytes = process.ask("memory")["bytes"]

    def _check(self, result: Result, process: Process) -> None:
        if result.note:  # only that it computed something
            if not np.isfinite(np.concatenate(self.finals[id(result)])).all():
                result.failure = "a sample is not finite"
            return
        result.findings["timed"] = self.laws.judge(np.concatenate(self.finals[id(result)]), result.n_rounds)
        if result.floor_normals:
            # the floor's generator does not take the seed: its last draws are the same every time
            result.findings["floor"] = judge(self.floors[id(result)][0], np.zeros(1), np.ones(1))
        process.ask("prepare", what="check", rounds=self.case.check_rounds, replicas=self.case.check_replicas)
        sample = self._sample(process, "check", 1000)[1]
        result.findings["check"] = self.laws.judge(sample, self.case.check_rounds)

    def run(self, repeats: int) -> list[Result]:
        """Time, then judge."""
        try:
            for result in self.results:
                self.processes[id(result)] = self._process(result)
            self.say(f"case {self.case.name}: {self.case.title}")
            self._each("prepare", self._prepare)
            for seed in range(repeats + 1):
                self.say(f"  {'warm-up' if not seed else f'repetition {seed} of {repeats}'}")
                self._each("run", partial(self._once, seed=seed))
            self._each("memory", self._memory)
            self.say("  first results")
            self._each("first", self._first)
            self.say("  law test")
            self._each("check", self._check)
        finally:
            for process in self.processes.values():
                process.close()
        return self.results

    def power(self) -> dict[str, bool]:
        """Is each wrong program caught by the check sample of the law test?"""
        caught = {}
        process = Process("NumPy", self.case.name, 1, self.factor, self.folder / "cache")
        try:
            process.ask("import")
            for name in self.case.tables().mutations():
                process.ask("prepare", what=name, rounds=self.case.check_rounds,
                            replicas=self.case.check_replicas)
                sample = self._sample(process, name, 1000)[1]
                caught[name] = not self.laws.judge(sample, self.case.check_rounds).valid
        finally:
            process.close()
        return caught


def first_calls(case: Case, contestants: tuple[str, ...], folder: Path) -> dict[str, dict[str, float]]:
    """Seconds of import and first call, in a fresh cache and in a second process."""
    result: dict[str, dict[str, float]] = {}
    for name in contestants:
        cache = folder / f"fresh {name}"
        for which in ("first process", "second process"):
            process = Process(name, case.name, 1, 1.0, cache)
            try:
                begin = process.ask("import")["seconds"]
                call = process.ask("prepare", what="timed", rounds=1, replicas=case.n_replicas)
            finally:
                process.close()
            result[f"case {case.name}, {name}, {which}"] = {"import": begin, "first call": call["seconds"],
                                          "processor": call["cpu"]}
    return result
