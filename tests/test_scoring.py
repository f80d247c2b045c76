"""The scoreboard of one problem: every statement of the catalogue, and each number is that of `examine`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
import theory
from theory.declare.registry import named
from theory.judge.examining import bound_of, measured_of, numbers_of

PAIR = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
ONCE = ("fa_ld.initial_bound",)
"""A statement about round 0 alone."""
EVENLY = sorted({0, *np.rint(np.geomspace(1, 60, 20)).astype(int).tolist()})
NETWORK = fs.network.complete(2)
NUMBERS = {"sensitivity": 1e-3, "batch_fraction": 0.5, "delta0": 1e-6, "delta1": 1e-7, "delta2": 1e-8}
ALGORITHMS = {one.__class__.__name__: one for one in (
    fs.FALD(0.01, 5), fs.FAHMC(0.05, 3, 2), fs.DESGLD(0.01, NETWORK), fs.DESGHMC(0.01, 2.0, NETWORK),
    fs.StaleSGLD(0.01, 3))}


@pytest.fixture(scope="module", params=ALGORITHMS, name="board")
def _board(request):
    algorithm = ALGORITHMS[request.param]
    return algorithm, theory.scoreboard(PAIR, algorithm, 60, start=[3.0], variants="all", privacy=NUMBERS)


def test_every_statement_has_its_rows(board):
    algorithm, table = board
    for entry in theory.theorems():
        rows = table[table["theorem"] == entry.id]
        assert rows["variant"].tolist() == list(entry.variants)
        told = rows[["number", "kind", "quantity", "index"]].drop_duplicates().values.tolist()
        assert told == [[f"{entry.paper} {entry.number}", entry.kind, entry.quantity, entry.index]]
        if not isinstance(algorithm, entry.algorithm):
            assert set(rows["verdict"]) == {"not about it"} and set(rows["reason"]) == {
                f"it is about {entry.algorithm.__name__}"}
    about = (table["verdict"] != "not about it").to_numpy()
    assert table["at"].dtype == "Int64"
    assert about.sum() > 10 and not (np.diff(about.astype(int)) > 0).any()  # those first


def test_each_verdict_is_that_of_examine(board):
    algorithm, table = board
    words = {(True, True): "holds", (False, True): "violated", (True, False): "holds outside",
             (False, False): "fails outside"}
    judged = table[table["verdict"].isin([*words.values(), "fails as transcribed"])]
    assert len(judged) > 1
    for row in judged.to_dict("records"):
        entry = named(row["theorem"])
        verdict = theory.examine(entry, PAIR, algorithm, 60, start=[3.0], variant=row["variant"],
                                 privacy=NUMBERS,
                                 record=EVENLY if entry.index == "round" and entry.id not in ONCE else None)
        word = words[verdict.holds, verdict.hypotheses_met]
        if word == "violated" and row["variant"] != entry.variants[0]:
            word = "fails as transcribed"
        assert row["verdict"] == word, row["theorem"]
        assert row["worst_at"] == verdict.worst_round and row["n_compared"] == verdict.n_compared
        for name in ("start_distance", "floor"):
            number = getattr(verdict.bound, name)
            assert row[name] == number or (np.isnan(row[name]) and number is None)
        assert row["ratio"] == pytest.approx(verdict.tightness, rel=1e-9)
        assert row["bound"] == pytest.approx(verdict.compared[1][-1], rel=1e-12)
        assert row["at"] == verdict.compared[0][-1]
        assert row["exact"] == pytest.approx(verdict.compared[2][-1], rel=1e-9, abs=1e-300)
        if row["quantity"] != "privacy_delta":
            without = verdict.bound.start_distance is None or entry.id in ONCE
            assert row["vacuous"] == (None if without else verdict.is_vacuous)
        assert row["hypotheses"] == "; ".join(verdict.bound.violated)
        assert verdict.note in row["reason"]
        assert (verdict.bound.vacuity in row["reason"]) == (entry.id not in ONCE)


def test_rates_have_no_ratio(board):
    """They may be for step sizes of their own, and hold up to a constant that nobody knows."""
    algorithm, table = board
    rates = table[table["verdict"] == "rate"]
    assert len(rates) and (rates["kind"] == "rate").all() and rates["ratio"].isna().all()
    assert rates["reason"].str.contains("a rate holds up to an unknown constant").all()
    servers = rates["theorem"].str.startswith("stale.chains_")
    assert rates[servers]["exact"].isna().all() and rates[~servers]["exact"].notna().all()
    assert servers.any() == isinstance(algorithm, fs.StaleSGLD)
    for row in rates[~servers].to_dict("records"):
        entry = named(row["theorem"])
        bound = bound_of(entry, PAIR, algorithm, 60, theory.constants(PAIR, algorithm, [3.0]), start=[3.0],
                         variant=row["variant"], given=numbers_of(entry, NUMBERS))
        measured = measured_of(bound, PAIR, algorithm, 60, start=[3.0])
        assert row["bound"] == pytest.approx(bound.value[bound.rounds == row["at"]].item(), rel=1e-12)
        assert row["exact"] == pytest.approx(measured.value[measured.rounds == row["at"]].item(), rel=1e-9)


def test_what_is_refused_says_why():
    table = theory.scoreboard(PAIR, ALGORITHMS["DESGHMC"], 20, everything=False).set_index("theorem")
    row = table.loc["de_sghmc.w2_bound"]
    assert row["verdict"] == "no value" and "must be less than sqrt(1/2)" in row["reason"]
    assert np.isnan(row["bound"]) and np.isnan(row["exact"])
    table = theory.scoreboard(PAIR, fs.FALD(0.01), 20)
    row = table[table["theorem"] == "fa_ld.w2_bound_partial"].iloc[0]
    assert row["verdict"] == "not about it" and "must be a fedsim.Participation" in row["reason"]


def test_a_formula_that_fails_has_its_erratum():
    table = theory.scoreboard(PAIR, ALGORITHMS["FAHMC"], 60, variants="all", everything=False)
    wrong = table[table["verdict"] == "fails as transcribed"]
    assert not (table["verdict"] == "violated").any()
    assert wrong[["theorem", "variant"]].values.tolist() == [["fa_hmc.flow_distance_bound", "printed"]]
    known = {one.id for one in (*theory.errata(theorem="fa_hmc.flow_distance_bound"),
                                *theory.remarks(theorem="fa_hmc.flow_distance_bound"))}
    told = wrong["reason"].item().partition("see theory.errata and theory.remarks on ")[2]
    assert known and set(told.split(", ")) == known
    rest = table[table["verdict"] != "fails as transcribed"]
    assert not rest["reason"].str.contains("see theory.errata").any()


def test_reasons_hypotheses_and_privacy_of_several_clients():
    table = theory.scoreboard(PAIR, fs.FAHMC(0.5, 3, 2), 20, everything=False).set_index("theorem")
    assert table.loc["fa_hmc.w2_bound"]["hypotheses"].count("; ") == 1
    drawn = fs.FALD(0.01, 5, participation=fs.Participation(1, True))
    row = theory.scoreboard(PAIR, drawn, 20).set_index("theorem").loc["fa_ld.w2_bound_partial"]
    verdict = theory.examine("fa_ld.w2_bound_partial", PAIR, drawn, 20)
    assert "not Gaussian" in verdict.note and verdict.note in row["reason"]
    table = theory.scoreboard(PAIR, fs.FALD(1e-4, 5), 30, everything=False,
                              privacy=NUMBERS | {"client_sizes": [10, 40]}).set_index("theorem")
    assert "client_sizes=40" in table.loc["privacy.run_bound"]["reason"]


def test_privacy_takes_the_users_numbers():
    numbers = {**NUMBERS, "client_sizes": 10}
    algorithm = fs.FALD(1e-4, 5)
    table = theory.scoreboard(PAIR, algorithm, 30, privacy=numbers, everything=False).set_index("theorem")
    row, own = table.loc["privacy.run_bound"], theory.privacy.guarantee(PAIR, algorithm, 30, **numbers)
    assert row["bound"] == pytest.approx(own.delta, rel=1e-12) and row["vacuous"] is False
    assert row["reason"].startswith(f"at epsilon={own.epsilon:.3g}, sensitivity=0.001")
    assert "sensitivity=0.001, batch_fraction=0.5, delta0=1e-06" in row["reason"]
    left_out = {name: value for name, value in numbers.items() if name != "delta1"}
    lacking = theory.scoreboard(PAIR, algorithm, 30, privacy=left_out, everything=False).set_index("theorem")
    assert lacking.loc["privacy.run_bound"]["verdict"] == "no value"
    assert "must give delta1: theorem='privacy.run_bound'" in lacking.loc["privacy.run_bound"]["reason"]
    assert lacking.loc["privacy.noisy_step_bound"]["verdict"] == "holds"
    del numbers["client_sizes"]
    table = theory.scoreboard(PAIR, algorithm, 30, privacy=numbers, everything=False).set_index("theorem")
    assert "client_sizes" not in table.loc["privacy.run_bound"]["reason"]


def test_nobody_invents_numbers_on_privacy():
    """Neither the problem nor the algorithm has them: without them there is no verdict."""
    table = theory.scoreboard(PAIR, fs.FALD(1e-4, 5), 30, everything=False).set_index("theorem")
    rows = table[table.index.str.startswith("privacy.")]
    assert len(rows) > 3 and (rows["verdict"] == "no value").all() and rows["bound"].isna().all()
    for id in rows.index:
        with pytest.raises(ValueError, match=f"privacy=None must give sensitivity.*theorem='{id}'"):
            theory.examine(id, PAIR, fs.FALD(1e-4, 5), 30)
    with pytest.raises(ValueError, match="privacy='epsilon' must be one of"):
        theory.examine("Theorem 5.1", PAIR, fs.FALD(1e-4, 5), 30, privacy={"epsilon": 1.0})


def test_problems_without_exact_laws_keep_their_bounds():
    x = np.random.default_rng(0).standard_normal((30, 2))
    problem = fs.LogisticRegression(x, (x[:, 0] > 0).astype(int), np.arange(30) % 3, prior_variance=1.0)
    table = theory.scoreboard(problem, fs.FALD(1e-3, 2), 20, everything=False).set_index("theorem")
    row = table.loc["fa_ld.w2_bound"]
    bound = theory.fa_ld.w2_bound(theory.constants(problem, fs.FALD(1e-3, 2)), fs.FALD(1e-3, 2), n_rounds=20)
    assert row["verdict"] == "not compared" and row["bound"] == bound.value[-1]
    assert np.isnan(row["exact"]) and "exact laws need affine gradients" in row["reason"]


@pytest.mark.parametrize("algorithm", [fs.FALD(1e-3, 2), fs.FAHMC(1e-2, 3), fs.StaleSGLD(1e-3, 1),
                                       fs.DESGLD(1e-3, fs.network.complete(3)),
                                       fs.DESGHMC(1e-2, 2.0, fs.network.complete(3))],
                         ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("kind", ["linear", "logistic", "softmax"])
def test_a_board_of_any_problem(kind, algorithm):
    x = np.random.default_rng(0).standard_normal((30, 2))
    labels, clients = (x[:, 0] > 0).astype(int), np.arange(30) % 3
    problem = {"linear": lambda: fs.LinearRegression(x, x[:, 0], clients, prior_variance=1.0, noise_std=1.0),
               "logistic": lambda: fs.LogisticRegression(x, labels, clients, prior_variance=1.0),
               "softmax": lambda: fs.SoftmaxRegression(x, labels, clients, prior_variance=1.0)}[kind]()
    three = fs.Quadratic([1.0, 2.0, 3.0], [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    known = theory.constants(three, algorithm) if kind == "softmax" else None
    table = theory.scoreboard(problem, algorithm, 10, known=known, everything=False)
    assert len(table) > 10 and (table["reason"] != "")[table["bound"].isna() | table["exact"].isna()].all()


def test_regressions_in_networks_have_their_euler_scheme():
    draws = np.random.default_rng(0)
    x, network = draws.standard_normal((12, 2)), fs.network.complete(3)
    data = x, (x[:, 0] > 0).astype(int), np.arange(12) % 3
    linear = fs.LinearRegression(*data, noise_std=1.0, prior_variance=1.0)
    names = ["de_sgld.euler_bound", "de_sgld.euler_stationary_bound"]
    rows, same = (theory.scoreboard(one, fs.DESGLD(1e-3, network), 20, everything=False).set_index("theorem")
                  for one in (linear, linear.as_quadratic()))
    assert rows.loc[names]["verdict"].tolist() == ["holds", "holds"]
    np.testing.assert_allclose(rows.loc[names]["ratio"], same.loc[names]["ratio"], rtol=1e-9)
    logistic = fs.LogisticRegression(*data, prior_variance=1.0)
    rows = theory.scoreboard(logistic, fs.DESGLD(1e-3, network), 20, everything=False).set_index("theorem")
    assert rows.loc[names]["reason"].str.contains("exact laws need affine gradients").all()


def test_large_problems_are_not_begun(monkeypatch):
    draws = np.random.default_rng(0)
    roots = draws.standard_normal((100, 20, 20))
    problem = fs.Quadratic(roots @ roots.swapaxes(1, 2) / 20 + np.eye(20), draws.standard_normal((100, 20)))
    monkeypatch.setattr("theory.fa_hmc.coupling._update", None)
    with pytest.raises(ValueError, match=r"would take about 1e\+13 operations, more than the limit"):
        theory.fa_hmc.coupling_law(problem, fs.FAHMC(0.05, 3, 2), 200)
    with pytest.raises(ValueError, match=r"would take about 9e\+13 operations"):
        theory.de_sgld.coupling(problem, fs.DESGLD(0.01, fs.network.ring(100)), 100, alpha=0.01)


def test_an_interruption_keeps_the_bounds(monkeypatch, capsys):
    from theory.judge import scoring

    plain, calls = scoring.measured_of, []

    def third_time(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    monkeypatch.setattr(scoring, "measured_of", third_time)
    table = theory.scoreboard(PAIR, fs.FALD(0.01, 5), 20, progress=True, everything=False, privacy=NUMBERS)
    assert len(calls) == 3 and table["exact"].notna().sum() == 2
    assert (table["reason"][2:] == "interrupted").all() and table["bound"].notna().all()
    assert len(capsys.readouterr().err.splitlines()) == len(table)


@pytest.mark.parametrize(("side", "about"), [("measured_of", 1), ("bound_of", 2)])
def test_an_interruption_stays(side, about, monkeypatch):
    """Statements without a value in between do not begin comparisons again; a second Ctrl-C ends at once."""
    from theory.judge import scoring

    plain, calls = getattr(scoring, side), []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) in stops:
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    monkeypatch.setattr(scoring, side, interrupted)
    stops = [about]
    table = theory.scoreboard(PAIR, ALGORITHMS["DESGHMC"], 20, everything=False)
    assert table["exact"].notna().sum() == about - 1 and (table["verdict"] == "no value").any()
    assert set(table["verdict"][about - 1:]) == {"not compared", "no value"}
    assert table["reason"][about - 1] == "interrupted" and table["bound"].notna().any()
    if side == "bound_of":
        calls[:], stops = [], [1, 3]
        with pytest.raises(KeyboardInterrupt):
            theory.scoreboard(PAIR, ALGORITHMS["DESGHMC"], 20)


@pytest.mark.parametrize("record", [None, [3, 10]])
def test_rounds_compared_and_laws_shared(record, monkeypatch):
    from theory.judge import checking, scoring

    asked, made, plain, of_w2 = [], [], scoring.measured_of, checking.QUANTITIES["w2"]

    def counted(problem, algorithm, n_rounds, start, record):
        made.append(n_rounds)
        return of_w2.exact(problem, algorithm, n_rounds, start=start, record=record)

    monkeypatch.setattr(scoring, "measured_of", lambda bound, **options: (
        asked.append((bound.index, bound.rounds[-1], options["record"])), plain(bound, **options))[1])
    monkeypatch.setitem(checking.QUANTITIES, "w2", replace(of_w2, exact=counted))
    table = theory.scoreboard(PAIR, ALGORITHMS["FALD"], 60, record=record, everything=False, variants="all")
    expected = [0, 3, 10, 60] if record else EVENLY
    for index, last, rounds in asked:
        assert rounds is None if index != "round" else rounds.tolist() == [k for k in expected if k <= last]
    assert sorted(made) == [0, 60] and (table["quantity"] == "w2").sum() > 3  # one of round 0 alone


@pytest.mark.parametrize(("options", "words"), [
    ({"n_rounds": 0}, "n_rounds=0 must be"), ({"variants": "printed"}, "variants='printed' must be one of"),
    ({"everything": 2}, "everything=2"), ({"privacy": {"delta": 1e-5}}, "privacy='delta' must be one of"),
    ({"privacy": {"delta0": 5}}, r"delta0=5 must lie in \(0, 1\)"),
    ({"privacy": 3}, "privacy=3 must be"), ({"record": [200]}, "record contains 200")])
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        theory.scoreboard(PAIR, fs.FALD(0.01), **options)


def test_instability_is_refused():
    with pytest.raises(fs.UnstableStepSize):
        theory.scoreboard(PAIR, fs.FALD(3.0))


# --- which theorem is meant


@pytest.mark.parametrize(("text", "id"), [
    ("fa_ld.w2_bound", "fa_ld.w2_bound"), ("Theorem 4.7", "fa_ld.w2_bound"),
    ("FA-LD theorem 4.9", "fa_ld.w2_bound"), ("4.7", "fa_ld.w2_bound"),
    ("Lemma 4.5", "fa_ld.divergence_bound"), ("Theorem 4.4", "fa_hmc.w2_bound"),
    ("Theorem 4.4 (one step)", "fa_hmc.one_step_bound"), ("Lemma 5", "de_sgld.gradient_bound"),
    ("equation (61)", "privacy.simplified_client_bound"), ("Theorem 2", "stale.bias_rate"),
    ("DE-SGLD Theorem 1 (clients)", "de_sgld.w2_clients_bound"), ("Theorem 4.10", "fa_ld.w2_bound_partial"),
    ("E.2", "fa_ld.gradient_moment_bound"), ("fa-ld lemma b.3", "fa_ld.divergence_bound"),
    ("Theorem G.3, equation 58", "privacy.client_bound"), ("Proposition 4.5", "fa_hmc.dynamic_rate"),
    ("DE-SGLD Lemma 8", "de_sgld.coupling_bound"), ("fa-hmc theorem 4.4", "fa_hmc.w2_bound")])
def test_theorems_by_number(text, id):
    assert named(text).id == id


def test_theorems_by_function_and_by_algorithm():
    for entry in theory.theorems():
        assert named(entry.function) is named(entry.id) is named(entry) is entry
    assert named("w2_bound", fs.DESGLD(0.1, NETWORK)).id == "de_sgld.w2_bound"
    assert named("theory.fa_ld.w2_bound").id == "fa_ld.w2_bound"  # as the catalogue writes it
    assert named("w2_recursion", fs.FALD(0.1)).id == "fa_ld.w2_recursion"
    by_number = theory.examine("Theorem 4.7", PAIR, fs.FALD(0.01), 20)
    assert by_number.message == theory.examine(theory.fa_ld.w2_bound, PAIR, fs.FALD(0.01), 20).message
    assert theory.worst_case.search("Theorem 4.7", budget=40).aim == "fa_ld.w2_bound"
    assert theory.errata(theorem="Theorem 4.8") == theory.errata(theorem="fa_ld.w2_bound_decreasing") != []
    assert theory.tuning.informative_steps("4.7", PAIR, fs.FALD(0.01)).largest < 1e-4


@pytest.mark.parametrize(("text", "words"), [
    ("w2_bound", r"here is of de_sghmc\.w2_bound .*; give an id"),
    ("Theorem 1", r"de_sgld\.w2_bound \(DE-SGLD Theorem 1 \(average\)\), de_sgld\.w2_clients_bound"),
    ("fa_ld.w2_bond", "did you mean 'fa_ld.w2_bound'"), ("Theorem 9.9", "must be one of 104 ids"),
    ("FA-LD Lemma 2", "must be one of"), ("", "must be one of"),
    (3, "theorem=3 must be one of"), (len, "must be one of"),
    ("theorem", "must be one of")])
def test_theorems_that_are_not_meant(text, words):
    with pytest.raises(ValueError, match=words):
        named(text)
