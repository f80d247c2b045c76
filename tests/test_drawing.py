"""Pictures of laws, runs, bounds and verdicts: what is drawn is what they say."""

import builtins
import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import fedsim as fs
import theory
from fedsim.laws import frames, plots as drawing

PROBLEM = fs.Quadratic([[1.0, 4.0], [2.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]])
ALGORITHM = fs.FALD(0.02, local_steps=5, shared_noise=0.25)
LAW = theory.exact_law(PROBLEM, ALGORITHM, 30)
CONSTANTS = theory.constants(PROBLEM, ALGORITHM)
BOUND = theory.fa_ld.w2_bound(CONSTANTS, ALGORITHM, n_rounds=30)
CLOSER = theory.fa_ld.w2_recursion(CONSTANTS, ALGORITHM, n_rounds=30)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def a_run():
    return fs.simulate(PROBLEM, ALGORITHM, 30, 256, seed=1)


def labelled(ax):
    """What is drawn by its label."""
    handles, labels = ax.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def test_all_together_on_the_same_axes():
    run = a_run()
    ax = fs.plot(CLOSER, run, LAW, BOUND)
    drawn = labelled(ax)
    np.testing.assert_array_equal(drawn["exact law"].get_ydata(), LAW.w2())
    np.testing.assert_array_equal(drawn["exact law"].get_xdata(), LAW.rounds)
    np.testing.assert_array_equal(drawn["finite-replica floor"].get_ydata(), 2 * [run.w2_floor()[-1]])
    band = drawn["replicas (95% band)"].get_paths()[0].vertices
    for end in run.w2_interval()[-1]:
        assert np.isclose(band, [30, end]).all(axis=1).any()
    vacuous, = (name for name in drawn if "vacuous" in name)
    assert drawn[vacuous].get_color() == drawing.GREY and BOUND.source in vacuous
    np.testing.assert_array_equal(drawn[vacuous].get_ydata(), BOUND.value)
    other, = (name for name in drawn if CLOSER.source in name)
    assert drawn[other].get_color() != drawing.GREY
    assert ax.get_yscale() == "log" and ax.get_xscale() == "linear"
    assert min(text.get_fontsize() for text in ax.get_legend().get_texts()) >= 9


def test_it_draws_on_given_axes_and_long_runs_keep_round_0():
    ax = plt.figure().add_subplot()
    assert fs.plot(LAW, ax=ax, legend=False) is ax and ax.get_legend() is None
    assert LAW.plot(ax) is ax
    long = theory.exact_law(PROBLEM, ALGORITHM, 5000).plot()
    assert long.get_xscale() == "symlog" and long.lines[0].get_xdata()[0] == 0


def test_a_law_that_never_leaves_the_target_is_drawn():
    """W2 is 0 throughout, which a logarithmic axis cannot show."""
    still = fs.Law(np.arange(3), np.zeros((3, 1)), np.ones((3, 1, 1)), fs.Gaussian([0.0], [1.0]))
    ax = fs.plot(still)
    ax.get_figure().canvas.draw()
    assert ax.get_yscale() == "linear" and (ax.lines[0].get_ydata() == 0.0).all()
    assert fs.plot(still, LAW).get_yscale() == "log"


def test_laws_of_several_algorithms_are_told_apart():
    other = theory.exact_law(PROBLEM, fs.FALD(0.05), 30)
    names = list(labelled(fs.plot(LAW, other)))
    assert names == ["exact law of FALD(step_size=0.02, local_steps=5, shared_noise=0.25)",
                     "exact law of FALD(step_size=0.05)"]


def test_only_what_was_worked_out_for_an_algorithm_is_called_exact(tmp_path):
    """Not a law made by hand, nor one that was changed; a saved one is what it was."""
    by_hand = fs.Law(LAW.rounds, LAW.mean, LAW.cov, LAW.target, label="mine")
    changed = replace(LAW, mean=LAW.mean + 1.0)
    LAW.save(tmp_path / "law.npz")
    saved = fs.load(tmp_path / "law.npz")
    for law, word in ((LAW, "exact law"), (saved, "exact law"), (by_hand, "law as given"),
                      (changed, "law as given"), (LAW.clients[0] if LAW.clients else LAW, "exact law")):
        assert list(labelled(fs.plot(law))) == [word] == list(labelled(law.plot()))
    assert next(iter(labelled(fs.plot(by_hand, LAW)))) == "law as given of mine"
    movie = fs.animate(by_hand, LAW)
    names = [text.get_text() for text in movie._fig.axes[0].get_legend().get_texts()]
    assert names[1] == "law as given of mine" and names[2].startswith("exact law of FALD(")
    movie._draw_was_started = True  # nobody has to see it


@pytest.mark.parametrize("what", ["mean", "variance"])
def test_means_and_variances_beside_the_targets(what):
    ax = LAW.plot(what=what)
    lines = [line for line in ax.lines if line.get_label().startswith(what)]
    values = LAW.mean if what == "mean" else np.diagonal(LAW.cov, axis1=1, axis2=2)
    np.testing.assert_array_equal(np.transpose([line.get_ydata() for line in lines]), values)
    aims = LAW.target.mean if what == "mean" else LAW.target.variances
    assert [line.get_ydata()[0] for line in ax.lines[1::2]] == aims.tolist()


def test_a_bound_has_its_terms():
    drawn = labelled(BOUND.plot())
    for name, part in BOUND.terms.items():
        np.testing.assert_array_equal(drawn[f"term: {name}"].get_ydata(), part)
    np.testing.assert_array_equal(drawn["distance at the start"].get_ydata(), 2 * [BOUND.start_distance])


def test_a_verdict_marks_the_round_that_decides():
    verdict = theory.check(CLOSER, LAW)
    ax = verdict.plot()
    name, = (name for name in labelled(ax) if name.startswith("tightest"))
    point = labelled(ax)[name]
    assert point.get_xdata()[0] == verdict.worst_round
    assert point.get_ydata()[0] == LAW.w2()[LAW.rounds == verdict.worst_round]
    assert ax.get_title().replace("\n", " ") == verdict.message
    failed = theory.check(theory.Bound.from_terms(
        {"all": 0.5 * LAW.w2()}, LAW.rounds, assumptions=(), quantity="w2", kind="upper", source="by hand",
        target=LAW.target), LAW)
    assert "first violation, round 0" in labelled(failed.plot())


@pytest.mark.parametrize(("call", "message"), [
    (lambda: fs.plot(), "nothing to draw"),
    (lambda: fs.plot(LAW, 3), "argument 1 of plot is int; it must be a Law, Run or Bound"),
    (lambda: fs.plot(theory.fa_ld.divergence_bound(CONSTANTS, ALGORITHM, n_rounds=3)),
     "argument 0 of plot is a bound on"),
    (lambda: fs.plot(LAW, ax="here"), "ax='here' must be"),
    (lambda: fs.plot(LAW, theory.Bound), "argument 1 of plot is type; it must be a Law, Run or Bound"),
    (lambda: fs.plot(LAW, legend="below"), "legend='below' must be one of"),
    (lambda: fs.animate(LAW, coordinates=[[0, 1], [1]]), "^coordinates="),
    (lambda: fs.animate(LAW, coordinates=[0], level=3.0), "level=3.0 must be less than 1"),
    (lambda: LAW.plot(what="w3"), "what='w3' must be one of"),
    (lambda: fs.animate(LAW, theory.exact_law(PROBLEM, ALGORITHM, 5)), r"laws\[1\] has other rounds"),
    (lambda: fs.animate(LAW, coordinates=[0, 1, 0]), "coordinates="),
    (lambda: fs.animate(LAW, coordinates=5), "coordinates="),
    (lambda: fs.animate(3), r"laws\[0\]=3 must be")])
def test_what_cannot_be_drawn_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def absent(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r"pip install 'fedsim-theory\[plot\]'"):
        LAW.plot()


def test_the_room_has_the_parts():
    assert sys.modules["fedsim.plot"] is drawing and callable(fs.plot) and fs.plot is drawing.plot
    from fedsim.plot import exact
    assert exact is drawing.exact


def test_ellipses_over_the_rounds():
    movie = fs.animate(LAW, level=0.5)
    frames = list(movie.new_frame_seq())
    line, = movie._func(frames[-1])
    np.testing.assert_allclose(np.transpose(line.get_data()), LAW.at(30).ellipse(0.5))
    assert line.axes.get_title() == "round 30"
    movie._draw_was_started = True


def test_densities_of_one_coordinate_over_the_rounds(tmp_path):
    movie = fs.animate(LAW, coordinates=1)
    line, = movie._func(20)
    x, y = line.get_data()
    law = LAW.at(20)
    np.testing.assert_allclose(y, stats.norm.pdf(x, law.mean[1], law.variances[1] ** 0.5), rtol=1e-12)
    movie.save(tmp_path / "laws.gif", writer="pillow", fps=20)
    assert (tmp_path / "laws.gif").read_bytes()[:4] == b"GIF8"


def test_readable_lines_say_where_it_ends():
    start, end = LAW.w2()[[0, -1]]
    assert f"W2 {start:.4g} -> {end:.4g}" in repr(LAW) and "FALD(step_size=0.02" in repr(LAW)
    run = a_run()
    low, high = run.w2_interval()[-1]
    assert f"256 replicas, W2 {run.w2()[0]:.4g} -> {run.w2()[-1]:.4g} [{low:.4g}, {high:.4g}]" in repr(run)
    assert "W2" not in repr(theory.exact_law(PROBLEM, ALGORITHM, 3, covariance="none"))


def test_notebooks_show_the_summary():
    law = theory.exact_law(PROBLEM, ALGORITHM, 3)
    assert law._repr_html_() == f"<pre>{law.summary().replace('>', '&gt;').replace(chr(39), '&#x27;')}</pre>"
    for one in (BOUND, theory.check(BOUND, LAW)):
        assert one._repr_html_().startswith("<pre>") and "&lt;" not in one._repr_html_()[:4]


# ---- tables ------------------------------------------------------------------------------------------


def test_tidy_tables_hold_everything():
    run = a_run()
    table = run.to_frame()
    assert list(table)[:6] == ["round", "kind", "coordinate", "value", "low", "high"]
    assert set(table["algorithm"]) == {"FALD"} and set(table["local_steps"]) == {5}
    assert set(table["shared_noise"]) == {0.25} and set(table["n_replicas"]) == {256}
    means = table[table["kind"] == "mean"].pivot(index="round", columns="coordinate", values="value")
    np.testing.assert_array_equal(means.to_numpy(), run.mean)
    variances = table[table["kind"] == "variance"].pivot(index="round", columns="coordinate", values="value")
    np.testing.assert_array_equal(variances.to_numpy(), np.diagonal(run.cov, axis1=1, axis2=2))
    w2 = table[table["kind"] == "w2"]
    np.testing.assert_array_equal(w2["value"], run.w2())
    np.testing.assert_array_equal(w2[["low", "high"]], run.w2_interval())
    assert w2["coordinate"].isna().all() and len(table) == 5 * 31
    assert table[table["kind"] != "w2"]["low"].isna().all()
    law = LAW.to_frame()
    assert law["low"].isna().all() and "n_replicas" not in law and len(law) == len(table)


@pytest.mark.parametrize(("words", "found"), [
    ("FALD(step_size=0.1, local_steps=5)", {"algorithm": "FALD", "step_size": 0.1, "local_steps": 5}),
    ("FAHMC(step_size=0.1, debias='stale')", {"algorithm": "FAHMC", "step_size": 0.1, "debias": "stale"}),
    ("client 2 of DESGLD(step_size=0.1, mixing=(9, 9) array) #12ab", {"algorithm": "client 2 of DESGLD("
     "step_size=0.1, mixing=(9, 9) array) #12ab"}),
    ("client 2 of FALD(step_size=-1)", {"algorithm": "client 2 of FALD", "step_size": -1}),
    ("DESGLD(step_size=[0.1, 0.2])", {"algorithm": "DESGLD"}), ("", {"algorithm": ""})])
def test_parameters_are_read_from_the_readable_line(words, found):
    assert frames.parameters_of(words) == found


# ---- the Gaussian ------------------------------------------------------------------------------------

DENSE = fs.Gaussian([1.0, -2.0, 0.5], [[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.7]])
DIAGONAL = fs.Gaussian([1.0, -2.0, 0.5], [2.0, 1.0, 0.7])


@pytest.mark.parametrize("law", [DENSE, DIAGONAL])
def test_densities_are_scipys(law):
    x = np.random.default_rng(0).standard_normal((4, 5, 3))
    other = stats.multivariate_normal(law.mean, law.cov)
    np.testing.assert_allclose(law.pdf(x), other.pdf(x), rtol=1e-12)
    np.testing.assert_allclose(law.logpdf(x), other.logpdf(x), rtol=1e-12)
    assert law.pdf(x[0, 0]).shape == ()


@pytest.mark.parametrize("law", [DENSE, DIAGONAL])
def test_marginals(law):
    both = law.marginal([2, 0])
    np.testing.assert_array_equal(both.mean, law.mean[[2, 0]])
    np.testing.assert_array_equal(both.cov, law.cov[np.ix_([2, 0], [2, 0])])
    assert both.is_diagonal == law.is_diagonal and law.marginal(1).variances.tolist() == [1.0]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_an_ellipse_has_its_probability(level):
    law = DENSE.marginal([0, 1])
    points = law.ellipse(level, 50)
    gap = points - law.mean
    sizes = np.einsum("ni,ij,nj->n", gap, np.linalg.inv(law.cov), gap)
    np.testing.assert_allclose(sizes, stats.chi2.ppf(level, 2), rtol=1e-12)
    np.testing.assert_allclose(points[0], points[-1], atol=1e-12)
    assert len(points) == 50 and fs.Gaussian([1.0, 2.0], [0.0, 0.0]).ellipse().std(axis=0).max() < 1e-15


@pytest.mark.parametrize(("call", "message"), [
    (lambda: DENSE.ellipse(), r"dimension 3 has no ellipse; .* take \.marginal"),
    (lambda: DENSE.marginal([0, 1]).ellipse(1.0), "level=1.0 must lie between 0 and 1"),
    (lambda: DENSE.marginal([0, 1]).ellipse(n=1), "n=1"),
    (lambda: DENSE.marginal(3), "coordinates=3 must be different numbers from 0 to 2"),
    (lambda: DENSE.marginal([0, 0]), "must be different"), (lambda: DENSE.marginal([]), "coordinates"),
    (lambda: DENSE.pdf([1.0, 2.0]), "x has shape"),
    (lambda: fs.Gaussian([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]).pdf([0.0, 0.0]), "has no density")])
def test_bad_questions_to_a_gaussian(call, message):
    with pytest.raises(ValueError, match=message):
        call()
