"""Paired rows and columns that carry labels: brought into one order, or refused by name; everywhere."""

from __future__ import annotations

import collections
import inspect
import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from test_examples import public

import fedsim as fs
import theory
from fedsim.settings.alignment import aligned, numbered, square
from theory import fa_hmc, fa_ld, rates, stale

RNG = np.random.default_rng(11)
N, D, ROWS = 4, 3, 12
X, COUNTS, CLASSES = RNG.normal(size=(ROWS, D)), RNG.integers(0, 2, ROWS), RNG.permutation(ROWS) % 3
HOLDERS = RNG.permutation(ROWS) % N
SPD = np.eye(D) + 0.1 * np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0.0]])
SPDS = np.stack([SPD, 2.0 * SPD, np.diag([1.0, 2.0, 3.0]), 3.0 * SPD - np.eye(D)])
CENTRES, SHARES = RNG.normal(size=(N, D)), np.array([0.1, 0.2, 0.3, 0.4])
LINKS = np.array([[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0.0]])
MIXING = fs.network.metropolis(LINKS)
CHANCES = RNG.dirichlet(np.ones(3), ROWS)
POSITIVE = np.sort(RNG.uniform(1.0, 9.0, ROWS))
PAIR = fs.Quadratic([1.0, 3.0], [[0.0] * D, [1.0] * D])
UPDATES = fs.FAHMC(0.1, 2), fs.FALD(0.05, 2)
PRIVATE = {"sensitivity": 1.0, "batch_fraction": 0.1, "delta0": 1e-6, "delta1": 0.0, "delta2": 0.0,
           "local_steps": 1, "n_rounds": 9}


class Case(NamedTuple):
    """A callable, and arguments: name -> (array, a letter for each axis); axes of one letter are paired."""

    call: Any
    given: dict[str, tuple[Any, str]]
    result: Any = lambda made: made


def of_constants(theorem, algorithm):
    return lambda **given: theorem(theory.constants(PAIR, algorithm), algorithm, n_rounds=2, **given).value


def known(**given):
    return theory.Constants(dim=D, strong_convexity=1.0, smoothness=2.0, n_clients=N, **given)


def regression(kind):
    more = {"noise_std": 1.0} if kind is fs.LinearRegression else {}
    return lambda **given: kind(**given, prior_variance=2.0, **more)


SAMPLES = {"features": (X, "n."), "labels": (COUNTS, "n"), "clients": (HOLDERS, "n")}
SCORED = {"probabilities": (CHANCES, "m."), "labels": (CLASSES, "m")}
MOVED = {"point": (X[0], "d"), "momentum": (X[1], "d"), "gradient": (X[2], "d")}
GRADIENTS = SHARES @ CENTRES - CENTRES
CASES = {
    "fedsim.LinearRegression": Case(regression(fs.LinearRegression), {
        "features": (X, "n."), "targets": (POSITIVE, "n"), "clients": (HOLDERS, "n")}),
    "fedsim.LogisticRegression": Case(regression(fs.LogisticRegression), SAMPLES),
    "fedsim.SoftmaxRegression": Case(regression(fs.SoftmaxRegression), {**SAMPLES, "labels": (CLASSES, "n")}),
    "fedsim.Quadratic": Case(fs.Quadratic, {
        "minimizers": (CENTRES, "Nd"), "hessians": (POSITIVE.reshape(N, D), "Nd"), "weights": (SHARES, "N"),
        "gradient_noise": (SPDS, ".dd")}),
    "fedsim.Quadratic, dense": Case(fs.Quadratic, {
        "minimizers": (CENTRES, "Nd"), "hessians": (SPDS, ".dd"), "weights": (SHARES, "N")}),
    "fedsim.Quadratic.from_components": Case(fs.Quadratic.from_components, {
        "minimizers": (CENTRES, "Nd"), "hessians": (SPDS, ".dd"), "gradient_noise": (SPDS, ".dd")}),
    "fedsim.Gaussian": Case(fs.Gaussian, {"mean": (X[0], "d"), "cov": (SPD, "dd")},
                            lambda made: np.vstack([made.mean, made.cov])),
    "fedsim.Law": Case(lambda **given: fs.Law(**given), {
        "rounds": (np.arange(N), "n"), "mean": (CENTRES, "nd"), "cov": (SPDS, ".dd")},
        lambda made: np.concatenate([made.rounds, made.mean.ravel(), made.cov.ravel()])),
    "fedsim.Law, variances": Case(lambda **given: fs.Law(**given), {
        "rounds": (np.arange(N), "n"), "mean": (CENTRES, "nd"), "cov": (CENTRES**2, "nd")},
        lambda made: np.concatenate([made.rounds, made.mean.ravel(), made.cov.ravel()])),
    "theory.Bound": Case(lambda value, rounds, terms: theory.Bound(
        value, rounds, {"a": terms}, (), "w2", "upper", "by hand"), {
        "value": (POSITIVE, "n"), "rounds": (np.arange(ROWS), "n"), "terms": (POSITIVE, "n")},
        lambda made: [made.value, made.rounds, made.terms["a"]]),
    "theory.stale.AverageLaw": Case(lambda **given: stale.AverageLaw(**given, truth=0.0), {
        "lengths": (np.arange(ROWS), "n"), "mean": (POSITIVE, "n"), "variance": (POSITIVE[::-1], "n")},
        lambda made: [made.lengths, made.mean, made.variance]),
    "fedsim.DESGHMC": Case(lambda **given: fs.DESGHMC(0.1, 2.0, **given), {
        "mixing": (MIXING, "NN"), "start_velocity": (CENTRES, "N.")}),
    "fedsim.DESGLD": Case(lambda mixing: fs.DESGLD(0.1, mixing), {"mixing": (MIXING, "NN")}),
    **{f"fedsim.estimators.{name}": Case(getattr(fs.estimators, name), SCORED)
       for name in ("accuracy", "brier_score", "calibration_error", "log_loss")},
    "fedsim.estimators.predictive": Case(fs.estimators.predictive, {
        "probabilities": (np.stack([CHANCES, CHANCES[::-1]]), ".mC")}),
    "fedsim.estimators.combine": Case(lambda averages: fs.estimators.combine(averages, [1.0, 2.0]), {
        "averages": (X.T[:2], ".n")}),
    "fedsim.network.metropolis": Case(fs.network.metropolis, {"graph": (LINKS, "NN")}),
    "fedsim.network.random_pairs": Case(fs.network.random_pairs, {"mixing": (MIXING, "NN")}),
    "fedsim.network.check_mixing": Case(fs.network.check_mixing, {"mixing": (MIXING, "NN")}),
    "fedsim.papers.fa_ld_simulation": Case(lambda covariance: fs.papers.fa_ld_simulation(
        n_clients=2, covariance=covariance), {"covariance": (SPD, "dd")}),
    "fedsim.papers.fa_hmc_two_groups": Case(lambda **given: fs.papers.fa_hmc_two_groups(2, **given), {
        "curvatures": (POSITIVE[:2], "N"), "minimizers": (CENTRES[0, :2], "N")}),
    "fedsim.distance.w2_gaussian": Case(fs.distance.w2_gaussian, {
        "mean1": (X[0], "d"), "cov1": (SPD, "dd"), "mean2": (X[1], "d"), "cov2": (SPDS[2], "dd")}),
    "fedsim.distance.w2_gaussian, rows": Case(fs.distance.w2_gaussian, {
        "mean1": (X, ".d"), "cov1": (X**2, ".d"), "mean2": (X + 1.0, ".d"), "cov2": (1.0 + X**2, ".d")}),
    "fedsim.distance.w1_normal": Case(fs.distance.w1_normal, {
        "mean1": (X, "nd"), "sd1": (X**2, "nd"), "mean2": (X + 1.0, "nd"), "sd2": (1.0 + X**2, "nd")}),
    "fedsim.distance.w1_samples": Case(fs.distance.w1_samples, {
        "first": (X, ".d"), "second": (2 * X[:5], ".d")}),
    "fedsim.distance.w2_floor": Case(lambda **given: fs.distance.w2_floor(n_replicas=9, **given), {
        "cov": (SPD, "dd"), "reference": (SPDS[2], "dd")}),
    "theory.Constants": Case(known, {
        "weights": (SHARES, "N"), "gradient_at_minimizer": (GRADIENTS, "Nd"),
        "gradient_noise_traces": (SHARES, "N"), "gaps_at_origin": (SHARES, "N"), "minimizer": (X[0], "d")},
        lambda made: np.concatenate([made.weights, made.gradient_noise_traces, made.gaps_at_origin,
                                     made.minimizer, made.gradient_at_minimizer.ravel()])),
    "theory.rates.fit_affine": Case(rates.fit_affine, {"x": (POSITIVE, "n"), "y": (POSITIVE[::-1], "n")}),
    "theory.rates.fit_root_log": Case(rates.fit_root_log, {"x": (POSITIVE, "n"), "y": (POSITIVE[::-1], "n")}),
    "theory.rates.loglog_slope": Case(rates.loglog_slope, {"x": (POSITIVE, "n"), "y": (POSITIVE[::-1], "n")}),
    "theory.rates.fit_rate": Case(rates.fit_rate, {
        "x": (POSITIVE, "n"), "rate": (POSITIVE**2, "n"), "measured": (POSITIVE[::-1], "n")},
        lambda made: [made.constant, made.spread, made.drift]),
    "theory.fa_ld.contraction_bound": Case(of_constants(fa_ld.contraction_bound, UPDATES[1]), {
        "points": (CENTRES[:2], "Nd"), "others": (CENTRES[2:], "Nd")}),
    "theory.fa_hmc.displacement_bound": Case(of_constants(fa_hmc.displacement_bound, UPDATES[0]), MOVED),
    "theory.fa_hmc.gradient_displacement_bound": Case(
        of_constants(fa_hmc.gradient_displacement_bound, UPDATES[0]), MOVED),
    "theory.fa_hmc.flow_distance_bound": Case(of_constants(fa_hmc.flow_distance_bound, UPDATES[0]), {
        "position_gap": (X[0], "d"), "momentum_gap": (X[1], "d")}),
    "theory.stale.chain_terms": Case(lambda **given: stale.chain_terms("mse", tau=2, **given), {
        "lengths": (POSITIVE, "S"), "step_sizes": (POSITIVE[::-1], "S")}),
    **{f"theory.stale.chains_{what}_rate": Case(
        of_constants(getattr(stale, f"chains_{what}_rate"), fs.StaleSGLD(1e-3, 2)), {
            "step_sizes": (1e-3 * POSITIVE, "S"), "speeds": (POSITIVE[::-1], "S")})
       for what in ("bias", "mse", "variance")},
    "theory.stale.first_reaching": Case(lambda **given: stale.first_reaching(precision=2.0, **given), {
        "lengths": (POSITIVE, "n"), "values": (POSITIVE[::-1], "n")}),
    "theory.stale.fit_constants": Case(lambda measured, **terms: stale.fit_constants(terms, measured), {
        "measured": (POSITIVE[::-1], "n"), "a": (POSITIVE, "n"), "b": (POSITIVE**2, "n")},
        lambda made: list(made.constants.values())),
    "theory.privacy.PrivacySetting": Case(lambda **given: theory.privacy.PrivacySetting(
        **PRIVATE, **given), {"weights": (SHARES, "N"), "client_sizes": (np.arange(N) + 5.0, "N")},
        lambda made: np.concatenate([made.weights, made.client_sizes])),
}
ALONE = {
    "fedsim.Custom": "by the clients' numbers, below",
    "theory.constants": "start is of one point per client or of one, and nothing else",
    "theory.de_sgld.least_iterations": "mixing, which check_mixing reads",
    "theory.de_sgld.step_size_limit": "mixing, which check_mixing reads",
    "theory.de_sghmc.largest_momentum": "mixing, which check_mixing reads",
    "fedsim.Run": "as `simulate` makes it; final and averages are aligned, and checked against each other",
    "theory.exact.JointLaw": "as `joint_law` makes it", "theory.rates.RateFit": "as `fit_rate` makes it",
    "theory.de_sgld.Connectivity": "as it is measured", "theory.fa_hmc.Setting": "as `setting` makes it",
    "theory.stale.TermFit": "as `fit_constants` makes it",
    "theory.stale.time_speedup": "the times of two runs, not paired",
    "theory.testing.BiasOrder": "as `bias_order` makes it", "theory.testing.Probe": "as `probe` makes it",
    "theory.testing.probe": "states of somebody's kernel, in its own order",
    "theory.testing.invariance": "states of somebody's kernel, in its own order",
    "theory.testing.UpdateRule": "states of somebody's program, in its own order",
}


def labelled(value, axes, orders):
    """The array with labels of its letters, in another order where `orders` has one for an axis."""
    names = [None if letter == "." else [f"{letter}{i}" for i in range(size)]
             for letter, size in zip(axes, value.shape, strict=True)]
    if value.ndim == 3 or (value.ndim == 2 and axes[0] == "." and len(value) == 2):  # entries of a list
        return [labelled(entry, axes[1:], {axis - 1: order for axis, order in orders.items()
                                           if axis and i % 2}) for i, entry in enumerate(value)]
    if value.ndim == 1:
        made = pd.Series(value, index=names[0])
        return made.iloc[orders.get(0, slice(None))]
    made = pd.DataFrame(value, index=names[0], columns=names[1])
    return made.iloc[orders.get(0, slice(None)), orders.get(1, slice(None))]


def same(one, other):
    if isinstance(one, (np.ndarray, list, tuple)):
        return all(np.array_equal(a, b) if not isinstance(a, rates.Slope) else a == b
                   for a, b in zip(one, other, strict=True))
    return bool(one == other)


def changes(case):
    """(argument, axis) of every labelled axis but the first of its letter."""
    seen = set()
    for name, (value, axes) in case.given.items():
        listed = value.ndim == 3 or (value.ndim == 2 and axes[0] == "." and len(value) == 2)
        for axis, letter in enumerate(axes):
            if letter != "." and (letter in seen or listed):
                yield name, axis
            seen.add(letter)


def made(case, orders=None, **replaced):
    given = {name: labelled(value, axes, (orders or {}).get(name, {}))
             for name, (value, axes) in case.given.items()}
    return case.result(case.call(**given | replaced))


@pytest.mark.parametrize("name", CASES)
def test_other_orders_are_the_same_object_and_other_labels_are_refused(name):
    case, rng = CASES[name], np.random.default_rng(3)
    plain = case.result(case.call(**{key: value for key, (value, _) in case.given.items()}))
    assert same(made(case), plain)
    everywhere: dict[str, Any] = collections.defaultdict(dict)
    tried = 0
    for argument, axis in changes(case):
        value, axes = case.given[argument]
        order = np.roll(rng.permutation(value.shape[axis]), 1)
        while (order == np.arange(len(order))).all():
            order = rng.permutation(len(order))
        everywhere[argument][axis] = order
        assert same(made(case, {argument: {axis: order}}), plain)
        assert same(made(case, {argument: {axis: order}}), made(case))
        frame = labelled(value, axes, {})
        part, along = (frame[-1], axis - 1) if isinstance(frame, list) else (frame, axis)
        wrong = part.rename(**{("index", "columns")[along]: {f"{axes[axis]}1": "another"}})
        wrong = [*frame[:-1], wrong] if isinstance(frame, list) else wrong
        words = rf"(index|columns) of (terms\['|){argument}\S* has no '{axes[axis]}1'"
        with pytest.raises(ValueError, match=words):
            made(case, **{argument: wrong})
        tried += 1
    assert tried and same(made(case, everywhere), plain)


def shapes(function):
    """Letters of the shapes that a docstring gives: letter -> the arguments and axes that have it."""
    words = re.search(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)",
                      inspect.getdoc(function) or "", re.MULTILINE | re.DOTALL)
    found = collections.defaultdict(set)
    for names, kind in re.findall(r"^(\w[\w, ]*) : (.*)$", words[1] if words else "",
                                  re.MULTILINE):
        for shape in re.findall(r"\(([^()]*)\)", kind):
            for axis, letter in enumerate(part.strip() for part in shape.split(",")):
                if re.fullmatch(r"[A-Za-z]", letter):
                    found[letter] |= {(name, axis) for name in names.split(", ")}
    return {letter: where for letter, where in found.items() if len(where) > 1}


def candidates():
    """What users call, and the methods that make another object."""
    found = dict(public())
    found |= {f"fedsim.distance.{name}": member for name, member in vars(fs.distance).items()
              if inspect.isfunction(member) and name[0] != "_"}
    for name, member in list(found.items()):
        if inspect.isclass(member):
            found |= {f"{name}.{key}": getattr(member, key) for key, part in vars(member).items()
                      if isinstance(part, classmethod)}
    return found


def test_all_that_is_paired_is_tried():
    """By the shapes in the docstrings: two axes of one length are paired, and stand in the table."""
    paired = {name for name, member in candidates().items() if shapes(member)}
    tried = {name.partition(",")[0] for name in CASES}
    assert paired - tried - set(ALONE) == set()
    assert set(ALONE) <= paired and len(paired) > 30
    for name in paired & tried:
        letters = {argument for case, (_, given, _) in CASES.items() if case.partition(",")[0] == name
                   for argument in given}
        asked = {argument for where in shapes(candidates()[name]).values() for argument, _ in where}
        assert asked <= letters | {"weights", "hessians"} or name == "theory.stale.fit_constants", name


def test_regressions_take_weights_by_the_clients_numbers():
    """As `value_counts` gives them: in the order of their size."""
    held = pd.Series(np.repeat([0, 1, 2], (2, 7, 3)))
    weights = held.value_counts(normalize=True)
    assert weights.index.tolist() == [1, 2, 0]
    for kind in (fs.LinearRegression, fs.LogisticRegression, fs.SoftmaxRegression):
        make = regression(kind)
        target = {"targets" if kind is fs.LinearRegression else "labels": CLASSES % 2}
        assert make(features=X, clients=held, weights=weights, **target) == make(
            features=X, clients=held, **target)
        with pytest.raises(ValueError, match="the index of weights has 'a'; it must be the clients' numbers"):
            make(features=X, clients=held, weights=pd.Series([0.2, 0.3, 0.5], index=list("abc")), **target)


def pull(client, x, centres, sizes):
    return x - centres[client] * sizes[client]


def test_what_a_function_of_ones_own_is_given():
    """Weights by the clients' numbers; data with the same labels in one order, others as they are."""
    centres, sizes = pd.Series([1.0, 2.0], index=["a", "b"]), pd.Series([4.0, 3.0], index=["b", "a"])
    one = fs.Custom(pull, 2, data=(centres, sizes), weights=pd.Series([0.3, 0.7], index=[1, 0]))
    assert one.data[1].tolist() == [3.0, 4.0] and one.weights.tolist() == [0.7, 0.3]
    other = fs.Custom(pull, 2, data=(centres, pd.Series([4.0, 3.0])))
    assert other.data[1].tolist() == [4.0, 3.0]
    with pytest.raises(ValueError, match="the index of weights has 5"):
        fs.Custom(pull, 2, data=(centres, sizes), weights=pd.Series([0.3, 0.7], index=[5, 0]))


def test_labels_that_occur_twice():
    """In one order they are no question; in another nobody knows which is which."""
    x, y = pd.Series([1, 2, 3], index=list("aab")), pd.Series([4, 5, 6], index=list("aba"))
    assert aligned(("x", x, 0), ("y", y.set_axis(x.index), 0))[1].tolist() == [4, 5, 6]
    for one, other in ((x, y), (y, y.set_axis(list("abc"))), (y.set_axis(list("abc")), y)):
        with pytest.raises(ValueError, match=r"the index of y differs from the index of x, and .* once"):
            aligned(("x", one, 0), ("y", other, 0))


def test_what_has_no_labels_goes_by_position():
    frame, order = pd.DataFrame(X, index=RNG.permutation(ROWS)), np.arange(ROWS)[::-1]
    plain = fs.LogisticRegression(X, COUNTS, HOLDERS, prior_variance=1.0)
    assert fs.LogisticRegression(frame, COUNTS, HOLDERS.tolist(), prior_variance=1.0) == plain
    assert fs.LogisticRegression(frame.iloc[order].to_numpy(), pd.Series(COUNTS).iloc[order].to_numpy(),
                                 HOLDERS[order], prior_variance=1.0) != plain
    labels, holders = pd.Series(COUNTS, frame.index), pd.Series(HOLDERS, frame.index)
    assert fs.LogisticRegression(frame.iloc[order], labels, holders, prior_variance=1.0) == (
        fs.LogisticRegression(X[order], COUNTS[order], HOLDERS[order], prior_variance=1.0))
    longer = pd.Series(np.append(COUNTS, 1))
    with pytest.raises(ValueError, match="the index of features has no 12, which the index of labels has"):
        fs.LogisticRegression(pd.DataFrame(X), longer, HOLDERS, prior_variance=1.0)


def test_squares_with_labels_on_one_side_alone():
    """A table whose columns are named and whose rows are not is a table by position; others are refused."""
    named = pd.DataFrame(LINKS, columns=list("abcd"))
    assert (fs.network.metropolis(named) == MIXING).all() and square("graph", named) is named
    assert square("x", [1.0, 2.0]) == [1.0, 2.0] and numbered("x", [1.0, 2.0]) == [1.0, 2.0]
    with pytest.raises(ValueError, match="the columns of mixing has no 'b', which the index of mixing has"):
        fs.network.check_mixing(pd.DataFrame(MIXING, index=list("abcd"), columns=list("aefg")))


@pytest.mark.parametrize("dtype", [bool, "boolean", int, "Int64", float, "category"])
def test_labels_of_every_type_are_paired(dtype):
    frame, labels = pd.DataFrame(X), pd.Series(COUNTS).astype("int64")
    given = labels.astype(bool).astype(dtype) if dtype == "boolean" else labels.astype(dtype)
    plain = fs.LogisticRegression(X, COUNTS, HOLDERS, prior_variance=1.0)
    order = np.arange(ROWS)[::-1]
    assert fs.LogisticRegression(frame, given.iloc[order], HOLDERS, prior_variance=1.0) == plain


def test_rows_given_one_by_one_have_one_order_of_columns():
    rows = [pd.Series(row, index=list("abc")) for row in X]
    turned = [rows[0], *(row[["c", "a", "b"]] for row in rows[1:])]
    one, other = (fs.LogisticRegression(given, COUNTS, HOLDERS, prior_variance=1.0)
                  for given in (rows, turned))
    assert one == other
