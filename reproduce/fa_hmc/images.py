"""What FA-HMC's figures on image data share: clients, shared momentum, tuning, and what is swept."""

from __future__ import annotations

from functools import partial
from typing import Any

import fedsim as fs

from ..figure import ByScale, Parameter
from ..prediction import runs

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
OURS = ("Intervals are of test rows and runs drawn again. Data, prior, step sizes and number of rounds are "
        "ours, so that nothing here can contradict the sentence. Section 5 has a synchronization every T "
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
