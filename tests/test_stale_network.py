"""The small network that stale SGHMC samples: gradient, minibatches, loss; it is made where asked alone."""

import io
from functools import cache
from types import SimpleNamespace

import naive
import naive_regression
import numpy as np
import pytest
from a_figure import assert_readable
from opposites.stale_logistic import staleness_hurts

import fedsim as fs
from reproduce import images, plot, store
from reproduce.figure import settings
from reproduce.stale import fig3_4_logistic, network, network_figure
from reproduce.verdicts import ECHOED, HOLDS, NOT_TESTABLE, OPEN

HIDDEN, VARIANCE, SEED = 4, 0.5, 2**40 + 7
H = 1e-2


@cache
def digits(n=300):
    """Rows and labels."""
    data = images.digits()
    return data.rows(np.arange(n)), data.labels[:n]


@cache
def posterior():
    return network.posterior(*digits(), HIDDEN, VARIANCE)


@cache
def point():
    return np.random.default_rng(3).standard_normal(posterior().dim)


def minibatch_gradients(problem, n):
    """Gradients (2, n, d) at the point, which two updates of next to no noise take there."""
    path = fs.sample_path(problem, fs.StaleSGHMC(H, 1e-20, [0, 1]), 2, seed=SEED, n_chains=n, start=point(),
                          allow_unstable=True)
    first, second = path[:, 0] - point(), path[:, 1] - path[:, 0]
    return np.stack([first, second - first]) / -(H**2)


def test_the_gradient_is_that_of_the_potential():
    (rows, labels), at = digits(), point()
    steps = 1e-5 * np.eye(len(at))
    for row in (0, 7, 299):
        def potential(x, row=row):
            loss = network.losses(x, rows[[row]], labels[[row]], HIDDEN)[..., 0]
            return len(labels) * loss + (x**2).sum(axis=-1) / (2.0 * VARIANCE)

        slopes = (potential(at + steps) - potential(at - steps)) / 2e-5
        found = posterior().gradient(row, at)
        np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=1e-6 * np.abs(slopes).max())


def test_losses_are_those_of_a_network():
    """Of chances that sum to one, which a network written out has."""
    rows, at = digits()[0][:3], point()
    every = np.stack([network.losses(at, rows, np.full(3, label), HIDDEN) for label in range(10)])
    np.testing.assert_allclose(np.exp(-every).sum(axis=0), 1.0, rtol=1e-12)
    units = [np.tanh(at[65 * j:65 * (j + 1)] @ rows[1]) for j in range(HIDDEN)]
    scores = at[65 * HIDDEN:].reshape(10, HIDDEN + 1) @ [*units, 1.0]
    np.testing.assert_allclose(np.diff(every[:, 1]), -np.diff(scores), rtol=1e-10)


def test_a_minibatch_is_the_mean_over_rows_drawn_by_the_rule():
    problem = network.Minibatches(posterior(), 10)
    rule = SimpleNamespace(clients=np.zeros(300, int), batch_size=10, replace=False)
    found = minibatch_gradients(problem, 19)
    for update, replica in ((0, 0), (0, 15), (0, 18), (1, 0), (1, 16)):
        drawn = naive_regression.draw_rows(rule, naive.Streams(SEED, replica), 0, update, 0)
        mean = np.mean([posterior().gradient(row, point()) for row in drawn], axis=0)
        np.testing.assert_allclose(found[update, replica], mean, rtol=1e-7, atol=1e-7 * np.abs(mean).max())
    assert (minibatch_gradients(problem, 3) == found[:, :3]).all()


def test_minibatches_mean_the_full_gradient(alarm):
    whole = network.Minibatches(posterior(), 300)
    full = whole.gradient(0, point())
    np.testing.assert_allclose(minibatch_gradients(whole, 1)[0, 0], full, rtol=1e-7, atol=1e-6)
    found = minibatch_gradients(network.Minibatches(posterior(), 10), 10_000).reshape(20_000, -1)
    along = np.random.default_rng(4).standard_normal((len(full), 20))

    def student(expected):
        parts = (found - expected) @ along
        return parts.mean(axis=0) / (parts.std(axis=0, ddof=1) / np.sqrt(len(parts)))

    alarm.assert_student(student(full), len(found) - 1)
    part = np.mean([posterior().gradient(row, point()) for row in range(270)], axis=0)
    alarm.must_fail(student(part))  # a tenth of the rows is never drawn


def test_what_minibatches_refuse():
    with pytest.raises(ValueError, match="batch_size=301 must be"):
        network.Minibatches(posterior(), 301)
    uneven = fs.Quadratic([1.0, 1.0], [[0.0], [1.0]], weights=[0.3, 0.7])
    with pytest.raises(ValueError, match="must have equal weights"):
        network.Minibatches(uneven, 1)


def toy(**changes):
    p = settings(fig3_4_logistic.PARAMETERS_3, "paper")
    return SimpleNamespace(**vars(p) | {"network_hidden": HIDDEN, "network_iterations": 20,
                                        "network_samples": 10, "network_chains": 3} | changes)


def test_a_small_table():
    rows, labels = digits()
    parts = rows[:200], labels[:200], rows[200:], labels[200:]
    table, again = (network_figure.of_rows(toy(), number, *parts) for number in (0, 0))
    assert table == again != network_figure.of_rows(toy(), 1, *parts)
    assert [(row["rate"], row["workers"]) for row in table] == [
        (rate, n) for rate in (0.01, 0.03) for n in (1, 2, 4, 6, 9)]
    assert all(0.0 < row["loss"] < 100.0 and row["dim"] == 310 and row["n_train"] == 200 for row in table)
    assert table[4]["loss"] < table[0]["loss"] - 0.1, "nine workers have nine times as many updates"


def test_it_is_made_at_the_paper_scale_alone(monkeypatch):
    def made(p, number):
        raise NotImplementedError(f"split {number}")

    monkeypatch.setattr(network_figure, "_ends", made)
    for scale in ("tiny", "quick"):
        assert network_figure.tables(settings(fig3_4_logistic.PARAMETERS_3, scale)) == {}
    with pytest.raises(NotImplementedError, match="split 0"):
        network_figure.tables(settings(fig3_4_logistic.PARAMETERS_3, "paper"))


def test_what_was_not_run_is_not_judged():
    tables = staleness_hurts({})
    for some in ({}, {"network": tables["network"].query("workers < 9")}):
        for one in network_figure.CLAIMS:
            assert one.judged(some)["verdict"] in (NOT_TESTABLE, OPEN)
    assert [one.judged(tables)["verdict"] for one in network_figure.CLAIMS[:2]] == [ECHOED, HOLDS]


def test_its_panel_is_drawn_beside_the_others():
    tables = store.load_tables(store.FOLDER, "stale_fig3_logistic")
    with plot.style():
        drawing = fig3_4_logistic.draw_3(staleness_hurts(tables))
        plot.sign(drawing, "A name", "verdicts")
        drawing.savefig(io.BytesIO())
    assert len(drawing.axes) == 4 and "network" in drawing.axes[3].get_title(loc="left")
    assert_readable(drawing)
