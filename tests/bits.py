"""The bits that are promised: tiny runs of every algorithm, the SHA-256 of each, and what renews the table.

``python -m tests.bits`` computes every hash, prints which differ from ``tests/bits.json`` and writes it.
A hash changes only in a commit of its own, whose message says why the numbers had to change: who upgrades
would otherwise find other bits for the same seed, and not know whether to trust them.

Promised is what compiled code does with the numbers that it is given. Most are those of the user. Some are
worked out by LAPACK, whose last bits differ from one processor to another, and then so do those of a run:

- the square root of a Gaussian start's covariance, if it is not diagonal;
- the factor of gradient noise that is given as covariances;
- the one client that the stale algorithms make of many, and its minimizer if Hessians are dense;
- Hessians and minimizers of a linear regression.

On one machine these have fixed bits too. The cases here are such that LAPACK cannot round: each starts at a
point or with a diagonal covariance, and what is solved for is 0.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fedsim as fs
from fedsim import network
from fedsim.engine.rounds import run_rounds
from fedsim.fingerprints import feed
from fedsim.interfaces import start_of
from fedsim.laws.distance import psd_sqrt

TABLE = Path(__file__).with_name("bits.json")
N_ROUNDS, N_REPLICAS, SEED = 5, 64 * 2 + 20, 2**33 + 5  # the last leaf is short
PRECISIONS = ("double", "single")


class Case(NamedTuple):
    """A problem, an algorithm and a start."""

    problem: Any
    algorithm: Any
    start: Any = None


PLANE = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]], [[0.6, 0.1], [0.1, 2.2]]],
                     [[0.0, 1.0], [2.0, 3.0], [-1.5, 0.3]], [0.3, 0.5, 0.2])
EVEN = fs.Quadratic(PLANE.hessians, PLANE.minimizers)
NOISY = fs.Quadratic(PLANE.hessians, PLANE.minimizers, PLANE.weights, 0.7)
DENSE = fs.Quadratic([[[2.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 0.8]],
                      [[1.0, -0.2, 0.3], [-0.2, 0.7, 0.1], [0.3, 0.1, 1.4]]],
                     [[0.0, 1.0, -1.0], [2.0, 3.0, 0.5]], [0.3, 0.7])
DIAGONAL = fs.Quadratic([[0.5, 1.5], [2.0, 0.9], [1.1, 0.4]], [[0.2, 1.0], [-2.0, 3.0], [1.0, -0.7]],
                        [0.3, 0.5, 0.2])
ALONE = fs.Quadratic(PLANE.hessians[:1], [[0.0, 0.0]], gradient_noise=0.7)  # 0, however it is solved for
ALONE_DIAGONAL = fs.Quadratic([[0.5, 1.5]], [[0.2, 1.0]])
FEATURES = np.outer(np.arange(1.0, 13.0), [0.125, -0.375]) % 1.0 - np.array([0.25, 0.625])
CLIENTS = np.array([0, 1, 0, 2, 1, 0, 2, 1, 0, 2, 2, 1])
LABELS = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0])
LOGISTIC, LOGISTIC_BATCH = (fs.LogisticRegression(FEATURES, LABELS, CLIENTS, prior_variance=4.0, **options)
                            for options in ({}, {"batch_size": 2, "replace": True}))
CLASSES = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 2, 0])
SOFTMAX, SOFTMAX_BATCH = (fs.SoftmaxRegression(FEATURES, CLASSES, CLIENTS, prior_variance=4.0, **options)
                          for options in ({}, {"batch_size": 3, "replace": False}))
LINEAR_BATCH = fs.LinearRegression(FEATURES, LABELS - 0.25, CLIENTS, noise_std=0.5, prior_variance=4.0,
                                   batch_size=3, replace=False)
LINEAR = fs.LinearRegression(FEATURES, 0.0 * LABELS, CLIENTS, noise_std=0.5, prior_variance=4.0)
MEAN, MEAN_BATCH = (fs.GaussianMean(FEATURES[:, 0], batch_size=size) for size in (None, 5))
HARMONIC = fs.schedules.Harmonic(6.0, 0.5)
SCHEME_I, SCHEME_II = fs.Participation(2, True), fs.Participation(2, False)
SPREAD = fs.Gaussian([1.0, -1.0], [0.25, 2.25])  # diagonal, so that its root needs no LAPACK
RING = network.ring(3)

CASES: dict[str, dict[str, Case]] = {
    "FALD": {
        "plane": Case(PLANE, fs.FALD(0.15, 3, 0.5, 0.4), SPREAD),
        "dense": Case(DENSE, fs.FALD(0.1, 2, shared_noise=0.4), [5.0, -5.0, 0.0]),
        "diagonal": Case(DIAGONAL, fs.FALD(0.15, 3, shared_noise=0.4), SPREAD),
        "gradient noise, scheme I": Case(NOISY, fs.FALD(HARMONIC, 2, 0.5, participation=SCHEME_I)),
        "scheme II": Case(EVEN, fs.FALD(0.15, 3, 0.5, 1.0, SCHEME_II)),
        "logistic": Case(LOGISTIC, fs.FALD(0.05, 2, 0.8, 0.3)),
        "logistic, minibatches": Case(LOGISTIC_BATCH, fs.FALD(0.05, 2, 0.8, 0.3)),
        "softmax": Case(SOFTMAX, fs.FALD(0.05, 2, 0.8, 0.3)),
        "softmax, minibatches": Case(SOFTMAX_BATCH, fs.FALD(0.05, 2, 0.8, 0.3)),
        "linear": Case(LINEAR, fs.FALD(0.02, 2, 0.8, 0.3), [2.0, -3.0]),
        "linear, minibatches, scheme I": Case(LINEAR_BATCH, fs.FALD(0.02, 2, 0.8, 0.3, SCHEME_I)),
        "mean": Case(MEAN, fs.FALD(0.02, 2)),
    },
    "FAHMC": {
        "plane": Case(PLANE, fs.FAHMC(0.25, 3, 2, 0.5), SPREAD),
        "diagonal, gradient noise": Case(fs.Quadratic(DIAGONAL.hessians, DIAGONAL.minimizers, None, 0.7),
                                         fs.FAHMC(HARMONIC, 2, 2, 1.0)),
        "stale, exact first round": Case(PLANE, fs.FAHMC(0.1, 3, 3, 0.5, "stale", "exact"), [4.0, -3.0]),
        "stale, as printed, scheme II": Case(EVEN, fs.FAHMC(0.1, 3, 2, 0.0, "stale", "printed", SCHEME_II)),
        "fresh, scheme I": Case(PLANE, fs.FAHMC(0.1, 3, 3, 1.0, "fresh", participation=SCHEME_I)),
        "logistic, minibatches": Case(LOGISTIC_BATCH, fs.FAHMC(0.1, 2, 2, 0.4)),
        "logistic, fresh": Case(LOGISTIC, fs.FAHMC(0.1, 2, 2, 0.4, "fresh")),
    },
    "DESGLD": {
        "plane, gradient noise": Case(NOISY, fs.DESGLD(0.3, RING), SPREAD),
        "dense": Case(DENSE, fs.DESGLD(0.2, network.complete(2))),
        "diagonal": Case(DIAGONAL, fs.DESGLD(HARMONIC, network.path(3)),
                         [[6.0, 0.0], [-6.0, 3.0], [0.0, 1.0]]),
        "linear, minibatches": Case(LINEAR_BATCH, fs.DESGLD(0.02, RING)),
    },
    "DESGHMC": {
        "plane, gradient noise": Case(NOISY, fs.DESGHMC(0.3, 1.5, RING), SPREAD),
        "diagonal": Case(DIAGONAL, fs.DESGHMC(0.3, 1.0, network.star(3), [[3, 0], [0, -2], [1, 1]])),
        "linear, minibatches": Case(LINEAR_BATCH, fs.DESGHMC(0.1, 2.0, RING)),
    },
    "StaleSGLD": {
        "plane, gradient noise": Case(ALONE, fs.StaleSGLD(0.1, 3), [3.0, -1.0]),
        "diagonal, workers": Case(ALONE_DIAGONAL, fs.StaleSGLD(0.05, fs.Workers(4, "exponential", seed=7))),
        "mean, minibatches, schedules": Case(MEAN_BATCH, fs.StaleSGLD(
            0.02, fs.Workers(3, seed=1, schedules=5))),
    },
    "StaleSGHMC": {
        "plane, gradient noise": Case(ALONE, fs.StaleSGHMC(0.2, 2.0, 2), SPREAD),
        "diagonal, workers": Case(ALONE_DIAGONAL, fs.StaleSGHMC(0.15, 3.0, fs.Workers(4, seed=2))),
        "mean, minibatches": Case(MEAN_BATCH, fs.StaleSGHMC(0.1, 4.0, 1)),
    },
}
EVERY = [f"{algorithm}: {name}, {precision}" for algorithm, cases in CASES.items() for name in cases
         for precision in PRECISIONS]


def case_of(name: str) -> Case:
    """The case of one of the names in `EVERY`."""
    algorithm, _, rest = name.partition(": ")
    return CASES[algorithm][rest.rpartition(", ")[0]]


def simulate(name: str, **options: Any) -> fs.Run:
    """Run the case of this name; the options decide how the work is cut."""
    problem, sampler, start = case_of(name)
    return fs.simulate(problem, sampler, N_ROUNDS, N_REPLICAS, **{
        "seed": SEED, "start": start, "record": [2, 4], "average": "square", "keep_final": True,
        "noise": name.rpartition(", ")[2], "threads": 1} | options)


def sha(run: fs.Run) -> str:
    """Hash of all numbers of a run: rounds, moments and their errors, last iterates, averages, costs."""
    digest = hashlib.sha256(json.dumps(run.costs, sort_keys=True).encode())
    for law in (run, *run.clients):
        for part in (law.rounds, law.mean, law.cov, law.leaf_cov, law.spread, law.final, law.averages):
            digest.update(b"none" if part is None else repr((part.dtype.str, part.shape)).encode()
                          + part.tobytes())
    return digest.hexdigest()


def table() -> dict[str, str]:
    """What is committed."""
    return dict(json.loads(TABLE.read_text(encoding="utf-8")))


def inputs(name: str) -> str:
    """Hash of what compiled code is given in this case: no BLAS, LAPACK or loop of NumPy may have a say."""
    case = case_of(name)
    problem, sampler = case.algorithm._bind(case.problem, N_ROUNDS)
    mean, cov = start_of(problem, sampler, case.start)
    digest, arrays = hashlib.sha256(), problem._arrays()
    if case.problem is LINEAR_BATCH:  # minibatches look at the data, not at the form of full gradients
        arrays = problem._data
    root = cov if cov is None else np.sqrt(cov) if cov.ndim == 1 else psd_sqrt(cov)
    feed(digest, (arrays, sampler._kernel(problem), mean, root))
    return digest.hexdigest()


def compiled_lines() -> Iterator[str]:
    """Instructions of the loop over rounds, of every case that was run and that no cache had."""
    for text in run_rounds.inspect_asm().values():
        yield from text.splitlines()


def registers(lines: Iterable[str]) -> dict[str, int]:
    """How many instructions use wide registers, multiply and add in one, or call a function for that."""
    counts = {"zmm": 0, "ymm": 0, "xmm": 0, "vfmadd": 0, "fma": 0}
    for line in lines:
        words = line.replace("%", " ").replace(",", " ").split()
        counts["vfmadd"] += any(word.startswith(("vfmadd", "vfmsub", "vfnmadd", "vfnmsub")) for word in words)
        counts["fma"] += any(word.strip("$").removesuffix("@PLT") in ("fma", "fmaf") for word in words)
        for register in ("zmm", "ymm", "xmm"):
            counts[register] += any(word.startswith(register) for word in words)
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Write the table again, or print some hashes and what the compiled code uses."""
    parser = argparse.ArgumentParser(prog="python -m tests.bits", description="Renew tests/bits.json.")
    parser.add_argument("--print", nargs="*", metavar="CASE", help="hashes of these, as JSON")
    parser.add_argument("--code", action="store_true", help="and what their code uses, if no cache has it")
    parsed = parser.parse_args(arguments)
    if parsed.print is not None:
        said = {"hashes": {name: sha(simulate(name)) for name in parsed.print},
                "inputs": {name: inputs(name) for name in EVERY}}
        json.dump(said | ({"code": registers(compiled_lines())} if parsed.code else {}), sys.stdout)
        return 0
    before = table() if TABLE.exists() else {}
    after = {}
    for number, name in enumerate(EVERY, start=1):
        after[name] = sha(simulate(name))
        state = "new" if name not in before else "same" if before[name] == after[name] else "CHANGED"
        print(f"{number:3} of {len(EVERY)} {state:8}{name}", flush=True)
    for name in before.keys() - after.keys():
        print(f"           gone    {name}")
    TABLE.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    if before and before != after:
        print("commit the new table by itself, and say why the numbers had to change")
    return 0


if __name__ == "__main__":
    sys.exit(main())
