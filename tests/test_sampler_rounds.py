"""Rounds of samplers of one's own that take turns and are drawn at random, and what rounds conserve."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sampler_zoo as zoo
from examples_of import make_problem

import fedsim as fs
import theory
from fedsim.samplers import clients, grad, mean, noise, rounds, sqrt, weights
from theory.exact import NoExactLaw, joint_law

TURNS = [np.array([[0.5, 0.5, 0.0], [0.2, 0.6, 0.2], [0.0, 0.3, 0.7]]), np.eye(3)[[1, 2, 0]]]
CHOSEN = fs.network.random([fs.network.path(3), fs.network.complete(3), np.eye(3)], [0.5, 0.2, 0.3])


@fs.sampler(follows="components")
def both(x, y, *, step_size, W, R):
    """Networks take turns, and another one is drawn."""
    y = R @ (W @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()) + 0.1 * y
    return y, 0.3 * x


@fs.sampler
def drawn_in_turns(x, s, *, step_size, W, clients):
    y = W @ (x + 0.2 * s) - step_size * grad(x) + sqrt(2 * step_size / weights()) * noise()
    return mean(y, drawn=clients), 0.5 * s + (y - W @ y) / 2


def over_paths(chances, n_rounds, law_of):
    """Mean and covariance of all clients at every round, over the joint laws of all sequences of draws."""
    first, second, total = 0.0, 0.0, 0.0
    for path in itertools.product(range(len(chances)), repeat=n_rounds):
        chance, law = float(np.prod([chances[k] for k in path])), law_of(list(path))
        points = law.mean.reshape(len(law.mean), -1)
        first, total = first + chance * points, total + chance
        second = second + chance * (law.cov + points[:, :, None] * points[:, None])
    assert total == pytest.approx(1.0, abs=1e-14)
    return first, second - first[:, :, None] * first[:, None]


def enumerated(problem, algorithm, n_rounds, start):
    """`both` on all sequences of drawn networks."""
    return over_paths(CHOSEN.chances, n_rounds, lambda path: joint_law(
        problem, both(step_size=algorithm.step_size, W=[TURNS[k % 2] for k in range(n_rounds)],
                      R=list(CHOSEN.matrices[path])), n_rounds, start=start, allow_unstable=True))


def difference():
    problem, start = make_problem(noise=0.2), [0.7, -0.4]
    algorithm = both(step_size=0.1, W=TURNS, R=CHOSEN)
    centre, cov = enumerated(problem, algorithm, 3, start)
    law = joint_law(problem, algorithm, 3, start=start, allow_unstable=True)
    whole = theory.exact_law(problem, algorithm, 3, start=start, allow_unstable=True)
    assert not law.is_gaussian and not whole.is_gaussian
    found = [np.abs(law.mean.reshape(centre.shape) - centre).max(), np.abs(law.cov - cov).max(),
             np.abs(whole.cov - law.average_cov).max()]
    found += [np.abs(one.cov - law.client_cov[:, c]).max() for c, one in enumerate(whole.clients)]
    return max(found)


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
def test_rounds_that_take_turns_and_are_drawn_have_the_moments_of_all_paths():
    assert difference() < 1e-12


def _no_roots(monkeypatch):
    right = rounds.Rounds.round
    monkeypatch.setattr(rounds.Rounds, "round", lambda self, number=0: right(self, number)._replace(
        spread=None, spread_shift=None))


def _first_turn_always(monkeypatch):
    right = rounds.Rounds.round
    monkeypatch.setattr(rounds.Rounds, "round", lambda self, number=0: right(
        self, 0 if number == 1 else number))


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
@pytest.mark.parametrize("mutant", [_no_roots, _first_turn_always])
def test_faults_are_seen(mutant, monkeypatch):
    problem, start = make_problem(noise=0.2), [0.7, -0.4]
    algorithm = both(step_size=0.1, W=TURNS, R=CHOSEN)
    centre, cov = enumerated(problem, algorithm, 3, start)
    fast = both(step_size=1.6, W=TURNS, R=CHOSEN)
    radius = fast._radius(problem)
    mutant(monkeypatch)
    assert abs(fast._radius(problem) - radius) > 1e-3
    law = joint_law(problem, algorithm, 3, start=start, allow_unstable=True)
    assert max(np.abs(law.mean.reshape(centre.shape) - centre).max(), np.abs(law.cov - cov).max()) > 1e-3


def growth(problem, algorithm, period):
    """How second moments grow a round, from a far start: the mean of the ratios of late ones."""
    far = 300 * period
    law = theory.exact_law(problem, algorithm, far, start=1e3 * np.ones(problem.dim), allow_unstable=True,
                           record=[far - 10 * period])
    late = [float(np.trace(cov) + point @ point)
            for point, cov in zip(law.mean[1:], law.cov[1:], strict=True)]
    return (late[1] / late[0]) ** (0.5 / (10 * period))


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
@pytest.mark.parametrize("structure", ["dense", "diagonal"])
@pytest.mark.parametrize("algorithm", [
    both(step_size=1.6, W=TURNS, R=CHOSEN),
    drawn_in_turns(step_size=0.7, W=[fs.network.path(3), fs.network.complete(3)],
                   clients=fs.Participation(1, True))], ids=lambda one: type(one).__name__)
def test_the_radius_is_the_growth_of_the_second_moment(algorithm, structure):
    problem = make_problem(structure, dim=2)
    assert growth(problem, algorithm, 2) > 1.01
    assert algorithm._radius(problem) == pytest.approx(growth(problem, algorithm, 2), rel=1e-10)


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
def test_stability_and_what_is_not_known():
    problem = make_problem()
    for algorithm in (both(step_size=0.1, W=TURNS, R=CHOSEN),
                      drawn_in_turns(step_size=0.05, W=[fs.network.path(3), fs.network.complete(3)],
                                     clients=fs.Participation(1, True))):
        limit = algorithm.stability(problem).max_step_size
        fields = algorithm._fields()
        assert type(algorithm)(**fields | {"step_size": 0.999 * limit})._radius(problem) < 1.0
        assert type(algorithm)(**fields | {"step_size": 1.001 * limit})._radius(problem) > 1.0
        with pytest.raises(NoExactLaw, match="take turns, so that no law"):
            theory.stationary_law(problem, algorithm)
        with pytest.raises(NoExactLaw, match="take turns and are drawn at random would be stepped"):
            theory.exact_law(problem, algorithm, 10**8, record=())


@fs.sampler
def scaffold(x, c, m, *, step_size, clients=None, sets=None):
    """The clients of a round send two things."""
    y = x - step_size * (grad(x) - c + m) + sqrt(2 * step_size / weights()) * noise()
    new = c - m + (x - y) / step_size
    if sets is not None:
        return mean(y, of=sets), 0.5 * new, mean(new, of=sets)
    return mean(y, drawn=clients), 0.5 * new, mean(new, drawn=clients)


def used_twice(name):
    """Largest difference from all paths, of samplers that use what is drawn twice in a round."""
    problem, options = make_problem(noise=0.2), {"start": [0.7, -0.4], "allow_unstable": True}
    if name == "extra":
        mine = zoo.extra_sgld(step_size=0.1, W=CHOSEN)
        centre, cov = over_paths(CHOSEN.chances, 3, lambda path: joint_law(
            problem, zoo.extra_sgld(step_size=0.1, W=list(CHOSEN.matrices[path])), 3, **options))
    else:
        mine = scaffold(step_size=0.05, clients=fs.Participation(1, True))
        centre, cov = over_paths(problem.weights, 3, lambda path: joint_law(
            problem, scaffold(step_size=0.05, sets=tuple((c,) for c in path)), 3, **options))
    law = joint_law(problem, mine, 3, **options)
    return max(np.abs(law.mean.reshape(centre.shape) - centre).max(), np.abs(law.cov - cov).max())


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
@pytest.mark.parametrize("name", ["extra", "scaffold"])
def test_one_draw_of_a_round_serves_all_uses(name, monkeypatch):
    assert used_twice(name) < 1e-12
    monkeypatch.setattr(rounds, "id", lambda of: next(fresh), raising=False)  # each use draws anew
    fresh = itertools.count()
    assert used_twice(name) > 1e-4


def test_conserved_sums_are_those_of_all_groups():
    """Against a singular value decomposition of all groups at once."""
    rng = np.random.default_rng(2)
    kept = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    both_, first = np.eye(6) - kept @ kept.T, np.eye(6) - kept[:, :1] @ kept[:, :1].T
    one = np.stack([both_ @ rng.standard_normal((6, 6)), first @ rng.standard_normal((6, 6))])
    noise_ = np.stack([both_, first])
    for changes, columns in ((one, 1), (one[:1], 2), (one[::-1], 1), (1e-11 * one, 6),
                             (rng.standard_normal((2, 6, 6)), 0), (1e-6 * rng.standard_normal((2, 6, 6)), 0),
                             (1e200 * rng.standard_normal((2, 6, 6)), 0), (0.0 * one, 6)):
        found = rounds.conserved(clients.Round(changes, np.zeros(changes.shape[:2]), 0.0 * changes))
        U, values, _ = np.linalg.svd(changes.transpose(1, 0, 2).reshape(6, -1))
        size = max(1.0, float(np.abs(changes).max()))
        plain = U[:, values <= rounds.CONSERVED * size]
        assert found.shape[1] == plain.shape[1] == columns
        assert np.abs(found @ found.T - plain @ plain.T).max() < 1e-9
    moved = rounds.conserved(clients.Round(one[:1], np.zeros((1, 6)), noise_[1:]))
    assert moved.shape[1] == 1 and abs(float(moved[:, 0] @ kept[:, 0])) == pytest.approx(1.0)
