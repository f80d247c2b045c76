"""Many settings in one table: the numbers are those of the functions for one, whoever computes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fedsim as fs
import theory
from theory.exact.federated.together import gaps_of, laws_together, powers
from theory.tuning import first_rounds_together
from theory.tuning.first_rounds_together import first_within, goal_of

PAIR = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
NETWORK = fs.network.complete(2)


def rng():
    return np.random.default_rng(5)


def dense(n_clients, dim, **rest):
    draws = rng()
    roots = draws.standard_normal((n_clients, dim, dim))
    hessians = roots @ roots.swapaxes(1, 2) / dim + np.eye(dim)
    return fs.Quadratic(hessians, draws.standard_normal((n_clients, dim)), **rest)


def regression(noise_std, **rest):
    draws = rng()
    return fs.LinearRegression(draws.standard_normal((20, 2)), draws.standard_normal(20), np.arange(20) % 3,
                               noise_std=noise_std, prior_variance=2.0, **rest)


PROBLEMS = {
    "dense": dense(5, 3),
    "diagonal": fs.Quadratic(rng().uniform(0.5, 3.0, (4, 6)), rng().standard_normal((4, 6))),
    "isotropic, with noise": fs.Quadratic([1.0, 3.0], [[0.0, 1.0], [1.0, 2.0]], gradient_noise=0.3),
    "correlated noise": dense(3, 2, gradient_noise=np.array([[[2.0, 1.0], [1.0, 1.0]]] * 3)),
    "weights": dense(3, 2, weights=[0.5, 0.3, 0.2]),
    "regression": regression(4.0),
}
ALGORITHMS = {"FA-LD": fs.FALD(0.01, 5, temperature=2.0, shared_noise=0.3), "FA-HMC": fs.FAHMC(0.01, 3, 2),
              "FA-HMC, own momenta": fs.FAHMC(0.01, 3, 4, shared_noise=0.0)}
STARTS = {"origin": lambda dim: None, "point": lambda dim: np.full(dim, 2.0),
          "Gaussian": lambda dim: fs.Gaussian(np.ones(dim), np.diag(np.linspace(0.2, 2.0, dim)))}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_laws_together_are_those_of_each(problem, algorithm, start):
    problem, algorithm = PROBLEMS[problem], ALGORITHMS[algorithm]
    start = STARTS[start](problem.dim)
    sizes, rounds = np.array([1e-3, 0.05, 0.1]), np.array([0, 1, 2, 7, 100, 10**6])
    laws = laws_together(problem, algorithm, sizes, start)
    means, covs = laws.at(np.tile(rounds, (3, 1)))
    for i, size in enumerate(sizes.tolist()):
        law = theory.exact_law(problem, replace(algorithm, step_size=size), 10**6, start=start, record=rounds)
        if laws.bases is None:
            mean, cov = means[i], np.apply_along_axis(np.diag, 1, covs[i])
            diagonal = np.einsum("rii->ri", law.cov)
            np.testing.assert_allclose(covs[i], diagonal, rtol=1e-12, atol=1e-12)
        else:
            basis = laws.bases[i]
            mean, cov = means[i] @ basis.T, basis @ covs[i] @ basis.T
            np.testing.assert_allclose(cov, law.cov, rtol=0, atol=1e-12)
        np.testing.assert_allclose(mean, law.mean, rtol=0, atol=1e-12)


def test_other_rounds_are_not_treated_together():
    for other in (fs.FALD(0.1, participation=fs.Participation(2, False)), fs.FAHMC(0.1, 3, 2, debias="fresh"),
                  fs.DESGLD(0.1, fs.network.complete(5)), fs.StaleSGLD(0.1, 2)):
        assert laws_together(PROBLEMS["dense"], other, np.array([0.1])) is None
    assert laws_together(regression(4.0, batch_size=5), fs.FALD(0.01), np.array([0.01])) is None


def test_laws_made_in_parts_are_the_same(monkeypatch):
    sizes, rounds = np.geomspace(1e-3, 0.1, 5), np.tile([0, 3, 50], (5, 1))
    for problem in (PROBLEMS["dense"], PROBLEMS["diagonal"]):
        whole = laws_together(problem, fs.FALD(0.01, 5), sizes)
        with monkeypatch.context() as patched:
            patched.setattr("theory.exact.federated.together.ROOM", 2 * problem.hessians.size)  # of two sizes
            parts = laws_together(problem, fs.FALD(0.01, 5), sizes)
        for one, other in zip(whole.at(rounds), parts.at(rounds), strict=True):
            np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-9, atol=1e-12)


def test_powers_by_hand():
    changes = np.array([1e-20, -1e-20, -0.5, -1.0, -1.5, -2.5])
    found = powers(changes[:, None], np.array([0, 1, 2, 3]))
    expected = (1.0 + changes[:, None]) ** np.arange(4)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert powers(np.array(-1e-20), np.array(10**19)) == pytest.approx(np.exp(-0.1), rel=1e-14)
    mixed = 1.0 + 0.5 * (1.0 + 1e-9)
    np.testing.assert_allclose(gaps_of(np.array([[1e-9, -1.5]]), True),
                               [[[-2e-9 - 1e-18, mixed], [mixed, 0.75]]], rtol=1e-15)


@pytest.mark.parametrize("max_rounds", [10**9, 5000, 300, 0])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("problem", ["dense", "diagonal", "isotropic, with noise"])
def test_first_rounds_are_those_of_each(problem, start, max_rounds):
    problem, sizes = PROBLEMS[problem], np.geomspace(1e-6, 0.1, 9)
    start = STARTS[start](problem.dim)
    for algorithm in (fs.FALD(0.01, 5), fs.FAHMC(0.01, 3, 2)):
        goal = goal_of(laws_together(problem, algorithm, sizes, start), problem.target())
        for eps in (0.8, 0.1, 0.01):
            found = first_rounds_together.crossings(goal, eps, max_rounds)
            for size, first in zip(sizes.tolist(), found.rounds, strict=True):
                one = replace(algorithm, step_size=size)
                expected = theory.tuning.rounds_to(problem, one, eps, start=start, max_rounds=max_rounds)
                assert (expected if expected is not None else -1) == first, (algorithm, size, eps)


@pytest.mark.parametrize(("size", "rel"), [
    (5.623413251903491e-4, 1e-6), (6.812920690579609e-4, 1e-8), (1e-3, 1e-10)])
def test_rounding_beside_the_limit_is_no_error(size, rel):
    """Laws of other rounds may round W2 to the other side of an eps that is next to its limit."""
    algorithm = fs.FAHMC(size, 1, 2)
    eps = theory.stationary_law(PAIR, algorithm).w2(PAIR.target()) * (1.0 + rel)
    found = theory.tuning.rounds_to(PAIR, algorithm, eps)
    assert theory.exact_law(PAIR, algorithm, found).w2()[-1] == pytest.approx(eps, rel=1e-5)


def test_accuracies_next_to_rounding():
    """Squares of eps are below the rounding of the covariances they are compared with."""
    problem, sizes = dense(1, 3), [3e-4, 1e-3]
    table = theory.sweep(problem, fs.FAHMC(1e-3, 3, 2), step_size=sizes, eps=1e-6)
    expected = [theory.tuning.rounds_to(problem, fs.FAHMC(size, 3, 2), 1e-6) for size in sizes]
    assert table["rounds"].tolist() == expected


def test_a_dip_is_seen_and_does_not_count():
    """W2 falls below eps on its way to a limit that is above it, for a few rounds only."""
    problem = fs.Quadratic(np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 4.0]]]),
                           [[0.0, 0.0], [2.0, 3.0]])
    algorithm = fs.FALD(0.05, 12)
    limit = theory.stationary_law(problem, algorithm)
    start = fs.Gaussian(3.0 * problem.target().mean - 2.0 * limit.mean, problem.target().cov)
    law = theory.exact_law(problem, algorithm, 200, start=start)
    w2 = law.w2()
    eps = 0.5 * (w2.min() + w2[-1])
    assert w2.min() < 0.8 * w2[-1] and 0 < np.flatnonzero(w2 <= eps)[0]
    table = theory.sweep(problem, algorithm, step_size=[0.05], eps=eps, start=start)
    assert theory.tuning.rounds_to(problem, algorithm, eps, start=start) == np.flatnonzero(w2 <= eps)[0]
    assert pd.isna(table["rounds"].item()) and pd.isna(table["gradients"].item())
    found = theory.tuning.best_step_size(problem, algorithm, eps, start=start, n_grid=9, n_refine=0)
    assert found.rounds[found.step_sizes.index(found.step_size)] == found.n_rounds
    for step, n_rounds in zip(found.step_sizes, found.rounds, strict=True):
        one = replace(algorithm, step_size=step)
        assert n_rounds is None or theory.stationary_law(problem, one).w2(problem.target()) <= eps
    assert table["w2"].item() > eps and table["reason"].item().startswith("W2 does not stay within eps: ")


def test_a_setting_is_not_given_up_before_its_dip():
    """Nearer to its limit than the target is, at the end of a window, and within eps only after it."""
    problem, algorithm = fs.Quadratic([[0.1, 2.0], [0.9, 2.0]], [[0.0, 0.0], [1e3, 0.0]]), fs.FALD(1e-3, 12)
    limit, target = theory.stationary_law(problem, algorithm), problem.target()
    floor, kept = limit.w2(target), (1.0 - 1e-3 * np.array([[0.1, 2.0], [0.9, 2.0]])) ** 12
    away = floor * np.array([0.92 * np.sign(target.mean[0] - limit.mean[0]), 0.35]) / kept.mean(axis=0) ** 64
    start, eps = fs.Gaussian(limit.mean + away, limit.variances), 0.3 * floor
    w2 = theory.exact_law(problem, algorithm, 400, start=start).w2()
    first = int(np.flatnonzero(w2 <= eps)[0])
    assert 64 < first < 256 and theory.exact_law(problem, algorithm, 64, start=start).at(64).w2(limit) < floor
    assert theory.tuning.rounds_to(problem, algorithm, eps, start=start) == first


OPPOSED = fs.Quadratic([[1.0, 3.0], [2.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
TILTED = np.array([[9.0, 8.9], [8.9, 9.0]])


@pytest.mark.parametrize(("problem", "algorithm", "start"), [
    (OPPOSED, fs.FALD(0.01, 2), fs.Gaussian([0.0, 0.0], TILTED)),
    (replace(OPPOSED, gradient_noise=np.array([10.0 * TILTED] * 2)), fs.FALD(0.01, 2), None),
    (OPPOSED, fs.FALD(0.05, 2, participation=fs.Participation(1, False)), None),
], ids=["start", "noise", "participation"])
def test_correlations_of_coordinates_that_do_not_mix(problem, algorithm, start):
    """Their variances alone give a W2 that is too small, and rounds that are too few."""
    law, alone = (theory.exact_law(problem, algorithm, 60, start=start, covariance=kind).w2()
                  for kind in ("full", "diagonal"))
    eps = 0.5 * (law[50] + alone[50])
    within, too_soon = np.flatnonzero(law <= eps), np.flatnonzero(alone <= eps)
    first = int(within[0]) if len(within) else None
    assert first is None or first > too_soon[0]
    found = theory.tuning.rounds_to(problem, algorithm, eps, start=start)
    assert found == first if first is not None else found is None or found > 60
    table = theory.sweep(problem, algorithm, step_size=[algorithm.step_size], eps=eps, start=start)
    assert rows_of(table)[0]["rounds"] == found
    floor = theory.stationary_law(problem, algorithm).w2(problem.target())
    assert table["w2"].item() == pytest.approx(floor, rel=1e-12)


def test_few_matrices_are_compared(monkeypatch):
    """The function from below leaves few rounds; a slack that leaves all of them finds the same first one."""
    goal = goal_of(laws_together(PROBLEMS["dense"], fs.FALD(0.01, 5), np.array([1e-3, 1e-2])),
                   PROBLEMS["dense"].target())
    asked = []
    plain = first_rounds_together.near_w2
    monkeypatch.setattr(first_rounds_together, "near_w2",
                        lambda mean, *rest: (asked.append(len(mean)), plain(mean, *rest))[1])
    rounds = np.tile(np.arange(1, 1025), (2, 1))
    few = first_within(goal, rounds, 0.2)
    n_few = sum(asked)
    monkeypatch.setattr(first_rounds_together, "ROUNDING", 1e9)
    all_of_them = first_within(goal, rounds, 0.2)
    assert few.tolist() == all_of_them.tolist() and few.min() > 10
    assert n_few < 8 and sum(asked) - n_few == few.sum() + 2


# --- the table


def rows_of(table):
    return table.astype(object).where(table.notna(), None).to_dict("records")


@pytest.mark.parametrize(("algorithm", "settings"), [
    (fs.FALD(0.1), {"step_size": [0.02, 0.1, 0.9], "local_steps": [1, 5]}),
    (fs.FALD(0.1, participation=fs.Participation(1, True)),
     {"step_size": [0.02, 0.1], "temperature": [0.5, 1.0]}),
    (fs.FAHMC(0.1, 3, debias="fresh"), {"local_steps": (1, 2), "step_size": np.array([0.05, 0.2])}),
    (fs.DESGLD(0.1, NETWORK), {"step_size": [0.05, 0.1], "mixing": {"full": NETWORK, "none": np.eye(2)}}),
    (fs.FALD(0.1), {"step_size": [0.05, 0.1], "temperature": [0.5, 2.0]}),
    (fs.FAHMC(0.1, 2), {"step_size": [0.5, 1.17, 1.2]}),  # beyond the leapfrog's limit the map contracts
    (fs.DESGHMC(0.1, 2.0, NETWORK), {"friction": [0.5, 2.0], "step_size": [0.1, 0.2]}),
    (fs.StaleSGLD(0.1), {"staleness": range(0, 9, 4), "step_size": [0.1]}),
], ids=lambda one: type(one).__name__)
def test_each_row_is_what_the_functions_for_one_say(algorithm, settings):
    table = theory.sweep(PAIR, algorithm, eps=0.1, start=[2.0], **settings)
    lists = {name: list(values) for name, values in settings.items()}
    assert len(table) == np.prod([len(values) for values in lists.values()])
    for row in rows_of(table):
        chosen = {name: settings[name][row[name]] if isinstance(settings[name], dict) else row[name]
                  for name in settings}
        one = replace(algorithm, **chosen)
        assert row["stable"] == one.stability(PAIR).stable
        assert row["radius"] == pytest.approx(one.stability(PAIR).radius, rel=1e-12)
        if not row["stable"]:
            assert row["w2"] is None and row["rounds"] is None and "unstable" in row["reason"]
            continue
        floor = theory.stationary_law(PAIR, one).w2(one.target(PAIR))
        first = theory.tuning.rounds_to(PAIR, one, 0.1, start=[2.0]) if floor <= 0.1 else None
        assert row["w2"] == pytest.approx(floor, rel=1e-9) and row["rounds"] == first
        if first is None:
            assert "limit" in row["reason"] and row["gradients"] is None
        else:
            assert row["reason"] == "" and row["eps"] == 0.1
            assert row["gradients"] == one.costs(PAIR, first)["gradient_evaluations"]
            assert row["floats"] == one.costs(PAIR, first)["floats_sent"]


def test_settings_that_are_none_stay_none():
    """pandas would write NaN beside names."""
    table = theory.sweep(PAIR, fs.FALD(0.1), participation=[None, fs.Participation(1, True)])
    assert table["participation"].iloc[0] is None and "Participation" in table["participation"].iloc[1]
    table = theory.sweep(PAIR, fs.FALD(0.1), step_size=[0.1], participation=None)
    assert table["participation"].tolist() == [None]


def test_the_last_setting_changes_fastest():
    table = theory.sweep(PAIR, fs.FALD(0.1), local_steps=[1, 5], step_size=[0.02, 0.1])
    assert list(table.columns) == ["local_steps", "step_size", "stable", "radius", "w2", "reason"]
    assert table[["local_steps", "step_size"]].values.tolist() == [[1, 0.02], [1, 0.1], [5, 0.02], [5, 0.1]]


def test_a_theorem_beside_the_law():
    table = theory.sweep(PAIR, fs.FALD(0.1), step_size=[1e-3, 0.1, 0.9], theorem="Theorem 4.7")
    for row in rows_of(table):
        one = fs.FALD(row["step_size"])
        bound = theory.fa_ld.w2_bound(theory.constants(PAIR, one), one, n_rounds=0)
        assert row["bound"] == bound.floor and row["vacuous"] == bound.always_vacuous
        assert row["bound"] >= row["w2"]
    assert "fails step_size <= 1/(2 smoothness)" in table["reason"].iloc[-1]
    without = theory.sweep(PAIR, fs.FALD(0.1), step_size=[0.1], theorem="Lemma B.3")
    assert "no limit" in without["reason"].item()


def test_theorems_take_the_start_and_say_what_fails():
    table = theory.sweep(PAIR, fs.FALD(0.1), step_size=[1e-6, 0.3], theorem="w2_bound", start=[9.0], eps=1e-3)
    for row in rows_of(table):
        one = fs.FALD(row["step_size"])
        bound = theory.fa_ld.w2_bound(theory.constants(PAIR, one, [9.0]), one, n_rounds=0)
        assert row["bound"] == bound.floor and row["vacuous"] == bound.always_vacuous
    assert table["vacuous"].tolist() == [False, True]
    assert table["reason"].iloc[1].startswith("W2 does not stay within eps: its limit is")
    assert "; fa_ld.w2_bound: fails" in table["reason"].iloc[1]
    table = theory.sweep(PAIR, fs.FALD(0.1), step_size=[0.1], theorem="fa_ld.w2_bound_partial")
    assert "fa_ld.w2_bound_partial: participation=None must be" in table["reason"].item()
    assert np.isnan(table["bound"].item())


@pytest.mark.parametrize("algorithm", [fs.FALD(1e-4), fs.DESGLD(1e-4, NETWORK)])
def test_rounds_are_sought_as_far_as_asked(algorithm):
    def row(eps, **rest):
        table = theory.sweep(PAIR, algorithm, step_size=1e-4, eps=eps, start=[2.0], **rest)
        assert set(table[["rounds", "gradients", "floats"]].dtypes.astype(str)) == {"Int64"}
        return rows_of(table)[0]

    assert row(0.1)["rounds"] == theory.tuning.rounds_to(PAIR, algorithm, 0.1, start=[2.0]) > 1000
    short = row(0.1, max_rounds=500)
    assert short["rounds"] is None and short["reason"] == "W2 is above eps up to max_rounds=500"
    assert [row(9.0)[name] for name in ("rounds", "gradients", "floats", "reason")] == [0, 0, 0, ""]


def test_single_values_and_values_of_numpy():
    assert theory.sweep(PAIR, fs.FALD(0.1), local_steps=np.array([1, 2]))["local_steps"].tolist() == [1, 2]
    assert theory.sweep(PAIR, fs.FAHMC(0.1, 2), debias="fresh")["debias"].tolist() == ["fresh"]
    assert len(theory.sweep(PAIR, fs.DESGLD(0.1, NETWORK), mixing=np.eye(2))) == 1


def test_parts_of_a_group_make_the_same_table(monkeypatch):
    sizes = [0.01, 0.02, 0.1, 0.8, 0.9]
    whole = theory.sweep(PAIR, fs.FALD(0.1), step_size=sizes, eps=0.1)
    monkeypatch.setattr("theory.tuning.sweeping.TOGETHER", 2)
    assert rows_of(whole) == rows_of(theory.sweep(PAIR, fs.FALD(0.1), step_size=sizes, eps=0.1))


def test_what_the_algorithm_refuses_has_a_reason():
    table = theory.sweep(PAIR, fs.DESGHMC(0.01, 2.0, NETWORK), step_size=[0.1, 0.01],
                         friction=[20.0, 2.0])
    assert table["stable"].tolist() == [None, True, True, True]
    assert table["friction"].tolist() == [20.0, 2.0, 20.0, 2.0]
    assert table["reason"].iloc[0].startswith("refused: friction=20 must be at most 1/step_size")


def test_schedules_have_no_limit():
    steps = {"falling": [0.1, 0.05, 0.02], "constant": 0.1}
    table = theory.sweep(PAIR, fs.FALD(0.1), step_size=steps, eps=0.5)
    assert "no law is left unchanged" in table["reason"].iloc[0] and table["reason"].iloc[1] == ""


@pytest.mark.parametrize(("settings", "kind", "words"), [
    ({"eta": [0.1]}, TypeError, r"eta=\[0.1\] is no parameter of FALD: write step_size"),
    ({"local_step": [1]}, TypeError, "did you mean 'local_steps'"),
    ({"step_size": [-1.0, 0.1]}, ValueError, "step_size=-1.0 must be greater than 0"),
    ({"step_size": []}, ValueError, r"step_size=\[\] must have at least one value"),
    ({"step_size": [0.1, 0.1]}, ValueError, "must have values that differ"),
    ({"step_size": np.linspace(0.1, 0.2, 400), "local_steps": range(1, 400)}, ValueError, "159600 comb"),
    ({"eps": 0.0}, ValueError, "eps=0.0 must be greater than 0"),
    ({"theorem": "de_sgld.w2_bound"}, ValueError, "algorithm=.*theorem='de_sgld.w2_bound' is about it"),
    ({"theorem": "privacy.epsilon_rate_bound"}, ValueError, "must be a bound with a limit"),
    ({"theorem": "fa_ld.one_step_bound"}, ValueError, "must be a bound with a limit"),
    ({"theorem": "Theorem 44"}, ValueError, "theorem='Theorem 44' must be one of"),
    ({"start": [1.0, 2.0]}, ValueError, "start"), ({"progress": 1.5}, ValueError, "progress=1.5")])
def test_bad_settings_are_refused_before_any_work(settings, kind, words, monkeypatch):
    monkeypatch.setattr("theory.tuning.sweeping._together", None)
    with pytest.raises(kind, match=words):
        theory.sweep(PAIR, fs.FALD(0.1), **settings)


def test_an_interruption_keeps_what_is_done(monkeypatch, capsys):
    from theory.tuning import sweeping

    plain, calls = sweeping._together, []

    def second_time(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(sweeping, "_together", second_time)
    table = theory.sweep(PAIR, fs.FALD(0.1), step_size=[0.02, 0.1], local_steps=[1, 5], progress=True)
    assert table["local_steps"].tolist() == [1, 1] and "sweep: 1 of 2 combinations" in capsys.readouterr().err
    calls[:] = [1]
    with pytest.raises(KeyboardInterrupt):
        theory.sweep(PAIR, fs.FALD(0.1), step_size=[0.02])
