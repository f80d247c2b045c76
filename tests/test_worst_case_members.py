"""Every problem that a search looks at is of the class that was asked for, for every theorem and quantity."""

import numpy as np
import pytest

import theory
from fedsim.settings.starts import start_moments
from theory import worst_case
from theory.worst_case import ProblemClass
from theory.worst_case.targets import maker_of

THEOREMS = {entry.id: entry for entry in theory.theorems()}
ALIKE = 1e-9
"""Relative: ends of ranges are met up to rounding."""
OPEN = {"step_size": 1e-3}
"""For quantities without a theorem, whose hypotheses would limit it."""
CLASSES = (
    {}, {"condition": 7.0, "minimizers": 2.0, "start": 3.0, "start_variance": 4.0, "gradient_noise": 5.0,
         "shared_noise": (0.2, 0.7)},
    {"minimizers": 0.01, "start": 500.0}, {"minimizers": 500.0, "start": 0.01}, {"minimizers": 0.0},
    {"start": 0.0, "start_variance": 0.0}, {"minimizers": 0.0, "start": 0.0},
    {"start": (2.0, 3.0), "condition": 2.0}, {"weights": "equal", "gradient_noise": (0.0, 0.3)},
    {"weights": (0.2, 0.6)}, {"heterogeneity": 3.0}, {"distance": (1.0, 2.0), "start": (0.5, 1.0)},
    {"curvature_range": (2.0, 5.0), "constants": "class"}, {"mixing": (0.1, 0.3)},
    {"gradient_noise": (0.2, 0.4)}, {"dim": 2}, {"dim": 2, "spectra": "ends"}, {"dim": 3, "n_clients": 4},
    {"local_steps": 3, "leapfrog_steps": (2, 4), "staleness": 1, "n_rounds": 2})


class Ranges:
    """What an instance has beside what its class allows."""

    def __init__(self, cls):
        self.cls, self.broken = cls, {}

    def within(self, name, values, low, high, scale=0.0):
        """`scale` is the size of the numbers whose difference the values are."""
        values = np.atleast_1d(np.asarray(values, dtype=float))
        room = ALIKE * max(abs(low), abs(high)) + 1e-14 * scale
        if values.min() < low - room or values.max() > high + room:
            self.broken[name] = f"{values.min():.6g} to {values.max():.6g} are not in [{low:g}, {high:g}]"

    def at_most(self, name, values, allowed, scale=0.0):
        """A number of the class is the largest size, a pair is a range."""
        if isinstance(allowed, tuple):
            self.within(name, values, *allowed, scale)
        else:
            self.within(name, np.abs(values), 0.0, allowed, scale)


def broken(cls, form, one):
    """The ranges of the class that an instance is outside of, each with its values."""
    ranges, problem = Ranges(cls), one.problem
    clients = 1 if form == "stale" else cls.n_clients
    follows = clients if form.startswith("de_") else 1
    ranges.within("n_clients", problem.n_clients, clients, clients)
    ranges.within("dim", problem.dim, cls.dim, cls.dim)
    hessians = problem.dense_hessians / follows
    values = np.linalg.eigvalsh(hessians)
    ranges.within("condition", values, *cls.curvatures)
    if cls.spectra == "ends":
        ranges.within("spectra, low", values[:, 0], cls.curvatures[0], cls.curvatures[0])
        ranges.within("spectra, high", values[:, 1], cls.curvatures[1], cls.curvatures[1])
    if not cls.rotated:
        ranges.within("rotated", hessians * (1.0 - np.eye(problem.dim)), 0.0, 0.0)
    if cls.weights == "equal":
        ranges.within("weights", problem.weights, 1.0 / clients, 1.0 / clients)
    elif cls.weights != "free" and not (follows > 1 or clients == 1 or form.endswith("scheme_ii")):
        ranges.within("weights", problem.weights[0], *cls.weights)
    _places(ranges, cls, one, hessians)
    noise = 0.0 if problem.gradient_noise is None else problem.gradient_noise / follows
    ranges.at_most("gradient_noise", noise, cls.gradient_noise)
    _algorithm(ranges, cls, one)
    return ranges.broken


def _places(ranges, cls, one, hessians):
    """Minimizers and start; the global minimizer, or the first client's, is where they are seen from."""
    problem = one.problem
    seen = problem.minimizers - problem.minimizers[0]
    if problem.n_clients > 1 and cls.distance is not None:
        ranges.within("distance", seen[1:], *cls.distance)
    elif cls.heterogeneity is None:
        ranges.at_most("minimizers", seen, cls.minimizers)
    else:
        gradients = np.einsum("cij,cj->ci", hessians, problem.minimizer - problem.minimizers)
        ranges.at_most("heterogeneity", np.linalg.norm(gradients, axis=1).max(), cls.heterogeneity)
    mean, cov = start_moments(one.start, problem.dim, problem.n_clients)
    origin = problem.minimizer if cls.distance is None else problem.minimizers[0]
    ranges.at_most("start", np.atleast_2d(mean).mean(axis=0) - origin, cls.start,
                   np.abs([*problem.minimizers.ravel(), *np.ravel(mean)]).max())
    ranges.at_most("start_variance", 0.0 if cov is None else np.diag(np.diag(cov) if cov.ndim == 1 else cov),
                   cls.start_variance)


def _algorithm(ranges, cls, one):
    algorithm = one.algorithm
    step = getattr(algorithm, "trajectory_length", None) or algorithm.step_size
    if cls.step_size is not None and isinstance(step, float):
        ranges.within("step_size", step, *cls.step_size)
    ranges.within("shared_noise", getattr(algorithm, "shared_noise", cls.shared_noise[0]), *cls.shared_noise)
    if cls.mixing is not None and hasattr(algorithm, "mixing"):
        ranges.within("mixing", algorithm.mixing[0, 1], *cls.mixing)
    numbers = {name: getattr(algorithm, name) for name in ("local_steps", "leapfrog_steps")
               if hasattr(algorithm, name)} | {"n_rounds": one.n_rounds}
    if hasattr(algorithm, "staleness"):
        numbers["staleness"] = algorithm.staleness
    for name, number in numbers.items():
        if number not in getattr(cls, name):
            ranges.broken[name] = f"{number} is not one of {getattr(cls, name)}"


def strangers(points_of, seed):
    """Instances outside of their class, and the aims that were asked; a class may be refused by an aim."""
    found, asked, rng = [], set(), np.random.default_rng(seed)
    for ranges in CLASSES:
        for aim in worst_case.aims():
            try:
                cls = ProblemClass(**ranges | (THEOREMS[aim].only if aim in THEOREMS else OPEN))
                maker, _ = maker_of(aim, cls, "ratio", None)
            except ValueError as refusal:
                assert any(name in str(refusal) for name in (*ranges, "n_clients")), (aim, str(refusal))
                continue
            asked.add(aim)
            for point in points_of(maker.size, rng):
                try:
                    one = maker(point)
                except ValueError:  # lost: a search does not look at it either
                    continue
                outside = broken(maker.cls, maker.form.name, one)
                if outside:
                    found.append((aim, ranges, outside))
    return found, asked


def one_point(size, rng):
    """A point whose coordinates are ends, or anywhere between."""
    return [np.where(rng.random(size) < 0.5, rng.integers(0, 2, size), rng.random(size))]


def test_every_problem_of_a_search_is_of_its_class():
    found, asked = strangers(one_point, 5)
    assert not found, found[:5]
    assert asked == set(worst_case.aims())


@pytest.mark.slow
def test_many_problems_of_searches_are_of_their_classes():
    found, _ = strangers(lambda size, rng: [np.zeros(size), np.ones(size), *rng.random((10, size))], 6)
    assert not found, found[:5]
