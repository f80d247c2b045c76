"""The stored worst cases are those of this code, and the command that makes them can be split and stopped."""

from __future__ import annotations

import contextlib
import json

import pandas as pd
import pytest

import theory
from reproduce import command, store, worst_cases
from theory import worst_case
from theory.exact.precision import rounding

STORED = worst_cases.load()
AGAIN = "python -m reproduce worst_cases"
QUICK = ["worst_cases", "--only", "fa_ld.discretization_bound", "--per-unknown", "10", "--workers", "1"]


def test_every_bound_has_its_records_and_no_other():
    wanted = worst_cases.jobs("", 0, worst_cases.PER_UNKNOWN)
    assert set(STORED) == set(wanted), AGAIN
    entries = {entry.id: entry for entry in theory.theorems()}
    left = {id for id, entry in entries.items() if entry.kind != "rate"} - {job[0] for job in wanted.values()}
    assert {id for id in left if not id.startswith("privacy.")} == set(worst_cases.NO_RATIO)
    for name, record in STORED.items():
        found = worst_case.from_record(record)
        assert found.evaluations == found.budget == worst_cases.PER_UNKNOWN * found.unknowns, name
        assert found.variant == entries[found.aim].variants[0] and found.seed == 0, name
        shape = f"N={found.problem_class.n_clients} d={found.problem.dim}"
        assert name == f"{found.aim} {found.objective} {shape}"


def test_the_stored_instances_are_evaluated_again():
    """Each within the hypotheses, with the stored value; no default variant is violated."""
    verdicts = worst_cases.verified(STORED)
    assert len(verdicts) == len(STORED)
    assert not [name for name, verdict in verdicts.items() if verdict.contradicts_theorem]
    assert all(verdict.hypotheses_met for verdict in verdicts.values())


def test_the_scoreboard_shows_the_largest_found():
    board = pd.read_csv(store.FOLDER / "scoreboard.csv").set_index(["theorem", "variant"])["largest_found"]
    largest = worst_cases.largest(STORED)
    assert len(largest) > 60
    for key, value in largest.items():
        assert board[key] == pytest.approx(value, rel=1e-3, abs=1e-12), "python -m reproduce scoreboard"
    assert set(board.dropna().index) == set(largest)


def test_no_ratio_of_objectives_is_above_that_of_the_whole():
    """The excess and the limits are ratios too: at most one where the bound holds, up to the law's digits."""
    for name, record in STORED.items():
        found = worst_case.from_record(record)
        assert found.value <= 1.0 + max(1e-9, rounding(found.problem, found.algorithm)), name


def test_same_seed_same_file_however_it_is_split(tmp_path, capsys):
    texts = []
    for folder, options in (("one", []), ("again", []), ("two", ["--workers", "2"]),
                            ("seed", ["--seed", "1"])):
        assert command.main([*QUICK, *options, "--out", str(tmp_path / folder)]) == 0
        texts.append((tmp_path / folder / worst_cases.FILE).read_bytes())
        assert [path.name for path in (tmp_path / folder).iterdir()] == [worst_cases.FILE]
    assert texts[0] == texts[1] == texts[2] != texts[3]
    said = capsys.readouterr()
    assert "3 instances, each evaluated again; 0 violate" in said.out and "[  3/3]" in said.err
    assert command.main(["worst_cases", "--verify", "--out", str(tmp_path / "one")]) == 0


def test_a_part_leaves_the_rest_of_the_file(tmp_path):
    (tmp_path / worst_cases.FILE).write_text(worst_cases.as_json(STORED))
    assert command.main([*QUICK, "--seed", "1", "--out", str(tmp_path)]) == 0
    after = worst_cases.load(tmp_path)
    changed = {name for name in after if after[name] != STORED[name]}
    assert set(after) == set(STORED)
    assert changed == {name for name in STORED if name.startswith("fa_ld.discretization_bound ")}


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    whole = tmp_path / "whole"
    assert command.main([*QUICK, "--out", str(whole)]) == 0
    search, done = worst_case.search, []

    def stopped(*arguments, **options):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return search(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(worst_case, "search", stopped)
        assert command.main([*QUICK, "--out", str(tmp_path / "part")]) == 130
    assert "goes on from there" in capsys.readouterr().err
    assert not (tmp_path / "part" / worst_cases.FILE).exists()
    assert command.main([*QUICK, "--out", str(tmp_path / "part")]) == 0
    assert "2 of 3 searches are kept" in capsys.readouterr().err
    assert (tmp_path / "part" / worst_cases.FILE).read_bytes() == (whole / worst_cases.FILE).read_bytes()


def test_what_was_changed_is_refused(tmp_path, capsys):
    name, record = next(iter(STORED.items()))
    bad = json.loads(json.dumps(record))
    bad["seed"] += 1
    for text, message in ((json.dumps({name: bad}), "it was changed"),
                          ("{", "is not what this program wrote"),
                          ("[1]", "is not what this program wrote"), ("{}", "has no records to verify")):
        (tmp_path / worst_cases.FILE).write_text(text)
        assert command.main(["worst_cases", "--verify", "--out", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert message in said and "Traceback" not in said


@pytest.mark.parametrize(("options", "message"), [
    (["--only", "no"], "must begin the id of a bound"), (["--seed", "-1"], "--seed=-1"),
    (["--per-unknown", "1"], "--per-unknown=1"), (["--workers", "0"], "--workers=0")])
def test_bad_options_are_refused(options, message, tmp_path, capsys):
    with contextlib.suppress(SystemExit):
        assert command.main(["worst_cases", *options, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err and not list(tmp_path.iterdir())
