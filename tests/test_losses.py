"""What docs/losses_federated.md and docs/losses_gossip.md say is lost where."""

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path

import losses
import losses_proofs
import numpy as np
import pytest

import fedsim as fs
import theory

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / name for name in losses.PAGES]


@pytest.fixture(scope="module")
def ladders():
    return {f"{name} {number}": one for name, columns in losses.ladders().items()
            for number, one in enumerate(columns)}


def test_the_tables_are_what_is_computed(capsys):
    assert losses.main(["--check"]) == 0, capsys.readouterr().out


def test_limits_fall_from_the_published_one_to_the_recursions(ladders):
    assert len(ladders) == 7
    for name, one in ladders.items():
        assert all(after < before for before, after in pairwise([one.published, *one.rungs])), name


def test_every_row_is_at_least_the_exact_law(ladders):
    for name, one in ladders.items():
        assert min(one.rows[:-1]) >= one.exact > 0.0, name


def test_the_last_repair_is_the_recursion_of_theory(ladders):
    for name, one in ladders.items():
        assert one.rungs[-1] == pytest.approx(one.recursion, rel=1e-9), name


def test_also_with_constant_hessians(ladders):
    again = {"fa_ld 0": losses_proofs.fa_ld(losses.ALL, 9, 0.0),
             "fa_ld 1": losses_proofs.fa_ld(losses.DRAWN, 9, 0.0), "fa_hmc 0": losses_proofs.fa_hmc(5, 0.0),
             "de_sgld 0": losses_proofs.gossip(7, 0.0)[0], "de_sgld 1": losses_proofs.gossip(7, 0.0)[1]}
    for name, value in again.items():
        assert value == pytest.approx(ladders[name].constant_hessians, rel=1e-9), name


def test_published_rows_are_within_their_hypotheses():
    for problem, one, bound in ((losses.PAIR, losses.ALL, theory.fa_ld.w2_bound),
                                (losses.PAIR, losses.DRAWN, theory.fa_ld.w2_bound_partial),
                                (losses.PAIR, losses.LEAPS, theory.fa_hmc.w2_bound),
                                (losses.RING, losses.GOSSIP, theory.de_sgld.w2_bound),
                                (losses.RING, losses.MOMENTUM, theory.de_sghmc.w2_bound)):
        assert bound(theory.constants(problem, one), one, n_rounds=1).hypotheses_hold


def drawn_problem(seed):
    """A rotated problem of conditions up to 6, and a step size within 1/(2 smoothness)."""
    rng = np.random.default_rng(seed)
    n_clients, dim = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    turns = np.linalg.qr(rng.normal(size=(n_clients, dim, dim)))[0]
    hessians = turns @ (rng.uniform(1.0, 6.0, (n_clients, dim, 1)) * turns.swapaxes(1, 2))
    minimizers = rng.normal(size=(n_clients, dim)) * 10.0 ** rng.uniform(-1.0, 1.0)
    return hessians, minimizers, float(rng.uniform(0.02, 0.08)), rng


@pytest.mark.parametrize("seed", range(3))
def test_every_repair_of_fa_ld_and_fa_hmc_is_a_bound_elsewhere(seed, monkeypatch):
    hessians, minimizers, size, rng = drawn_problem(seed)
    problem = fs.Quadratic(hessians, minimizers, rng.dirichlet(np.full(len(hessians), 2.0)))
    shared = float(rng.choice([0.0, 0.3, 1.0]))
    monkeypatch.setattr(losses_proofs, "PAIR", problem)
    one = fs.FALD(size, int(rng.integers(1, 6)), shared_noise=shared)
    exact = theory.stationary_law(problem, one).w2(problem.target())
    assert min(losses_proofs.fa_ld(one, level) for level in range(1, 10)) >= exact
    other = fs.FAHMC(0.1, int(rng.integers(2, 5)), local_steps=int(rng.integers(1, 4)),
                     shared_noise=shared)
    monkeypatch.setattr(losses_proofs, "LEAPS", other)
    exact = theory.stationary_law(problem, other).w2(problem.target())
    assert min(losses_proofs.fa_hmc(level) for level in range(1, 6)) >= exact


@pytest.mark.parametrize("seed", range(3))
def test_every_repair_of_gossip_is_a_bound_elsewhere(seed, monkeypatch):
    hessians, minimizers, size, _ = drawn_problem(seed)
    problem = fs.Quadratic.from_components(hessians, minimizers)
    one = fs.DESGLD(size, fs.network.path(len(hessians)))
    monkeypatch.setattr(losses_proofs, "RING", problem)
    monkeypatch.setattr(losses_proofs, "GOSSIP", one)
    target = problem.target()
    exact = (theory.stationary_law(problem, one).w2(target), np.mean(
        [theory.stationary_law(problem, one, client=i).w2(target) for i in range(len(hessians))]))
    for momentum in (False, True):
        rungs = [losses_proofs.gossip(level, momentum=momentum) for level in range(1, 8)]
        assert (np.min(rungs, axis=0) >= exact).all()


def test_differences_are_seen():
    assert losses.same(" 0.394 ", " 0.395 ") and losses.same("198", "199") and losses.same("a", "a")
    assert not losses.same("0.394", "0.396") and not losses.same("198", "200") and not losses.same("", "1")
    text = ("x\n<!-- losses:t:begin -->\n| a | b | c |\n|---|---|---|\n| one | 2 | why |\n"
            "<!-- losses:t:end -->\n")
    new = losses.filled(text, "t", [["3"]])
    assert new == text.replace(" 2 ", " 3 ") and losses.filled(new, "t", [["3"]]) == new
    assert [losses.differ(*pair) for pair in zip(text.splitlines(), new.splitlines(), strict=True)
            ] == [False, False, False, False, True, False]
    with pytest.raises(ValueError):
        losses.filled(text, "t", [["3"], ["4"]])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_example_prints_what_is_shown(page):
    code, shown = re.search(r"```python\n(.*?)```\n```text\n(.*?)```", page.read_text(encoding="utf-8"),
                            re.DOTALL).groups()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, page.name, "exec"), {})
    assert printed.getvalue() == shown
