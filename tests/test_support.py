"""Problems on a part of the space: replicas that leave it are counted and told, and never moved back."""

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

import fedsim as fs
import theory
from fedsim.fingerprints import fingerprint

INFINITE = np.inf


def slope(client, x, kind, shape):
    if kind == 1:
        return np.log(x)  # not a number outside
    return 1.0 - (shape - 1.0) / x


def potential(client, x, kind, shape):
    return x * np.log(x) - x if kind == 1 else x - (shape - 1.0) * np.log(x)


def gamma(shape=3.0, kind=0, n_clients=1, support=(0.0, INFINITE)):
    return fs.Custom(slope, n_clients, data=(kind, shape), potential=potential, support=support)


def run_of(problem, algorithm=None, n_replicas=300, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.OutsideWarning)
        return fs.simulate(problem, algorithm or fs.FALD(0.01), 60, n_replicas, seed=1, start=[0.3],
                           **options)


@pytest.fixture(name="run", scope="module")
def _run():
    found = run_of(gamma(), keep_final=True)
    assert found.outside[-1] > 5
    return found


def test_a_gamma_law_has_a_problem_and_a_density():
    for kind in ("gradient", "potential"):
        with (pytest.raises(ValueError, match=rf"{kind}.*must be finite.*pass support=\(lo, hi\)"),
              np.errstate(invalid="ignore")):
            gamma(support=None, kind=kind == "gradient")
    law, exact = gamma().density(), stats.gamma(3.0)
    assert (law.mean, law.variance) == pytest.approx((3.0, 3.0), rel=1e-9)
    x = np.array([-1.0, 0.0, 0.5, 3.0, 9.0])
    assert np.abs(law.cdf(x) - exact.cdf(x)).max() < 1e-9
    assert np.abs(law.pdf(x) - exact.pdf(x)).max() < 1e-9
    assert "support=(0, inf)" in repr(law)
    assert "support=(0, inf)" in repr(gamma())


@pytest.mark.parametrize(("pot", "support", "exact"), [
    (lambda x: x, (0.0, INFINITE), stats.expon()), (lambda x: -x, (-INFINITE, 0.0), None),
    (lambda x: x * x / 2.0, (1.0, INFINITE), stats.truncnorm(1.0, INFINITE)),
    (lambda x: 0.0 * x, (2.0, 3.0), stats.uniform(2.0, 1.0)),
    (lambda x: -np.log(x) - 2.0 * np.log1p(-x), (0.0, 1.0), stats.beta(2.0, 3.0)),
    (lambda x: 0.5 * (x / 1e-3) ** 2, (-1e-3, 1e9), stats.truncnorm(-1.0, INFINITE, scale=1e-3))])
def test_densities_on_parts_of_the_line(pot, support, exact):
    """What jumps at the ends has its digits too."""
    law = fs.Density(pot, support=support, scale=1.0)
    mirrored = exact is None
    exact = stats.expon() if mirrored else exact
    assert law.mean == pytest.approx(-exact.mean() if mirrored else exact.mean(), rel=1e-8)
    assert law.variance == pytest.approx(exact.var(), rel=1e-8)
    places = exact.ppf([0.1, 0.5, 0.9])
    assert law.cdf(-places if mirrored else places) == pytest.approx([0.9, 0.5, 0.1] if mirrored else [
        0.1, 0.5, 0.9], abs=1e-8)
    assert law.quantile(0.5) == pytest.approx(-places[1] if mirrored else places[1], rel=1e-8)


@pytest.mark.parametrize(("support", "message"), [
    (3.0, r"support=3.0 must be a pair \(lo, hi\)"), ((1.0,), "must be a pair"), ("ab", "must be a pair"),
    ((1.0, 1.0), r"support\[0\]=1 must be less than support\[1\]=1"), ((2.0, 1.0), "must be less than"),
    ((INFINITE, INFINITE), "must be less than"), ((np.nan, 1.0), r"support\[0\]=nan must not be NaN"),
    ((0.0, [1.0, 2.0, 3.0]), r"support\[1\] has shape \(3,\)"), 
    (("a", 1.0), r"support\[0\]='a' must be a number"),
    ((0.0, 1j), r"support\[1\]=1j must be a number"), ((-INFINITE, -INFINITE), "must be less than"),
    (([0.0, 0.0], [1.0, 0.0]), "in coordinate 1"), ((0.0, None), r"support\[1\]=None")])
def test_bad_supports_are_named(support, message):
    def plain(client, x, out):
        for i in range(len(x)):
            out[i] = x[i]

    with pytest.raises(ValueError, match=message):
        fs.Custom(plain, 1, 2, support=support)


def test_trial_points_lie_within():
    from fedsim.problems.custom.trial import points_to_try

    usual = points_to_try(3, None)
    for low, high in ((0.0, INFINITE), (-INFINITE, -5.0), (0.0, 1e-6), (1e9, INFINITE), (-1e-3, 1e6),
                      (5.0, 6.0), (-0.5, 0.5), (-1e300, 1e300)):
        found = points_to_try(3, (np.full(3, low), np.full(3, high)))
        assert ((found > low) & (found < high)).all()
        kept = (usual > low + 1e-3) & (usual < high - 1e-3)
        assert (found[kept] == usual[kept]).all()
    mixed = points_to_try(3, (np.array([-INFINITE, 0.0, -INFINITE]), np.array([INFINITE, INFINITE, 0.0])))
    assert (mixed[:, 0] == usual[:, 0]).all() and (mixed[:, 1] > 0.0).all() and (mixed[:, 2] < 0.0).all()


@pytest.mark.parametrize("support", [(0.0, INFINITE), (0.0, 1e-6), (1e-9, 2e-9), (3.0, 3.001)])
def test_slopes_are_compared_close_to_an_edge_too(support):
    gamma(support=support)
    with pytest.raises(ValueError, match="gradient must be that of potential"):
        fs.Custom(slope, 1, data=(0, 3.0), support=support,
                  potential=lambda client, x, kind, shape: x - 1.999 * np.log(x))


def test_replicas_outside_are_counted_and_not_moved(run):
    assert run.outside.dtype == np.int64 and run.outside[0] == 0
    assert run.outside[-1] == (run.final < 0.0).sum() > 0
    free = run_of(gamma_without(), keep_final=True)  # the same numbers
    assert free.outside is None and (free.mean == run.mean).all() and (free.final == run.final).all()
    with pytest.warns(fs.OutsideWarning, match=r"of 300 replicas outside the support at round \d+") as caught:
        path = fs.sample_path(gamma(), fs.FALD(0.01), 60, seed=1, n_chains=300, start=[0.3])
    assert caught[0].filename == __file__
    assert ((path[:, :, 0] < 0.0).sum(axis=0) == run.outside[1:]).all()


def gamma_without():
    return fs.Custom(slope, 1, data=(0, 3.0))


def test_they_are_told_and_only_they(run):
    words = f"{run.outside.max():,} of 300 replicas outside the support at round"
    assert words in repr(run) and words in run.summary()
    frame, wide = run.to_frame(), run.to_frame(wide=True)
    assert frame[frame.kind == "outside"].value.tolist() == run.outside.tolist() == wide.outside.tolist()
    assert run.to_datatree()["run"]["outside"].values.tolist() == run.outside.tolist()
    with pytest.warns(fs.OutsideWarning) as caught:
        fs.simulate(gamma(), fs.FALD(0.01), 60, 300, seed=1, start=[0.3])
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside = fs.simulate(gamma(), fs.FALD(0.0001), 20, 300, seed=1, start=[3.0])
    assert not inside.outside.any() and "outside" not in repr(inside) + inside.summary()
    assert inside.w2(gamma().density().gaussian()).shape == (21,)


def test_counts_are_the_same_however_the_work_is_cut(run, tmp_path):
    for number, options in enumerate(({"block_size": 64}, {"block_size": 128, "threads": 2}, {"threads": 1})):
        assert (run_of(gamma(), **options).outside == run.outside).all(), number
    shards = [run_of(gamma(), replicas=part, checkpoint=tmp_path).outside for part in fs.shards(300, 3)]
    kept = run_of(gamma(), replicas="kept", checkpoint=tmp_path)
    assert (kept.outside == run.outside).all() and (sum(shards) == run.outside).all()
    with pytest.raises(ValueError, match="belongs to another simulation"):
        run_of(gamma(support=(1e-9, INFINITE)), checkpoint=tmp_path)
    few = run_of(gamma(), record=[7, 30])
    assert few.outside.tolist() == run.outside[[0, 7, 30, 60]].tolist()
    few = run_of(gamma(), n_replicas=40, keep_final=True)  # whose last lanes repeat the last replica
    assert few.outside[-1] == (few.final < 0.0).sum() > 0


def test_saved_and_loaded(run, tmp_path):
    run.save(tmp_path / "run.npz")
    again = fs.load(tmp_path / "run.npz")
    assert (again.outside == run.outside).all() and repr(again) == repr(run)
    run.including_outside().save(tmp_path / "run.npz")
    assert fs.load(tmp_path / "run.npz").includes_outside
    assert (pickle.loads(pickle.dumps(run)).outside == run.outside).all()
    for wrong in ([-1] * 61, [301] * 61, [0] * 60, [0.5] * 61):
        with pytest.raises(ValueError, match="outside"):
            dataclasses.replace(run, outside=np.array(wrong))


def test_w2_refuses_them_unless_asked(run):
    target = gamma().density().gaussian()
    aimed = dataclasses.replace(run, target=target)
    quadratic = fs.Quadratic([1.0 / 3.0], [[3.0]])
    bound = theory.fa_ld.w2_recursion(theory.constants(quadratic, fs.FALD(0.01), start=[0.3]), fs.FALD(0.01),
                                      n_rounds=60)
    questions = [lambda one: one.w2(target), lambda one: one.w2_interval(), lambda one: one.w2_floor(),
                 lambda one: one.plot(), lambda one: theory.check(bound, one)]
    for ask in questions:
        with pytest.raises(ValueError, match=r"outside the support .* ask run.including_outside\(\)"):
            ask(aimed)
        ask(aimed.including_outside())
    free = run_of(gamma_without())
    assert (run.including_outside().w2(target) == free.w2(target)).all()
    assert run.including_outside().of == run.of
    assert "W2 counts them" in run.including_outside().summary()
    assert "W2" not in repr(aimed) and "W2" in repr(aimed.including_outside())


def test_every_client_of_a_network_is_counted(tmp_path):
    run = run_of(gamma(n_clients=2), fs.DESGLD(0.02, fs.network.complete(2)), keep_final=True)
    counts = np.array([run.outside, *(one.outside for one in run.clients)])
    assert (counts[1:, -1] > counts[0, -1]).all()  # clients are wider than their average
    assert counts[0, -1] == (run.final < 0.0).sum()
    run.save(tmp_path / "run.npz")
    loaded = fs.load(tmp_path / "run.npz").clients[1]
    assert (loaded.outside == counts[2]).all()
    with pytest.raises(ValueError, match="outside the support"):
        loaded.w2(fs.Gaussian([3.0], [3.0]))


def test_where_a_gradient_is_not_a_number_the_place_is_named():
    problem = gamma(kind=1)
    messages = []
    for options in ({}, {"block_size": 64}, {"threads": 2, "record": ()}):
        with pytest.raises(fs.DivergedError, match="not finite") as caught:
            fs.simulate(problem, fs.FALD(0.05), 500, 1000, seed=1, start=[0.5], **options)
        messages.append(str(caught.value))
    assert len(set(messages)) == 1
    words = "was outside support=(0, inf) a round before, where the gradient need not be defined"
    assert words in messages[0]


def test_starts_lie_within():
    for start, words in ((None, "start=the origin lies at the edge of support"),
                         ([-1.0], r"start=\[-1.0\] must lie within support=\(0, inf\)"),
                         (fs.Gaussian([-1.0], [1.0]), "must lie within")):
        for ask in (fs.simulate, fs.sample_path):
            with pytest.raises(ValueError, match=words):
                ask(gamma(), fs.FALD(0.01), 10, seed=1, start=start, **(
                    {"n_replicas": 64} if ask is fs.simulate else {}))
        with pytest.raises(ValueError, match=words):
            fs.validate(gamma(), fs.FALD(0.01), start)
    fs.validate(gamma(1.0), fs.FALD(0.01), [1.0])


def test_the_support_is_part_of_the_problem():
    assert gamma() == gamma(support=([0.0], [INFINITE])) == pickle.loads(pickle.dumps(gamma()))
    assert gamma() != gamma(support=(0.0, 50.0)) and gamma() != gamma_without()
    everywhere = fs.Custom(slope, 1, data=(0, 3.0), support=(-INFINITE, INFINITE))
    assert everywhere == gamma_without() and fingerprint(everywhere) == fingerprint(gamma_without())
    assert gamma().pooled().support == gamma().support
