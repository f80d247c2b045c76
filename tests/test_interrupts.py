"""Ctrl-C while figures are made, at any moment: their files are the old ones or the new ones, and whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ("de_fig1", "fa_ld_fig1de")
MAKE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits SIGINT ignored
from reproduce.command import main
print("ready", flush=True)
sys.exit(main(sys.argv[1:]))
"""


def begun(folder, scale, workers):
    """The command line, in a group of processes of its own, as a terminal has it."""
    arguments = [*FIGURES, "--scale", scale, "--out", folder, "--workers", workers]
    return subprocess.Popen([sys.executable, "-c", MAKE, *map(str, arguments)], cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                            env=os.environ | {"PYTHONPATH": str(ROOT)})


def made(folder, scale, workers=1):
    """Files of a run that nobody disturbs, and how long it took after it was ready."""
    process = begun(folder, scale, workers)
    process.stdout.readline()
    since = time.monotonic()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return files(folder), time.monotonic() - since


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def interrupted(folder, workers, moment):
    """Ctrl-C so many seconds after the run was ready, to all of its processes; True where it met one."""
    process = begun(folder, "quick", workers)
    process.stdout.readline()
    time.sleep(moment)
    try:
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)  # until the last process of the group has ended
    finally:
        process.kill()
    assert process.returncode == 0 or "Traceback" not in errors or errors.rstrip().endswith(
        "KeyboardInterrupt"), errors
    return process.returncode != 0


def interrupt_often(folder, n_interrupts, seed):
    """How many of them met a run at work."""
    old, _ = made(folder / "figures", "tiny")
    new, seconds = made(folder / "whole", "quick")
    assert old.keys() == new.keys() and all(old[f"{name}.json"] != new[f"{name}.json"] for name in FIGURES)
    random, hits, states = np.random.default_rng(seed), 0, set()
    for number in range(n_interrupts):
        moment = seconds * (number + random.uniform()) / n_interrupts
        hits += interrupted(folder / "figures", 1 + number % 2, moment)
        found = files(folder / "figures")
        assert found.keys() == old.keys()  # no part is left
        for name in FIGURES:
            state = [{ending: content for ending, content in of.items() if ending.startswith(name)}
                     for of in (found, old, new)]
            assert state[0] in state[1:], f"{name}: neither old nor new, of seed {seed}, moment {moment}"
            states.add((name, state[0] == state[1]))
    assert made(folder / "figures", "quick", 2)[0] == new
    return hits, states


@pytest.mark.slow
def test_figures_interrupted_at_many_moments(tmp_path):
    hits, states = interrupt_often(tmp_path, 16, 1)
    print(f"{hits} of 16 interrupts met a run at work; {len(states)} states of two figures were seen")
    assert hits > 8
