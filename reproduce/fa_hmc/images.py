"""What FA-HMC's figures on image data share: clients, shared momentum, tuning, and what is swept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import fedsim as fs

from ..figure import ByScale, Parameter, Tables
from ..prediction import judging, runs
from ..tables import among
from ..verdicts import Judgement

SETTING = [
    Parameter("n_clients", 10, "paper", "section 5.3: N = 10 equal parts, drawn at random"),
    Parameter("shared_noise", 1.0, "paper", "section 5: the same momentum on all clients"),
    Parameter("tuned_on", "validation rows", "ours", "by log loss, on rows that no client holds; the paper "
              "tunes on the plotted statistic of the test rows (thin)"),
    Parameter("prior_variance", 1.0, "ours", "of every weight; no prior is printed"),
    Parameter("every", 1, "ours", "a sample after every round; the paper's fixed number is not printed"),
    Parameter("split_seed", 0, "ours", "of the division into clients, validation and test rows"),
    Parameter("tuning_seed", 1, "ours", "of the chains that are tuned"),
    Parameter("seed", 2, "ours", "of the runs, and of the exact predictive"),
    Parameter("bootstrap_seed", 3, "ours", "of rows and runs drawn again"),
]
REFERENCE = [
    Parameter("reference_chains", ByScale(8, 20, 40), "ours", "Metropolis-adjusted chains of the posterior"),
    Parameter("reference_draws", ByScale(10, 30, 100), "ours", "of each of them"),
    Parameter("reference_warmup", 10, "ours", "draws left out, from starts of the Laplace law"),
]
BATCHES = [
    Parameter("batch_size", 200, "ours", "section 5 has 1000, of 6,000 data a client: a reduction; all of a "
              "client's, where it has fewer"),
    Parameter("digits_batch_size", 50, "ours", "of digits, of which a client has 114"),
]
OURS = ("Intervals are of test rows and runs drawn again. Prior, step sizes and number of rounds, which are "
        "not printed, are ours, and so are the data where --data gives none: nothing here can contradict the "
        "sentence. Section 5 has a synchronization every T "
        "leapfrog steps; here, as in Algorithm 3, after T iterations of K leapfrog steps.")


def by_leapfrogs(p: Any, data: runs.Data, leapfrogs: list[int], local_steps: int,
                 n_rounds: int) -> list[runs.Setting]:
    """A setting for every K."""
    return [runs.Setting(k, partial(fs.FAHMC, leapfrog_steps=k, local_steps=local_steps,
                                    shared_noise=p.shared_noise),
                         n_rounds, p.every, p.steps, data.curvature**-0.5) for k in leapfrogs]


def by_local_steps(p: Any, data: runs.Data, local_steps: list[int], leapfrogs: int,
                   n_rounds: int) -> list[runs.Setting]:
    """A setting for every T."""
    return [runs.Setting(t, partial(fs.FAHMC, leapfrog_steps=leapfrogs, local_steps=t,
                                    shared_noise=p.shared_noise),
                         n_rounds, p.every, p.steps, data.curvature**-0.5) for t in local_steps]


def claimed(tables: Tables, part: str, scores: Sequence[str], name: str, every: bool = True) -> Judgement:
    """`judging.claimed` of the settings of a part, whose letter is `name`."""
    own = {table: among(tables[table], part=part) for table in ("facts", "compared", "tuning")}
    return judging.on_sets(own, lambda one: judging.claimed(one["compared"], scores, one["tuning"], name,
                                                            every))


def here(tables: Tables, part: str, scores: Sequence[str], every: bool = True) -> Judgement:
    """Is the setting 1 the worst of a part after a quarter of the rounds, on the data at hand?"""
    own = {table: among(tables[table], part=part) for table in ("facts", "compared")}
    return judging.on_sets(own, lambda one: judging.worst(judging.early(one["compared"]), scores,
                                                          finding=True, every=every))
