"""The scoreboard: the committed table is that of this code, and a run can be interrupted and split."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import theory
from fedsim.fingerprints import fingerprint
from reproduce import command, store
from reproduce.scoreboard import command as scoreboard, rows
from reproduce.scoreboard.command import PROBLEMS, kept_rows

ENTRIES = theory.theorems()
AGAIN = "python -m reproduce scoreboard"


@pytest.fixture(scope="module", name="committed")
def _committed():
    """Read by the tests, not on collecting them: while it is not made, they say so."""
    path = store.FOLDER / "scoreboard.csv"
    assert path.exists(), f"figures/scoreboard.csv is not made: {AGAIN}"
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


@pytest.fixture(scope="module", name="small")
def _small():
    return scoreboard.table(n_problems=2)


# --- the committed table

def test_every_theorem_and_variant_has_its_row_and_no_other(committed):
    wanted = [(entry.id, f"{entry.paper} {entry.number}", variant, entry.quantity)
              for entry in ENTRIES for variant in entry.variants]
    assert list(committed.columns) == list(scoreboard.COLUMNS), f"figures/scoreboard.csv is old: {AGAIN}"
    stored = [(row.theorem, row.statement, row.variant, row.quantity) for row in committed.itertuples()]
    assert stored == wanted, f"figures/scoreboard.csv lags behind the catalogue: {AGAIN}"


def test_every_bound_is_compared_within_its_hypotheses(committed):
    rates = {entry.id for entry in ENTRIES if entry.kind == "rate"}
    compared = committed[~committed["theorem"].isin(rates)]
    assert (compared["problems"] == PROBLEMS).all() and (compared["within_hypotheses"] > 0).all()
    assert set(compared["verdict"]) <= {"holds", "violated"}
    assert set(committed["verdict"][committed["theorem"].isin(rates)]) == {rows.RATE}


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.kind != "rate"],
                         ids=lambda entry: entry.id)
def test_the_first_problem_gives_the_stored_numbers(committed, entry):
    """One unit of the last of the file's four digits: that is where another processor may round."""
    found = [rows.first_of(rows.verdicts(entry, variant, rows.draws(entry, PROBLEMS)))
             for variant in entry.variants]
    stored = committed[committed["theorem"] == entry.id][["first_bound", "first_ratio"]].to_numpy(float)
    np.testing.assert_allclose(found, stored, rtol=10.0 ** (1 - rows.DIGITS), atol=0,
                               err_msg=f"figures/scoreboard.csv lags behind the code: {AGAIN}")


def test_what_is_violated_is_in_the_errata_and_never_the_default(committed):
    violated = committed[committed["violations"] > 0]
    assert len(violated) and scoreboard.against_defaults(committed).empty
    for row in violated.itertuples():
        known = [erratum.id for erratum in theory.errata(theorem=row.theorem)]
        assert known and row.errata == "; ".join(known), row
        assert row.verdict == "violated" and row.largest_ratio > 1.0
    rest = committed[committed["violations"] == 0]
    assert rest["errata"].isna().all()
    assert not (rest["largest_ratio"] > 1.0).any()


def test_ratios_are_written_without_rounding_noise(committed):
    assert rows.ratio(1.3e-17) == 0.0 and rows.ratio(1.0 - 1e-9) == 1.0
    assert rows.ratio(0.123456) == 0.1235 and np.isnan(rows.ratio(np.nan))
    for name in ("largest_ratio", "median_ratio", "first_ratio"):
        assert not committed[name].between(0.0, rows.NOTHING, inclusive="neither").any()


def test_what_is_drawn_does_not_depend_on_how_many():
    entry = next(entry for entry in ENTRIES if entry.id == "fa_ld.w2_bound")
    few, many = (list(rows.draws(entry, n)) for n in (2, 4))
    first, second = ([tuple(map(fingerprint, one[:2])) for one in drawn] for drawn in (few, many[:2]))
    assert first == second and first[0] != first[1] and None not in first[0]


def test_the_rows_of_a_fresh_table(committed, small):
    assert list(small["theorem"]) == list(committed["theorem"])
    assert scoreboard.against_defaults(small).empty
    assert scoreboard.as_csv(small).startswith("theorem,statement,variant")


# --- workers, interruption

def test_the_number_of_workers_changes_nothing(small):
    assert scoreboard.as_csv(scoreboard.table(n_problems=2, workers=2)) == scoreboard.as_csv(small)


def stopping_after(number, monkeypatch):
    """Rows as they are, with Ctrl-C after so many theorems; returns the ids worked on."""
    worked, rows = [], scoreboard.rows

    def counted(entry, n_problems):
        if len(worked) == number:
            raise KeyboardInterrupt
        worked.append(entry.id)
        return rows(entry, n_problems)

    monkeypatch.setattr(scoreboard, "rows", counted)
    return worked


def test_an_interrupted_run_goes_on_where_it_was(small, tmp_path, monkeypatch, capsys):
    options = ["scoreboard", "--problems", "2", "--workers", "1", "--out", str(tmp_path)]
    with monkeypatch.context() as patched:
        before = stopping_after(12, patched)
        assert command.main(options) == 130
    said = capsys.readouterr().err
    assert f"[12/{len(ENTRIES)}] {before[-1]}" in said and "goes on from there" in said
    assert not (tmp_path / "scoreboard.csv").exists()
    with monkeypatch.context() as patched:
        after = stopping_after(len(ENTRIES), patched)
        assert command.main(options) == 0
    assert before + after == [entry.id for entry in ENTRIES]
    assert f"12 of {len(ENTRIES)} theorems are kept" in capsys.readouterr().err
    assert (tmp_path / "scoreboard.csv").read_text() == scoreboard.as_csv(small)
    assert [path.name for path in tmp_path.iterdir()] == ["scoreboard.csv"]


def test_rows_of_other_code_are_not_kept(tmp_path):
    kept = kept_rows(tmp_path, 2)
    assert kept.load() == {}
    kept.add("a", [{"largest_ratio": np.nan}])
    kept.add("b", [{"largest_ratio": 0.1}])
    with kept.path.open("a") as file:
        file.write('["c", [{"larg')  # killed while it wrote
    assert list(kept.load()) == ["a", "b"] and list(kept_rows(tmp_path, 2).load()) == ["a", "b"]
    head, *rest = kept.path.read_text().splitlines()
    kept.path.write_text("\n".join([json.dumps(json.loads(head) | {"sources": "others"}), *rest]) + "\n")
    assert kept_rows(tmp_path, 2).load() == {}
    kept.add("a", [])
    assert kept_rows(tmp_path, 3).load() == {} == kept_rows(tmp_path, 2).load()
    kept.remove()
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_the_processes_and_keeps_what_is_finished(tmp_path):
    """A signal to the whole group, as from a terminal."""
    run = subprocess.Popen(
        [sys.executable, "-m", "reproduce", "scoreboard", "--workers", "2", "--out", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=store.FOLDER.parent,
        start_new_session=True,  # a test run in the background ignores SIGINT, and would hand that on
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        assert run.stderr is not None and run.stderr.readline().startswith("[ 1/")
        os.killpg(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=60)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
    assert run.returncode == 130 and "goes on from there" in said and "Traceback" not in said
    assert kept_rows(tmp_path, PROBLEMS).load()


@pytest.mark.parametrize("option", ["--problems", "--workers"])
def test_bad_options_are_refused(option, capsys):
    with pytest.raises(SystemExit):
        scoreboard.main([option, "0"])
    assert f"{option}=0 must be at least 1" in capsys.readouterr().err
