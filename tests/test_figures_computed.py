"""The figures' computing, at the tiny scale: some of FA-LD always, every figure in `make test-all`."""

import functools

import numpy as np
import pytest
from a_figure import assert_of_no_machine, assert_reasoned, assert_storable

import fedsim as fs
from reproduce import run, store
from reproduce.discovery import figures
from reproduce.fa_ld.shared import floor_of

FIGURES = figures()
PICTURE = run.Wish(formats=("png",))
SOME = ("fa_ld_fig1a", "fa_ld_fig1b", "fa_ld_fig1c", "fa_ld_fig3d", "fa_ld_fig3e")


@functools.cache
def computed(name):
    """A figure's tables, computed once."""
    return FIGURES[name].compute("tiny")


def assert_made(name, folder):
    """What is published of a figure is complete, and the same picture is drawn from it again."""
    run.publish(FIGURES[name], computed(name), "tiny", folder)
    assert_storable(computed(name), folder, name)
    assert_reasoned(store.load_record(folder, name))
    assert_of_no_machine(folder, name, "tiny")
    before = (folder / f"{name}.png").stat().st_size
    run.redraw(FIGURES[name], "tiny", folder, wish=PICTURE)
    assert before > 5_000 and abs((folder / f"{name}.png").stat().st_size - before) < 0.02 * before


@pytest.mark.parametrize("name", SOME)
def test_a_figure_is_made_at_the_tiny_scale(name, tmp_path):
    assert_made(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FIGURES if name not in SOME])
def test_every_figure_is_made_at_the_tiny_scale(name, tmp_path):
    assert_made(name, tmp_path)


def test_check_passes_on_the_same_and_fails_on_other_numbers(tmp_path):
    one, tables = FIGURES["fa_ld_fig1b"], computed("fa_ld_fig1b")
    run.publish(one, tables, "tiny", tmp_path, wish=PICTURE)
    assert run.check(one, "tiny", tmp_path) == []
    moved = {**tables, "curves": tables["curves"].assign(w2=tables["curves"]["w2"] * (1 + 1e-5))}
    run.publish(one, moved, "tiny", tmp_path, wish=PICTURE)
    found = run.check(one, "tiny", tmp_path)
    assert len(found) == 1 and "curves, column w2" in found[0]


def test_same_seed_same_tables():
    again = FIGURES["fa_ld_fig1c"].compute("tiny")
    assert store.to_csv(again) == store.to_csv(computed("fa_ld_fig1c"))


def test_verdicts_that_the_exact_law_decides_at_any_scale():
    """Equal Hessians: the average is centralised Langevin, whatever K, rho and alpha."""
    equal = computed("fa_ld_fig1a")["equal"]
    assert (equal.groupby(["alpha", "data_set"])["rounds"].diff().dropna() <= 0).all()
    bias = computed("fa_ld_fig1a")["bias"].query("spread == 0.0")["w2"]
    np.testing.assert_allclose(bias, 1.384e-5, rtol=1e-3)
    curves = computed("fa_ld_fig1c")["curves"].query("kind == 'exact'")
    table = curves.pivot(index="round", columns="rho", values="w2")
    np.testing.assert_allclose(table, np.repeat(table.to_numpy()[:, :1], table.shape[1], axis=1), rtol=1e-9)
    moved = computed("fa_ld_fig1b")["equal_start"].pivot(index="round", columns="alpha", values="w2")
    np.testing.assert_allclose(moved, np.repeat(moved.to_numpy()[:, :1], moved.shape[1], axis=1), rtol=1e-6)
    for name in ("fa_ld_fig1b", "fa_ld_fig1c", "fa_ld_fig3e"):
        assert computed(name)["bounds"]["vacuous"].all()
    np.testing.assert_allclose(floor_of(fs.papers.fa_ld_simulation(), 300), 7.82e-4, rtol=2e-3)


@pytest.mark.parametrize("scheme", ["I", "II"])
def test_bias_of_partial_participation_has_its_closed_form_limit(scheme):
    bias = computed("fa_ld_fig3d")["bias"].query("scheme == @scheme and rho == 0.0")
    smallest = bias[bias["step_size"] == bias["step_size"].min()]
    np.testing.assert_allclose(smallest["w2"], smallest["limit"], rtol=1e-4)
    n_active = smallest["n_active"].to_numpy()
    extra = (50 - n_active if scheme == "II" else 49) / n_active
    np.testing.assert_allclose(smallest["limit"], (np.sqrt(1 + extra) - 1) * np.sqrt(6 / 5e4), rtol=1e-9)
