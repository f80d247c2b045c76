"""What FA-HMC's figures on image data share: clients, shared momentum, tuning, and what is swept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import fedsim as fs

from .. import plot
from ..figure import ByScale, Parameter, Tables
from ..prediction import drawing, judging, runs
from ..tables import among
from ..verdicts import Judgement
from .shared import SECTION, either
from .stepwise_sampler import sample_path, section_5

SETTING = [
    Parameter("n_clients", 10, "paper", "section 5.3: N = 10 equal parts, drawn at random"),
    Parameter("shared_noise", 1.0, "paper", "section 5: the same momentum on all clients"),
    Parameter("tuned_on", "validation rows", "ours", "by log loss, on rows that no client holds; the paper "
              "tunes on the plotted statistic of the test rows (hollow)"),
    Parameter("prior_variance", 1.0, "ours", "of every weight; no prior is printed"),
    Parameter("every", 1, "ours", "a sample after every round; the paper's fixed number is not printed"),
    Parameter("split_seed", 0, "ours", "of the division into clients, validation and test rows"),
    Parameter("tuning_seed", 1, "ours", "of the chains that are tuned"),
    Parameter("seed", 2, "ours", "of the runs, and of the exact predictive"),
    Parameter("bootstrap_seed", 3, "ours", "of rows drawn again"),
]
REFERENCE = [
    Parameter("reference_chains", ByScale(8, 20, 40), "ours", "Metropolis-adjusted chains of the posterior"),
    Parameter("reference_draws", ByScale(10, 30, 100), "ours", "of each of them"),
    Parameter("reference_warmup", 10, "ours", "draws left out, from starts of the Laplace law"),
]
BATCHES = [
    Parameter("batch_size", 200, "ours", "section 5 has 1000, of 6,000 data a client: a reduction; all of a "
              "client's, where it has fewer"),
    Parameter("digits_batch_size", 50, "ours", "of digits, of which a client has 114", 1000),
]
READ = ("Intervals are of test rows drawn again and of the spread between runs. Section 5 communicates every "
        "T leapfrog steps, Algorithm 3 after T iterations of K of them: either suffices.")
READ_AS = ("means and standard deviations of runs; section 5 averages every T leapfrog steps, algorithm 3 "
           "after T iterations")


def part_of(part: str, reading: str) -> str:
    """What is varied in a reading, as the tables have it."""
    return f"{part}, {reading}"


def by_leapfrogs(p: Any, data: runs.Data, leapfrogs: list[int], every: int, n_rounds: int,
                 reading: str) -> list[runs.Setting]:
    """A setting for every K."""
    return [_setting(p, data, k, k, every, n_rounds, reading) for k in leapfrogs]


def by_local_steps(p: Any, data: runs.Data, local_steps: list[int], leapfrogs: int, n_rounds: int,
                   reading: str) -> list[runs.Setting]:
    """A setting for every T."""
    return [_setting(p, data, t, leapfrogs, t, n_rounds, reading) for t in local_steps]


def finish(axes: np.ndarray) -> None:
    """Panels of both readings beside each other have one axis, and all panels one legend."""
    for row in axes:
        for pair in (row[:2], row[2:]):
            drawing.alike(pair)
    plot.legend_for(axes.ravel(), 3, drawing.MARKS)


def _setting(p: Any, data: runs.Data, value: int, leapfrogs: int, every: int, n_rounds: int,
             reading: str) -> runs.Setting:
    """Of T leapfrog steps or T iterations a round, with momenta that all clients share."""
    algorithm = (partial(section_5, leapfrog_steps=leapfrogs, every=every) if reading == SECTION else
                 partial(fs.FAHMC, leapfrog_steps=leapfrogs, local_steps=every, shared_noise=p.shared_noise))
    return runs.Setting(value, algorithm, n_rounds, p.every, p.steps, data.curvature**-0.5, sample_path)


def claimed(tables: Tables, part: str, scores: Sequence[str], name: str, every: bool = True) -> Judgement:
    """`judging.claimed` of the settings of a part, whose letter is `name`, in either reading."""
    return either(lambda reading: judging.on_sets(
        _own(tables, part, reading, "tuning"),
        lambda one: judging.claimed(one["compared"], scores, one["tuning"], name, every)))


def here(tables: Tables, part: str, scores: Sequence[str], reading: str, every: bool = True) -> Judgement:
    """Is the setting 1 the worst of a part after a quarter of the rounds, on the data at hand?"""
    return judging.on_sets(_own(tables, part, reading), lambda one: judging.worst(
        judging.early(one["compared"]), scores, every=every))


def _own(tables: Tables, part: str, reading: str, *more: str) -> Tables:
    part = part_of(part, reading)
    return {table: among(tables[table], part=part) for table in ("facts", "compared", *more)}
