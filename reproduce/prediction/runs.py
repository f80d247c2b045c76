"""Softmax regression on images: step sizes tuned on rows that no client holds, and scores of the average.

A setting is a value of the plotted parameter (K or T) with the algorithm that a step size makes of it. Every
setting is tuned with one chain, whose seed is its own; the curves are of other chains. All is judged on test
rows, of which neither clients nor tuning have any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim as fs
from fedsim import estimators
from fedsim.engine.pool import thread_count
from fedsim.fingerprints import fingerprint

from ..figure import note
from ..once import once
from ..reference import metropolis_hmc, split_rhat
from .judging import compared

SCORES: dict[str, Callable[[Any, Any], float]] = {
    "accuracy": estimators.accuracy, "brier": estimators.brier_score, "ece": estimators.calibration_error,
    "nll": estimators.log_loss}
"""Of predicted probabilities and labels."""


ROWS_AT_A_TIME = 5000
MOST_EXACT = 2000
"""Dimensions in which the exact predictive is sampled, by chains that move by the Laplace law."""
SANE = (0.5, 0.99)
"""Shares of accepted proposals with which chains of `exact` move, and are not all accepted either."""


class Labelled(NamedTuple):
    """Features (m, p), and labels (m,)."""

    features: Any
    labels: Any


@dataclass(frozen=True)
class Data:
    """Training rows at their clients, as a problem; validation and test rows, which no client holds.

    `title` says what the data are, `is_paper` whether they are those that the paper names.
    """

    problem: Any
    validation: Labelled
    test: Labelled
    title: str
    is_paper: bool = False

    @cached_property
    def curvature(self) -> float:
        """Largest eigenvalue of the Hessian of f at theta = 0, where all classes are equally probable.

        To six digits, so that step sizes in units of it are the same numbers on every processor: large steps
        amplify what is beyond.
        """
        problem = self.problem
        parts = np.array_split(problem.features, -(-len(problem.features) // ROWS_AT_A_TIME))
        gram = sum(rows.T @ rows for rows in (problem.feature_scale * part.astype(float) for part in parts))
        top = np.linalg.eigvalsh(gram)[-1] / problem.n_classes
        return float(f"{top + 1.0 / problem.prior_variance:.6g}")


class Setting(NamedTuple):
    """Value of the plotted parameter, the algorithm that a step size makes, and what is run.

    Rounds, a sample after `every` of them, and the step sizes to be tried: `steps` times `unit`. `sampler` is
    `fs.sample_path`, or takes what that takes.
    """

    value: int
    algorithm: Callable[[float], Any]
    n_rounds: int
    every: int
    steps: Sequence[float]
    unit: float
    sampler: Callable[..., Any] = fs.sample_path

    def gradients(self, problem: Any) -> float:
        """Gradient evaluations of a client in a round."""
        return self.algorithm(self.unit).costs(problem, 1)["gradient_evaluations"] / problem.n_clients


def averages(problem: Any, path: np.ndarray, features: np.ndarray, left_out: int = 0) -> np.ndarray:
    """Posterior predictives (n, m, C) of the first 1, 2, ... samples after those `left_out`, of one chain."""
    return estimators.predictive(problem.probabilities(path[left_out:], features), running=True)


def scored(predictives: np.ndarray, labels: np.ndarray) -> dict[str, list[float]]:
    """Every score of every predictive (n, m, C)."""
    return {name: [score(one, labels) for one in predictives] for name, score in SCORES.items()}


def together(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Results of calls, made on as many threads as there are processors: kernels leave Python alone."""
    with ThreadPoolExecutor(thread_count(None)) as pool:
        return [made.result() for made in [pool.submit(call) for call in calls]]


def sampled(data: Data, setting: Setting, step: float, seed: int, n_chains: int) -> np.ndarray | None:
    """Paths (n_chains, n, d) of one sample in `every` rounds; None where they diverge.

    Settings of one algorithm have the same path, a shorter one the beginning of a longer one.
    """
    note(f"{data.title}: {setting.value}, step size {step:g} times the unit, {n_chains} chains")
    algorithm, count = setting.algorithm(step * setting.unit), setting.n_rounds // setting.every
    same = fingerprint(data.problem), fingerprint(algorithm), setting.every, seed, n_chains

    def run() -> np.ndarray:
        path: np.ndarray = setting.sampler(data.problem, algorithm, setting.n_rounds, seed=seed,
                                           every=setting.every, n_chains=n_chains, threads=1,
                                           allow_unstable=True)
        return path

    try:
        return run() if None in same else once(same, run, lambda known: known.shape[1] >= count)[:, :count]
    except fs.DivergedError:
        return None


Try = tuple[Setting, float, np.ndarray]
"""A setting with a step size that was tried, and the path (n, d)."""


def tried(data: Data, settings: Sequence[Setting], seed: int) -> list[Try]:
    """One chain for every step size of every setting, without those that diverge."""
    cases = [(setting, step) for setting in settings for step in setting.steps]
    paths = together([partial(sampled, data, setting, step, seed, 1) for setting, step in cases])
    return [(*case, path[0]) for case, path in zip(cases, paths, strict=True) if path is not None]


def tuned(data: Data, settings: Sequence[Setting], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`tuned_on` one chain for every step size."""
    return tuned_on(data, tried(data, settings, seed))


def tuned_on(data: Data, tries: Sequence[Try], left_out: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores for every step size: of the last predictive, and at every sample after those `left_out`.

    In the first table `validation_nll` is the log loss on validation rows, a proper score, by which the step
    size is `chosen`; `edge` marks a choice at an end of the grid. All other scores are on test rows.
    """
    rows, each = [], []
    for setting, step, path in tries:
        last = averages(data.problem, path, data.validation.features, left_out)[-1]
        made = averages(data.problem, path, data.test.features, left_out)
        scores = pd.DataFrame(scored(made, data.test.labels))
        labels = {"setting": setting.value, "step": step}
        rows.append(labels | {"step_size": step * setting.unit, "validation_nll": estimators.log_loss(
            last, data.validation.labels), **scores.iloc[-1]})
        each.append(scores.assign(**labels, round=setting.every * np.arange(left_out + 1, len(path) + 1)))
    table = pd.DataFrame(rows)
    by_setting = table.groupby("setting")
    table["chosen"] = table["validation_nll"] == by_setting["validation_nll"].transform("min")
    at_end = (table["step"] == by_setting["step"].transform("min")) | (
        table["step"] == by_setting["step"].transform("max"))
    table["edge"] = table["chosen"] & at_end
    return table, pd.concat(each, ignore_index=True)


def run(data: Data, settings: Sequence[Setting], tuning: pd.DataFrame, seed: int,
        n_runs: int) -> dict[int, np.ndarray]:
    """Paths (n_runs, n, d) of every setting at its chosen step size, each from a seed of its own."""
    chosen = chosen_steps(tuning)
    paths = together([partial(sampled, data, setting, chosen[setting.value], seed + setting.value, n_runs)
                      for setting in settings])
    return {setting.value: path for setting, path in zip(settings, paths, strict=True) if path is not None}


def chosen_steps(tuning: pd.DataFrame) -> dict[int, float]:
    """The chosen step size of every setting."""
    own = tuning[tuning["chosen"]]
    return dict(zip(own["setting"].tolist(), own["step"].tolist(), strict=True))


def curves(data: Data, settings: Sequence[Setting], paths: Mapping[int, np.ndarray],
           left_out: int = 0) -> tuple[pd.DataFrame, dict[int, dict[int, np.ndarray]]]:
    """Scores of every run at every sample; and predictives of every setting at some rounds.

    Those are {round: {setting: (n_runs, m, C)}} after a quarter of the rounds, half of them, and all.
    """
    rows: list[pd.DataFrame] = []
    kept: dict[int, dict[int, list[np.ndarray]]] = {}
    for setting in settings:
        for number, path in enumerate(paths.get(setting.value, [])):
            made = averages(data.problem, path, data.test.features, left_out)
            rounds = setting.every * np.arange(left_out + 1, len(path) + 1)
            rows.append(pd.DataFrame({"setting": setting.value, "run": number, "round": rounds,
                                      "gradients": rounds * setting.gradients(data.problem),
                                      **scored(made, data.test.labels)}))
            for place in sorted({-(-len(made) // 4), -(-len(made) // 2), len(made)}):
                at = kept.setdefault(int(rounds[place - 1]), {})
                at.setdefault(setting.value, []).append(made[place - 1])
    last = {number: {value: np.array(ends) for value, ends in at.items()} for number, at in kept.items()}
    return pd.concat(rows, ignore_index=True), last


def against(last: Mapping[int, Mapping[int, np.ndarray]], data: Data, baseline: int, seed: int,
            known: Sequence[int] = ()) -> pd.DataFrame:
    """`compared` at those rounds."""
    return pd.concat([compared(at, data.test.labels, baseline, seed, known).assign(round=number)
                      for number, at in last.items()], ignore_index=True)


def swept(p: Any, data: Data, cases: Sequence[Setting], baseline: int,
          part: str) -> dict[str, pd.DataFrame]:
    """Tables of all settings, tuned and run, with their part's name.

    They are tuning, tuning_curves, curves, compared.
    """
    tuning, each = tuned(data, cases, p.tuning_seed)
    table, last = curves(data, cases, run(data, cases, tuning, p.seed, p.n_runs))
    made = {"tuning": tuning, "tuning_curves": each, "curves": table,
            "compared": against(last, data, baseline, p.bootstrap_seed)}
    return {name: one.assign(part=part) for name, one in made.items()}


def stacked(parts: Sequence[Mapping[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """The tables of all parts, one below the other; some parts may lack some."""
    names = dict.fromkeys(name for tables in parts for name in tables)
    return {name: pd.concat([tables[name] for tables in parts if name in tables], ignore_index=True)
            for name in names}


def facts_of(data: Data, part: str) -> dict[str, Any]:
    """What a part's data are."""
    return {"part": part, "data": data.title, "papers_data": data.is_paper,
            "n_train": len(data.problem.labels), "n_test": len(data.test.labels), "dim": data.problem.dim,
            "batch_size": data.problem.batch_size or 0, "curvature_at_0": data.curvature,
            "smoothness": data.problem.smoothness}


def exact(data: Data, temperature: float, p: Any) -> tuple[np.ndarray | None, dict[str, float]]:
    """Posterior predictive (m, C) by Metropolis-adjusted draws, its scores, and how far they can be trusted.

    That is the `acceptance`, the share of accepted proposals; `split_rhat` of the draws' own log losses; and
    the `floor`: how far two halves of the chains are apart. In more dimensions than `MOST_EXACT` there is
    nothing; where the acceptance is not in `SANE` there is it alone, and no predictive.
    """
    if data.problem.dim > MOST_EXACT:
        return None, {}
    law = data.problem.laplace(temperature)
    made = metropolis_hmc(
        lambda x: data.problem.potential(None, x) / temperature,
        lambda x: data.problem.gradient(None, x) / temperature, law.sample(p.reference_chains, p.seed),
        n_draws=p.reference_draws, seed=p.seed + 1, scale=law.cov, warmup=p.reference_warmup)
    if not SANE[0] <= made.acceptance <= SANE[1]:
        note(f"{data.title}: no exact predictive, {100 * made.acceptance:.0f}% of proposals accepted")
        return None, {"acceptance": made.acceptance}
    chances = data.problem.probabilities(made.pooled(), data.test.features)
    own = np.take_along_axis(chances, data.test.labels[None, :, None], axis=2)
    losses = -np.log(np.maximum(own, 1e-300)).mean(axis=(1, 2)).reshape(made.draws.shape[:2])
    chances = chances.reshape(*losses.shape, *chances.shape[1:])
    half = p.reference_chains // 2
    one, other = (part.mean(axis=(0, 1)) for part in (chances[:, :half], chances[:, half:2 * half]))
    target = 0.5 * (one + other)
    scores = {f"exact_{name}": score(target, data.test.labels) for name, score in SCORES.items()}
    return target, scores | {"floor": float(variation(one, other)), "acceptance": made.acceptance,
                             "split_rhat": split_rhat(losses)}


def variation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Total variation between predictives (..., m, C), averaged over rows."""
    gap: np.ndarray = 0.5 * np.abs(one - other).sum(axis=-1).mean(axis=-1)
    return gap


def distances(last: Mapping[int, np.ndarray], target: np.ndarray) -> pd.DataFrame:
    """Total variation of every run's predictive from the exact one."""
    rows = [{"setting": value, "run": number, "variation": gap}
            for value, ends in last.items() for number, gap in enumerate(variation(ends, target))]
    return pd.DataFrame(rows)
