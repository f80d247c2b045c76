"""`python -m reproduce certificates`: how fast samplers contract for every client of a class, proved.

`theory.certify` is asked of the shipped algorithms and of some successors, for curvatures from 1 to 2, 10 and
100, two step sizes, and two networks of ten clients. The certificates go to `certificates.json`, a record a
line, with the reason where none was found. `--verify` checks them in fractions, and that they are of the
rounds that the algorithms have today; no solver is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fedsim as fs
import theory
from fedsim.samplers import exp, grad, mean, noise, sqrt, weights
from theory.all_clients import ContractionCertificate, NotProved

from . import store
from .figure import BadInput

FILE = "certificates.json"
KAPPAS = (2.0, 10.0, 100.0)
SHARES = (0.1, 0.5)
"""Step sizes, times L; of momenta their squares are."""
CLIENTS = 10
NETWORKS = {"ring": fs.network.ring(CLIENTS), "grid": fs.network.grid(2, 5)}
LOCAL = 5
CLOSE = 1e-5
"""Rates that differ by less are shown as one."""


@fs.sampler(follows="components")
def extra_sgld(x, s, *, step_size, W):
    """EXTRA with noise."""
    return W @ x - s - step_size * grad(x) + sqrt(2 * step_size) * noise(), s + (x - W @ x) / 2


@fs.sampler(follows="components")
def diging_sgld(x, y, g, *, step_size, W):
    """DIGing with noise."""
    new = grad(x)
    y = W @ y + new - g
    return W @ x - step_size * y + sqrt(2 * step_size) * noise(), y, new


@fs.sampler(follows="components")
def de_baoab(x, v, *, step_size, friction, W):
    """Kinetic Langevin by the splitting BAOAB, positions mixed."""
    c = exp(-friction * step_size)
    v = v - step_size / 2 * grad(x)
    x = W @ x + step_size / 2 * v
    v = c * v + sqrt(1 - c * c) * noise()
    x = x + step_size / 2 * v
    return x, v - step_size / 2 * grad(x)


@fs.sampler
def scaffold_ld(x, c, m, *, step_size, local_steps):
    """Local Langevin steps with control variates."""
    y = x
    for _ in range(local_steps):
        y = y - step_size * (grad(y) - c + m) + sqrt(2 * step_size / weights()) * noise()
    new = c - m + (x - y) / (local_steps * step_size)
    return mean(y), new, mean(new)


@fs.sampler(follows="components")
def local_gossip(x, *, step_size, W, local_steps):
    """Local Langevin steps between exchanges with neighbours."""
    for _ in range(local_steps):
        x = x - step_size * grad(x) + sqrt(2 * step_size) * noise()
    return W @ x


def algorithms(L: float, share: float) -> dict[str, Any]:
    """The algorithms at a step size share / L, by name and network."""
    eta = share / L
    kinetic, friction = float(np.sqrt(eta)), 2.0 * float(np.sqrt(L))
    found: dict[str, Any] = {
        "FA-LD, 5 local steps": fs.FALD(eta, local_steps=LOCAL),
        "FA-HMC, 5 leapfrogs": fs.FAHMC(kinetic / LOCAL, LOCAL),
        "SCAFFOLD-LD, 5 local steps": scaffold_ld(step_size=eta, local_steps=LOCAL),
        "stale SGLD, age 2": fs.StaleSGLD(0.2 * eta, 2),
        "stale SGHMC, age 2": fs.StaleSGHMC(0.2 * kinetic, friction, 2)}
    for name, W in NETWORKS.items():
        found |= {
            f"DE-SGLD, {name}": fs.DESGLD(eta, W),
            f"DE-SGHMC, {name}": fs.DESGHMC(0.5 * kinetic, friction, W),
            f"EXTRA-SGLD, {name}": extra_sgld(step_size=eta, W=W),
            f"DIGing-SGLD, {name}": diging_sgld(step_size=0.1 * eta, W=W),
            f"BAOAB, {name}": de_baoab(step_size=0.5 * kinetic, friction=friction, W=W),
            f"5 steps and gossip, {name}": local_gossip(step_size=eta, W=W, local_steps=LOCAL)}
    return found


def jobs() -> dict[str, tuple[Any, float]]:
    """Every algorithm with its L, by the name of its record."""
    return {f"{name}; kappa {L:g}, step {share:g}": (algorithm, L)
            for L in KAPPAS for share in SHARES for name, algorithm in algorithms(L, share).items()}


def searched(algorithm: Any, L: float) -> dict[str, Any]:
    """A record: the certificate, or why there is none."""
    one = algorithm.convention == "global"
    known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=L, convention=algorithm.convention,
                             n_clients=1 if one else CLIENTS)
    try:
        return dict(json.loads(theory.certify(algorithm, known).to_json())) | {"seconds": 0.0}
    except NotProved as error:
        return {"none": str(error)}


def load(folder: Path = store.FOLDER) -> dict[str, dict[str, Any]]:
    """The stored records by name; none where there is no file."""
    path = folder / FILE
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def certificates(records: dict[str, dict[str, Any]]) -> dict[str, ContractionCertificate]:
    """The certificates among records."""
    return {name: ContractionCertificate.from_json(json.dumps(record)) for name, record in records.items()
            if "none" not in record}


def verified(records: dict[str, dict[str, Any]]) -> dict[str, ContractionCertificate]:
    """The certificates, each checked in fractions, and found to be of its algorithm's round.

    Raises
    ------
    BadInput
        For one that proves nothing, or a record of nothing that is certified.
    """
    todo, found = jobs(), certificates(records)
    for name, one in found.items():
        try:
            one.verify(todo[name][0])
        except (NotProved, KeyError) as error:
            raise BadInput(f"{FILE}, {name}: {error}; after a change: python -m reproduce "
                           "certificates") from None
    return found


def as_json(records: dict[str, dict[str, Any]]) -> str:
    """A record a line, in the order of their names."""
    lines = [f"{json.dumps(name)}: {json.dumps(records[name], separators=(',', ':'))}"
             for name in sorted(records)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def rows(folder: Path = store.FOLDER) -> list[list[str]]:
    """A row for each algorithm: by step size and curvature its rate, and the quadratic clients' if less."""
    known = certificates(load(folder))
    return [[name, *(_rates(known.get(f"{name}; kappa {L:g}, step {share:g}")) for share in SHARES
                     for L in KAPPAS)] for name in algorithms(1.0, SHARES[0])]


def _rates(one: ContractionCertificate | None) -> str:
    if one is None:
        return "none found"
    return f"{one.value:.5f}" + (f" ({one.quadratic:.5f})" if one.value - one.quadratic > CLOSE else "")


def main(given: Sequence[str]) -> int:
    """Command line; exit code 2 where a stored certificate proves nothing."""
    parser = argparse.ArgumentParser(prog="python -m reproduce certificates", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verify", action="store_true", help="only check those that are stored")
    parser.add_argument("--out", metavar="FOLDER", help=f"write {FILE} there instead of figures/")
    arguments = parser.parse_args(given)
    folder = Path(arguments.out) if arguments.out else store.FOLDER
    began = time.perf_counter()
    if not arguments.verify:
        records, todo = {}, jobs()
        for number, (name, (algorithm, L)) in enumerate(todo.items(), start=1):
            records[name] = searched(algorithm, L)
            print(f"[{number:>3}/{len(todo)}] {name}: {_told(records[name])}", file=sys.stderr, flush=True)
        store.publish(folder, {FILE: as_json(records)})
    records = load(folder)
    try:
        found = verified(records)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(found)} certificates of {len(records)} searches, each checked in fractions, in "
          f"{time.perf_counter() - began:.0f} s")
    return 0


def _told(record: dict[str, Any]) -> str:
    return record.get("none") or f"{record['rate']}, of quadratic clients {record['quadratic']:.6f}"
