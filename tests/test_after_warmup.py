"""FA-LD figure 4 beside figure 2: tuned on its own average, and run again where the step size is another."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fedsim as fs
from fedsim import estimators
from reproduce import images
from reproduce.fa_ld import fig2_4
from reproduce.figure import settings
from reproduce.prediction import data, runs
from reproduce.tables import among
from reproduce.verdicts import LEVEL

DIGITS = images.digits()
SMALL = images.ImageData("400 digits", DIGITS.pixels[:400], DIGITS.labels[:400], 16)


def small():
    p = settings(fig2_4.PARAMETERS, "tiny")
    p.n_rounds, p.label_rounds, p.n_runs, p.warmup_samples, p.steps = 40, 10, 2, 1, [2.4, 10.0]
    return p


def test_it_is_tuned_without_the_first_samples():
    p = small()
    made = data.dealt(SMALL, p, 10)
    case = runs.Setting(1, fs.FALD, 40, 10, [0.1, 1.0, 3.0], 1.0 / made.curvature)
    tries = runs.tried(made, [case], 1)
    tuning, each = runs.tuned_on(made, tries, 2)
    assert each["round"].tolist() == 3 * [30, 40]
    for row, (_, _, path) in zip(tuning.itertuples(), tries, strict=True):
        kept, shown = (made.problem.probabilities(path[2:], part.features).mean(axis=0)
                       for part in (made.validation, made.test))
        loss = estimators.log_loss(kept, made.validation.labels)
        assert row.validation_nll == pytest.approx(loss, rel=1e-12)
        brier = estimators.brier_score(shown, made.test.labels)
        assert row.brier == pytest.approx(brier, rel=1e-9)
    assert (tuning["validation_nll"] != runs.tuned_on(made, tries)[0]["validation_nll"]).all()


@pytest.fixture(scope="module")
def tables():
    """Of a small set; after the warm-up K = 20 is given the other of the two step sizes."""
    own = runs.tuned_on

    def tuned_on(made, tries, left_out=0):
        table, each = own(made, tries, left_out)
        if left_out:
            table.loc[table["setting"] == 20, ["chosen", "edge"]] ^= True
        return table, each

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "tuned_on", tuned_on)
        ran = []
        real = runs.sampled
        patch.setattr(runs, "sampled", lambda made, case, step, seed, n: ran.append(
            (case.value, step, seed, n)) or real(made, case, step, seed, n))
        made = {name: table.assign(set="mnist") for name, table in fig2_4._tables(small(), SMALL).items()}
    return made, ran


def chosen(made, part):
    tuning = made["tuning"]
    return runs.chosen_steps(tuning[tuning["part"] == part])


def test_each_part_has_its_own_step_sizes(tables):
    made, ran = tables
    before, after = (chosen(made, part) for part in fig2_4.PARTS)
    assert before[1] == after[1] and before[20] != after[20]
    assert len(made["tuning"]) == 8 and made["tuning"].groupby("part", sort=False).size().tolist() == [4, 4]
    many = [one for one in ran if one[3] == 2][:3]  # after them come clients with few labels
    assert sorted(many[:2]) == [(1, before[1], 3, 2), (20, before[20], 22, 2)]
    assert many[2] == (20, after[20], 22, 2)


@pytest.mark.parametrize(("part", "left_out"), list(zip(fig2_4.PARTS, (0, 1), strict=True)))
@pytest.mark.parametrize("k", [1, 20])
def test_curves_are_at_the_step_size_of_their_part(tables, part, left_out, k):
    made, p = tables[0], small()
    problem = data.dealt(SMALL, p, p.digits_batch_size)
    path = fs.sample_path(problem.problem, fs.FALD(chosen(made, part)[k] / problem.curvature, local_steps=k,
                                                   temperature=p.temperature), p.n_rounds, seed=p.seed + k,
                          every=p.every, n_chains=2, allow_unstable=True)
    curves = made["curves"]
    curves = curves[(curves["part"] == part) & (curves["setting"] == k)]
    for number in (0, 1):
        last = problem.problem.probabilities(path[number, left_out:], problem.test.features).mean(axis=0)
        own = curves[curves["run"] == number]
        brier = estimators.brier_score(last, problem.test.labels)
        assert own["brier"].iloc[-1] == pytest.approx(brier, rel=1e-9)
        assert own["round"].iloc[0] == 10 * (left_out + 1) and own["round"].iloc[-1] == 40
        assert (own["gradients"] == k * own["round"]).all()


def test_clients_with_few_labels_have_their_own_data_rounds_and_steps(tables):
    made, p = tables[0], small()
    problem = data.dealt(SMALL, p, p.digits_batch_size, by_label=True)
    steps, briers = runs.chosen_steps(made["labels"]), {}
    assert made["labels"]["step"].tolist() == 2 * p.label_steps
    for k in (1, 50):
        algorithm = fs.FALD(steps[k] / problem.curvature, local_steps=k, temperature=p.temperature)
        paths = fs.sample_path(problem.problem, algorithm, p.label_rounds, seed=p.seed + k, every=p.every,
                               n_chains=2, allow_unstable=True)
        briers[k] = np.mean([estimators.brier_score(problem.problem.probabilities(
            path, problem.test.features).mean(axis=0), problem.test.labels) for path in paths])
    row = made["compared"].query("part == @fig2_4.FEW and score == 'brier'")
    assert row["round"].tolist() == [10] and row["setting"].tolist() == [50]
    assert row["worse"].item() == pytest.approx(briers[1] - briers[50], rel=1e-9)


def test_what_rests_on_the_exact_predictive_is_of_figure_2(tables):
    """Distances and the reward are of averages of all samples, and the reward's intervals of runs too."""
    made, p = tables[0], small()
    problem = data.dealt(SMALL, p, p.digits_batch_size)
    target, exact = runs.exact(problem, 0.05, p)
    facts, curves = made["facts"].iloc[0], made["curves"]
    assert exact == pytest.approx({name: facts[name] for name in exact}, rel=1e-9)
    for k in (1, 20):
        own = among(curves, part=fig2_4.PARTS[0], setting=k, round=40)
        row = among(made["compared"], part=fig2_4.EXACT, round=40, score="ece", setting=k).iloc[0]
        assert row["worse"] == pytest.approx(facts["exact_ece"] - own["ece"].mean(), abs=1e-12)
        of_runs = stats.t.isf(LEVEL / 4.0, p.n_runs - 1) * own["ece"].std(ddof=1) / np.sqrt(p.n_runs)
        assert row["high"] - row["worse"] > of_runs > 0.0
        path = fs.sample_path(problem.problem, fs.FALD(
            chosen(made, fig2_4.PARTS[0])[k] / problem.curvature, local_steps=k, temperature=p.temperature),
            p.n_rounds, seed=p.seed + k, every=p.every, n_chains=2, allow_unstable=True)
        averages = problem.problem.probabilities(path.reshape(8, -1), problem.test.features)
        gap = averages.reshape(2, 4, *target.shape).mean(axis=1) - target
        np.testing.assert_allclose(among(made["distances"], setting=k)["variation"],
                                   0.5 * np.abs(gap).sum(axis=2).mean(axis=1), rtol=1e-9)
    assert set(made["distances"]["setting"]) == {1, 20}


def test_seeds_of_settings_differ():
    """Runs of two settings are independent: the same algorithm under two names moves otherwise."""
    p = small()
    made = data.dealt(SMALL, p, 10)
    twins = [runs.Setting(k, fs.FALD, 10, 10, [1.0], 1.0 / made.curvature) for k in (1, 2)]
    tuning = pd.DataFrame({"setting": [1, 2], "step": 1.0, "chosen": True})
    paths = runs.run(made, twins, tuning, 5, 2)
    assert np.abs(paths[1] - paths[2]).min(axis=(0, 1)).max() > 0.0
    alone = runs.run(made, twins[1:], tuning, 5, 2)
    np.testing.assert_array_equal(alone[2], paths[2])


def test_a_set_without_exact_predictive_beside_one(tables):
    """Its panel is left out, and no line is drawn."""
    one = tables[0]
    other = {name: table.assign(set="fashion") for name, table in one.items() if name != "distances"}
    other["facts"] = other["facts"].assign(data="the other", acceptance=0.1).drop(
        columns=[name for name in other["facts"] if name.startswith(("exact_", "floor", "split"))])
    other["compared"] = other["compared"][other["compared"]["part"] != fig2_4.EXACT]
    for parts in ([one, other], [other, one]):
        both = runs.stacked(parts)
        drawing = fig2_4.draw(both)
        labels = [ax.get_legend_handles_labels()[1] for ax in drawing.axes]
        legend, = drawing.legends
        plt.close(drawing)
        shown = [any("exact posterior" in label for label in own) for own in labels]
        first = 8 * (parts[0] is other)
        assert [shown[(first + place) % 16] for place in (0, 1, 2, 4, 5, 6)] == [True] * 6
        assert [shown[(first + 8 + place) % 16] for place in (0, 1, 2, 4, 5, 6)] == [False] * 6
        for place in (7, 15):  # all samples, not those after the warm-up too
            points = {line.get_label(): line.get_xdata().tolist() for line in drawing.axes[place].get_lines()}
            few, random = fig2_4.LABELS
            assert points[f"_K = 1, {random}"] == [2.4, 10.0]
            assert points[f"_K = 50, {few}"] == [0.2, 2.4, 10.0]
        names = [text.get_text() for text in legend.get_texts()]
        assert set(names) == set(itertools.chain(*labels)) and len(names) == len(set(names))
        why = fig2_4.judge_reward(both).why
        assert "There is no exact predictive with 10% of its proposals accepted." in why
