"""What a careless checker of contraction certificates accepts: each is refused, in words."""

import json
import sys
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sampler_zoo import diging_sgld, extra_sgld

import fedsim as fs
import theory
from fedsim.samplers import grad, noise, past, sqrt
from theory.all_clients import ContractionCertificate, NotProved
from theory.all_clients.inequality import Kept, kept, mode_tables, refuse_kept
from theory.all_clients.spectra import affine, components, eigenvalues, exact

RING = fs.network.ring(10)


def known(n_clients=10, m=1.0, L=4.0, convention="components"):
    return theory.Constants(dim=1, strong_convexity=m, smoothness=L, n_clients=n_clients,
                            convention=convention)


@pytest.fixture(scope="module")
def extra():
    return theory.certify(extra_sgld(step_size=0.05, W=RING), known())


def test_clients_that_never_meet_have_no_certificate():
    """Otherwise a rate of .95 would be proved of two clients who never speak, and far from the target."""
    for W in (np.eye(2), fs.network.disconnected(6)):
        with pytest.raises(NotProved, match="groups of clients that never meet"):
            theory.certify(extra_sgld(step_size=0.05, W=W), known(len(W)))


@fs.sampler(follows="components")
def mixed_twice(x, *, step_size, W):
    return 1.3 * x - 0.3 * (W @ (W @ x)) - step_size * grad(x) + sqrt(2 * step_size) * noise()


def test_two_eigenvalues_do_not_prove_what_lies_between_where_a_round_mixes_twice():
    """At w = 1 and -1 it is DE-SGLD without a network; at w = 0 it grows by 1.28."""
    with pytest.raises(NotProved, match="products of 2 mixing matrices"):
        theory.certify(mixed_twice(step_size=0.02, W=RING), known(), eigenvalues=(-1.0, 0.9))
    with pytest.raises(NotProved, match=r"does not contract .* 1\.2"):
        theory.certify(mixed_twice(step_size=0.02, W=RING), known())
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = theory.certify(mixed_twice(step_size=0.02, W=swap), known(2))
    assert found.value == pytest.approx(0.98, abs=1e-5)


@fs.sampler(follows="components")
def two_networks(x, s, *, step_size, W, V):
    return V @ x - s - step_size * grad(x) + sqrt(2 * step_size) * noise(), s + (x - W @ x) / 2


def test_each_matrix_has_its_own_eigenvalues():
    V = 1.5 * np.eye(10) - 0.5 * RING

    @fs.sampler(follows="components")
    def steep(x, *, step_size, V):
        return V @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()

    with pytest.raises(NotProved, match=r"does not contract .* 1\.6"):
        theory.certify(steep(step_size=0.02, V=V), known())
    with pytest.raises(NotProved, match="does not contract"):
        theory.certify(two_networks(step_size=0.02, W=RING, V=V), known())
    half = theory.certify(two_networks(step_size=0.05, W=RING, V=0.5 * (np.eye(10) + RING)), known())
    lazy = 0.5 * (np.eye(10) + RING)
    like = theory.certify(two_networks(step_size=0.05, W=2 * lazy - np.eye(10), V=lazy), known())
    assert half.value == pytest.approx(like.value, abs=1e-6)
    with pytest.raises(NotProved, match=r"a I \+ b W"):
        theory.certify(two_networks(step_size=0.05, W=fs.network.ring(13), V=fs.network.complete(13)),
                       known(13))
    a, b = affine(1.25 * np.eye(10) - 0.25 * RING, exact(RING))
    assert (a, b) == (Fraction(5, 4), Fraction(-1, 4))


@fs.sampler(follows="components")
def almost_conserved(x, s, *, step_size, W):
    return (W @ x - step_size * (grad(x) + s) + sqrt(2 * step_size) * noise(),
            s + (0.1 * x + 0.2 * x - 0.3 * x))


def test_what_is_almost_conserved_is_not(extra):
    with pytest.raises(NotProved):
        theory.certify(almost_conserved(step_size=0.05, W=RING), known())
    ones = extra.modes[0]
    assert ones.kept.conserved == [[0, 1]] and extra.starts == ("the weighted sum over clients of s",)
    near = [Fraction(1, 10**9), Fraction(1)]
    bent = Kept([near], [[Fraction(1), -near[0]]])
    tables = mode_tables(extra.rounds.consensus, None)
    with pytest.raises(NotProved, match="not conserved by the round"):
        refuse_kept(tables, bent)
    with pytest.raises(NotProved, match="not conserved"):
        replace(extra, modes=(ones._replace(kept=bent), *extra.modes[1:])).verify()
    for wrong, told in ((Kept([[Fraction(0), Fraction(1)]], [[Fraction(1), Fraction(1)]]), "not orthogonal"),
                        (Kept([[Fraction(0), Fraction(1)]], []), "the basis has 0 directions"),
                        (Kept([[Fraction(0)] * 2] * 2, []), "conserved quantities are 0 there are 2"),
                        (Kept([[Fraction(0), Fraction(x)] for x in (1, 2)], []), "are 0 there are 1"),
                        (Kept([], [[Fraction(1), Fraction(0)]]), "the basis has 1 directions")):
        with pytest.raises(NotProved, match=told):
            refuse_kept(tables, wrong)
    assert kept(tables) == ones.kept


def test_a_rate_below_the_truth_is_refused(extra):
    for rate in ("0.9499", "0.94999", "0.949999"):
        with pytest.raises(NotProved, match="the inequality does not hold"):
            replace(extra, rate=Fraction(rate)).verify()
    for rate, told in ((Fraction(1), "between 0 and 1"), (Fraction(-1, 2), "between 0 and 1")):
        with pytest.raises(NotProved, match=told):
            replace(extra, rate=rate).verify()
    wider = replace(extra, curvatures=((Fraction(99, 100), Fraction(4)),) * 10)
    with pytest.raises(NotProved, match="does not hold"):
        wider.verify()
    with pytest.raises(NotProved, match="does not hold"):
        replace(extra, curvatures=((Fraction(1), Fraction(60)),) * 10).verify()


def leaves(value, path=()):
    """Places of all numbers in words within nested lists and dicts."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from leaves(one, (*path, i))
    elif isinstance(value, str) and path[0] not in ("kind", "name") and "parts" not in path:
        yield path, value


def changed(plain, path, value):
    made = json.loads(json.dumps(plain))
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return ContractionCertificate.from_json(json.dumps(made))


def test_a_certificate_with_one_changed_number_is_refused(extra):
    """Every number of the file, made a half larger, and with the other sign."""
    algorithm, plain = extra_sgld(step_size=0.05, W=RING), json.loads(extra.to_json())
    survivors = []
    places = list(leaves(plain))
    for path, value in places:
        for factor in (Fraction(3, 2), Fraction(-1)):
            new = factor * Fraction(value) or Fraction(1, 7)
            if new == Fraction(value) or path[0] == "weights":
                continue
            try:
                changed(plain, path, str(new)).verify(algorithm)
            except NotProved:
                continue
            survivors.append((path, factor))
    # a larger radius of an eigenvalue, multiples of a basis, and a larger rate are as true as before
    for path, factor in survivors:
        assert (path[0] == "rate" and factor > 0) or (path[0] == "modes" and (
            path[2] in ("basis", "conserved") or path[2:] == ("eigenvalue", 1))), path
    assert len(places) > 80 and len(survivors) < 0.3 * len(places)


def test_a_network_with_other_eigenvalues_is_refused(extra):
    with pytest.raises(NotProved, match="no inequality"):
        replace(extra, modes=extra.modes[:3] + extra.modes[4:]).verify()
    with pytest.raises(NotProved, match="no inequality"):
        replace(extra, rounds=extra.rounds._replace(network=exact(fs.network.path(10)))).verify()
    with pytest.raises(NotProved, match="that of ones"):
        replace(extra, modes=extra.modes[1:]).verify()
    with pytest.raises(NotProved, match="not the one of this certificate"):
        extra.verify(extra_sgld(step_size=0.06, W=RING))
    with pytest.raises(NotProved, match="not the one of this certificate"):
        extra.verify(diging_sgld(step_size=0.05, W=RING))


@pytest.mark.parametrize("n", (2, 5, 12))
def test_eigenvalues_lie_where_they_are_said_to(n):
    rng = np.random.default_rng(n)
    weights = rng.uniform(0.0, 1.0, (n, n)) * (rng.uniform(size=(n, n)) < 0.7) + np.eye(n, k=1)
    W = np.triu(weights, 1) / (2 * n)
    W = W + W.T
    W += np.diag(1.0 - W.sum(axis=1))
    rows = exact(W)
    assert all(sum(row) == 1 for row in rows) and components(rows) == 1
    with mpmath.workdps(40):
        true = sorted(mpmath.eigsy(mpmath.matrix([[mpmath.mpf(x.numerator) / x.denominator for x in row]
                                                  for row in rows]), eigvals_only=True))
        found = sorted(eigenvalues(rows))
        centres = [mpmath.mpf(one.centre.numerator) / one.centre.denominator for one in found]
        assert sum(one.multiplicity for one in found) == n - 1
        for value in true[:-1]:
            assert min(abs(value - centre) for centre in centres) < 1e-15 * n
        for one, centre in zip(found, centres, strict=True):
            assert one.radius < 1e-13 and min(abs(value - centre) for value in true[:-1]) <= float(one.radius)


def test_floats_that_propose_badly_make_wide_enclosures(monkeypatch):
    rows = exact(RING)
    sharp = max(one.radius for one in eigenvalues(rows))
    values, vectors = np.linalg.eigh(RING)
    monkeypatch.setattr(np.linalg, "eigh", lambda _: (values + 1e-6, vectors))
    with pytest.raises(NotProved, match="cannot be told from 1"):
        monkeypatch.setattr(np.linalg, "eigh", lambda _: (values - 0.2, vectors))
        eigenvalues(rows)
    monkeypatch.setattr(np.linalg, "eigh", lambda _: (values + 1e-6, vectors))
    assert max(one.radius for one in eigenvalues(rows)) > 1e-6 > 1e6 * sharp


@pytest.mark.parametrize("algorithm, constants, told", [
    (fs.DESGLD(fs.schedules.Harmonic(20.0, 0.1), RING), known(), "changes from round to round"),
    (fs.FALD(0.1, participation=fs.Participation(5, replace=True)), known(convention="federated"),
     "draws at random"),
    (fs.StaleSGLD(0.05, 40), known(1, convention="global"), "inequalities are written for fewer")])
def test_rounds_for_which_no_inequality_is_written(algorithm, constants, told):
    with pytest.raises(NotProved, match=told):
        theory.certify(algorithm, constants)


def test_bad_arguments_are_named(monkeypatch, extra):
    algorithm = fs.DESGLD(0.05, RING)
    for options, told in (({"what": "w2"}, "what"), ({"eigenvalues": (0.5, 0.2)}, "eigenvalues"),
                          ({"eigenvalues": (0.5, 1.0)}, "eigenvalues"),
                          ({"curvatures": [[1, 2]]}, "curvatures"),
                          ({"curvatures": [[0.5, 2]] * 10}, "curvatures")):
        with pytest.raises(ValueError, match=told):
            theory.certify(algorithm, known(), **options)
    with pytest.raises(ValueError, match="constants"):
        theory.certify(algorithm, 3)
    with pytest.raises(ValueError, match="convention='federated' of the constants must be 'components'"):
        theory.certify(algorithm, known(convention="federated"))
    with pytest.raises(ValueError, match="eigenvalues"):
        theory.certify(fs.FALD(0.1), known(convention="federated"), eigenvalues=(0.0, 0.5))
    for text in ("", "{}", "[1]", extra.to_json().replace("contraction certificate", "x"),
                 extra.to_json().replace('"multipliers"', '"others"')):
        with pytest.raises(ValueError, match="must be a certificate"):
            ContractionCertificate.from_json(text)
    monkeypatch.setitem(sys.modules, "clarabel", None)
    assert extra.verify()  # which needs no solver
    with pytest.raises(ImportError, match=r"fedsim-theory\[sdp\]"):
        theory.certify(algorithm, known())


@pytest.mark.parametrize("seed", [*range(25), *(pytest.param(seed, marks=pytest.mark.slow)
                                               for seed in range(25, 500))])
def test_random_samplers_have_no_rate_below_that_of_quadratics(seed):
    """Nor do they go unproved much above it where one gradient is taken at the state itself."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(0.0, 0.9), rng.uniform(-0.5, 0.5), rng.uniform(0.2, 1.0)
    twice, delayed = seed % 3 == 0, seed % 5 == 1

    @fs.sampler(follows="components")
    def random_sampler(x, v, *, step_size, W):
        at = past(x, 1) if delayed else x + b * v
        v = a * v - step_size * grad(at)
        if twice:
            v = v - 0.2 * step_size * grad(x + v)
        return W @ x + c * v + sqrt(step_size) * noise(), v

    m, L = 1.0, rng.uniform(1.5, 10.0)
    eta, n = rng.uniform(0.05, 0.8) / L, int(rng.integers(2, 9))
    W = 0.5 * (np.eye(n) + (fs.network.ring(n) if n > 2 else fs.network.complete(n)))
    try:
        found = theory.certify(random_sampler(step_size=eta, W=W), known(n, m, L))
    except NotProved as error:
        assert "contract" in str(error)
        return
    assert found.quadratic <= found.value < 1.0 and found.verify()
    problem = fs.Quadratic(np.full(n, rng.uniform(m, L)), np.zeros((n, 1)), np.full(n, 1 / n))
    radius = random_sampler(step_size=eta, W=W)._radius(
        fs.Quadratic.from_components(problem.diagonal_hessians, problem.minimizers))
    assert radius <= found.value + 1e-9
