"""False certificates that were accepted once, or that a mutant of the checker accepts."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sampler_zoo import diging_sgld, extra_sgld

import fedsim as fs
import theory
from fedsim.samplers import grad, mean, noise, sqrt
from theory.all_clients import ContractionCertificate, NotProved
from theory.all_clients.inequality import Kept
from theory.all_clients.spectra import Eigenvalue

F = Fraction
RING = fs.network.ring(4)


def known(n_clients=4, m=1.0, L=4.0, convention="components", **more):
    return theory.Constants(dim=1, strong_convexity=m, smoothness=L, n_clients=n_clients,
                            convention=convention, **more)


@fs.sampler(follows="components")
def gossip(x, *, step_size, W):
    return W @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()


GOSSIP = theory.certify(gossip(step_size=0.05, W=RING), known())
EXTRA = theory.certify(extra_sgld(step_size=0.05, W=RING), known())
LOCAL = theory.certify(fs.FALD(0.1, local_steps=2), known(3, convention="federated"))
CLASS = theory.certify(gossip(step_size=0.05, W=RING), known(), eigenvalues=(-0.4, 0.9))
ITS_OWN = theory.certify(gossip(step_size=0.05, W=RING), known(), curvatures=[[1, 2], [1, 3], [2, 4], [2, 3]])


def read(found, **changes):
    """The certificate from its file, with these entries changed."""
    return ContractionCertificate.from_json(json.dumps(json.loads(found.to_json()) | changes))


def with_modes(found, change):
    return replace(found, modes=tuple(change(number, one) for number, one in enumerate(found.modes)))


@pytest.mark.parametrize("rows", [[[0, 0], [0, 0]], [[0, 1], [0, 2]], [[1, 0], [0, 1]]])
def test_rows_that_are_no_conserved_quantities_leave_nothing_out(rows):
    empty = Kept([list(map(F, row)) for row in rows], [])
    with pytest.raises(NotProved):
        with_modes(replace(EXTRA, rate=F(1, 10**6)),
                   lambda _, one: one._replace(kept=empty, form=[])).verify()


def test_a_basis_that_leaves_a_direction_twice_is_refused():
    def twice(number, one):
        return one._replace(kept=Kept([], [[F(1), F(0)], [F(1), F(0)]])) if number else one

    with pytest.raises(NotProved, match="not orthogonal"):
        with_modes(EXTRA, twice).verify()

    def longer(number, one):
        return one._replace(kept=Kept([], [[F(2), F(0)], [F(0), F(3)]])) if number else one

    with pytest.raises(NotProved):  # the same forms in other coordinates are other forms
        with_modes(EXTRA, longer).verify()


def test_schedules_of_all_parameters_are_seen():
    @fs.sampler(follows="components")
    def fading(x, *, step_size, a, W):
        return W @ x - step_size * a * grad(x) + sqrt(2 * step_size) * noise()

    @fs.sampler(follows="global")
    def alone(x, *, step_size, a):
        return x - step_size * a * grad(x) + sqrt(2 * step_size) * noise()

    fall = fs.schedules.Harmonic(20.0, 0.1)
    with pytest.raises(NotProved, match=r"a=Harmonic.* changes from round to round"):
        theory.certify(fading(step_size=0.05, a=fall, W=RING), known())
    with pytest.raises(NotProved, match=r"a=Harmonic.* changes from round to round"):
        theory.certify(alone(step_size=0.05, a=fall), known(1, convention="global"))
    uneven = fading(step_size=0.05, a=[1.0, 0.5, 0.5, 0.1], W=RING)
    found = theory.certify(uneven, known())
    assert found.by_client and found.value > 0.96  # the slow clients count, too


def test_a_client_of_all_has_no_others():
    with pytest.raises(ValueError, match="n_clients=3 must be 1 for stale_sgld"):
        theory.certify(fs.StaleSGLD(0.05, 1), known(3, convention="global"),
                       curvatures=[[1.9, 2], [1, 4], [1, 4]])


def test_what_other_modes_conserve_is_said():
    @fs.sampler(follows="components")
    def hoarding(x, p, q, *, step_size, W):
        return (W @ x - step_size * grad(x) + 0.1 * (p - q) + sqrt(2 * step_size) * noise(),
                p - (p + q) / 4 + 0.01 * (W @ x), q - (p + q) / 4 + 0.01 * (W @ x))

    found = theory.certify(hoarding(step_size=0.05, W=RING), known())
    assert "each client's p - q" in found.starts or "each client's q - p" in found.starts
    assert found.starts[0].startswith("the weighted sum over clients of ")
    tracked = theory.certify(diging_sgld(step_size=0.02, W=RING), known())
    assert tracked.starts == ("the weighted sum over clients of g - y",)


def test_a_class_of_networks_has_no_numbers_of_one_of_them():
    @fs.sampler(follows="components")
    def by_number(x, *, step_size, W):
        return W @ x - step_size * (W.shape[0] / 10) * grad(x) + sqrt(2 * step_size) * noise()

    @fs.sampler(follows="components")
    def by_entry(x, *, step_size, W):
        return W @ x - 3 * step_size * float(W[0, 1]) * grad(x) + sqrt(2 * step_size) * noise()

    @fs.sampler(follows="components")
    def two(x, *, step_size, W, V):
        return W @ x - step_size * (V @ grad(x)) + sqrt(2 * step_size) * noise()

    for algorithm in (by_number(step_size=0.05, W=RING), by_entry(step_size=0.05, W=RING)):
        with pytest.raises(NotProved, match="depend on the network or on the number"):
            theory.certify(algorithm, known(), eigenvalues=(-0.4, 0.9))
        assert theory.certify(algorithm, known()).verify(algorithm)
    with pytest.raises(NotProved, match="two matrices"):
        theory.certify(two(step_size=0.05, W=RING, V=0.5 * (np.eye(4) + RING)), known(),
                       eigenvalues=(-0.4, 0.9))
    assert CLASS.verify(gossip(step_size=0.05, W=fs.network.ring(9)))  # another number of clients
    for W in (0.5 * (np.eye(4) + fs.network.path(4)), np.array([[0.0, 1.0], [1.0, 0.0]])):
        with pytest.raises(NotProved, match="no inequality"):
            CLASS.verify(gossip(step_size=0.05, W=W))
    near = RING + 1e-15 * (np.eye(4) - np.ones((4, 4)) / 4)
    assert GOSSIP.verify(gossip(step_size=0.05, W=near))  # rounded otherwise


THREE = [["1", "4"], ["1/1000000", "1000000"], ["1/1000000", "1000000"]]


@pytest.mark.parametrize("found, changes, told", [
    (GOSSIP, {"by_client": True}, "must be the only one"),
    (LOCAL, {"by_client": True}, "must be the only one"),
    (GOSSIP, {"curvatures": [["1", "4"]] * 3 + [["1", "400"]]}, "no modes"),
    (GOSSIP, {"curvatures": [["1", "4"]] * 2}, "of every client"),
    (GOSSIP, {"curvatures": [["0", "4"]] * 4}, "0 < m <= L"),
    (GOSSIP, {"curvatures": [["4", "1"]] * 4}, "0 < m <= L"),
    (GOSSIP, {"weights": ["1/7"] * 7, "curvatures": [["1", "4"]] * 7}, "never meet"),
    (GOSSIP, {"weights": ["2/5", "1/5", "1/5", "1/5"]}, "equal weights"),
    (GOSSIP, {"weights": ["-1/4"] * 4}, "greater than 0"),
    (GOSSIP, {"network": None, "n_matrices": 0}, "without a network|powers of an eigenvalue"),
    (GOSSIP, {"rest": None}, "in modes beside"), (GOSSIP, {"rate": "3/2"}, "between 0 and 1"),
    (GOSSIP, {"between": ["0", "1/2"]}, "one network"), (GOSSIP, {"quadratic": float("nan")}, "quadratic="),
    (GOSSIP, {"quadratic": 0.1}, "quadratic="), (GOSSIP, {"multipliers": ["-1/1000"]}, "at least 0"),
    (GOSSIP, {"multipliers": []}, "multipliers"), (LOCAL, {"rest": None}, "in modes beside"),
    (CLASS, {"between": ["-9/10", "9/10"]}, "all eigenvalues"),
    (CLASS, {"between": ["-2/5", "99/100"]}, "all eigenvalues"),
    (CLASS, {"between": ["1/2", "2/5"]}, "all eigenvalues"),
    (CLASS, {"between": None}, "without a network|powers"),
    (ITS_OWN, {"by_client": False}, "no modes"),
    (ITS_OWN, {"curvatures": [["1", "40"]] * 4}, "does not hold"),
    (ITS_OWN, {"weights": ["1/3"] * 3, "curvatures": THREE}, "a gradient of each client")])
def test_a_file_that_says_more_is_refused(found, changes, told):
    with pytest.raises(NotProved, match=told):
        read(found, **changes).verify()
    assert read(found).verify()


@pytest.mark.parametrize("changes", [{"rate": "1e400"}, {"rate": "nan"}, {"rate": 0.5},
                                     {"multipliers": ["inf"]}, {"weights": ["1" + "0" * 5000]},
                                     {"n_matrices": None}, {"modes": None}])
def test_numbers_that_are_none_are_refused(changes):
    with pytest.raises(ValueError, match="must be a certificate"):
        read(GOSSIP, **changes)


def test_forms_are_positive_definite_and_of_their_size():
    def signed(number, one):
        return one._replace(form=[[-x for x in row] for row in one.form])

    def still(number, one):
        return one._replace(form=[[F(0)] * len(one.form) for _ in one.form])

    def flat(number, one):
        return one._replace(form=[[F(1), F(1)], [F(1), F(1)]]) if len(one.form) == 2 else one

    def smaller(number, one):
        return one._replace(form=[row[:-1] for row in one.form[:-1]])

    for change, told in ((signed, "positive definite"), (still, "positive definite"),
                         (flat, "positive definite"), (smaller, "the form must be")):
        with pytest.raises(NotProved, match=told):
            with_modes(EXTRA, change).verify()


def test_the_enclosure_of_an_eigenvalue_is_taken_from_the_inequality():
    """Wide enclosures: powers of their half-width, with the sizes of all that they multiply."""
    wide = [one._replace(at=one.at._replace(radius=F(1, 3))) if one.at else one for one in EXTRA.modes]
    with pytest.raises(NotProved, match="less what the eigenvalue's enclosure takes"):
        replace(EXTRA, modes=tuple(wide)).verify()
    narrow = max(GOSSIP.modes[1:], key=lambda one: one.at.centre)
    with pytest.raises(NotProved, match="no inequality"):
        with_modes(GOSSIP, lambda number, one: one if one is not narrow else one._replace(
            at=one.at._replace(radius=F(0)))).verify()

    @fs.sampler(follows="components")
    def mixed_gradient(x, *, step_size, W):
        return x - step_size * (W @ grad(W @ x)) + sqrt(2 * step_size) * noise()

    # a gradient at mixed points: at w = 0 nothing moves, and w^2 stands before it
    with pytest.raises(NotProved):
        theory.certify(mixed_gradient(step_size=0.05, W=RING), known(), eigenvalues=(-0.9, 0.9))
    found = theory.certify(mixed_gradient(step_size=0.05, W=RING), known())
    assert found.quadratic == pytest.approx(1 - 0.05 * np.square(np.linalg.eigvalsh(RING)).min(), abs=1e-9)


@pytest.mark.parametrize("change, told", [
    (lambda found: replace(found, modes=found.modes[:1]), "another"),
    (lambda found: replace(found, modes=found.modes + found.modes[1:]), "another"),
    (lambda found: with_modes(found, lambda number, one: one._replace(
        at=Eigenvalue(F(0), F(0), 2) if number else None)), "another"),
    (lambda found: replace(found, rounds=found.rounds._replace(rest=found.rounds.consensus)), "not the one")])
def test_clients_that_differ_within_a_round_have_a_mode(change, told):
    with pytest.raises(NotProved, match=told):
        change(LOCAL).verify(fs.FALD(0.1, local_steps=2))


@fs.sampler(follows="components")
def apart_elsewhere(x, *, step_size, W):
    return W @ x - step_size * grad(x) + 1e-3 * (x - mean(x)) + sqrt(2 * step_size) * noise()


@fs.sampler(follows="components")
def pulled_together(x, *, step_size, W):
    return W @ x - 1e-3 * mean(x) - step_size * grad(x) + sqrt(2 * step_size) * noise()


@pytest.mark.parametrize("algorithm, told", [
    (apart_elsewhere(step_size=0.05, W=RING), "not the one"),
    (pulled_together(step_size=0.05, W=RING), "not the one"),
    (gossip(step_size=0.05, W=fs.network.complete(4)), "no inequality"),
    (gossip(step_size=0.05, W=1.2 * RING - 0.2 * np.eye(4)), "no inequality")])
def test_another_round_or_network_is_another_statement(algorithm, told):
    with pytest.raises(NotProved, match=told):
        GOSSIP.verify(algorithm)


@fs.sampler
def some(x, *, step_size):
    return mean(x, of=[[0]]) - step_size * mean(grad(x))


@fs.sampler
def turns(x, *, step_size):
    return mean(x - step_size * grad(x), of=[[0], [1], [2]])


@fs.sampler
def drifting(x, *, step_size):
    return 3 * x - 2 * mean(x) - step_size * grad(x)


@fs.sampler
def half_averaged(x, *, step_size):
    return 0.5 * x + 0.5 * mean(x) - step_size * grad(x)


@pytest.mark.parametrize("algorithm, constants", [
    (some(step_size=0.05), known(3, convention="federated")),
    (turns(step_size=0.05), known(3, convention="federated")),
    (drifting(step_size=0.05), known(3, convention="federated")),
    (gossip(step_size=0.05, W=[RING, fs.network.complete(4)]), known()),
    (gossip(step_size=0.05, W=0.99 * RING), known()),
    (gossip(step_size=0.05, W=0.999 * np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])),
     known(3))])
def test_rounds_without_a_certificate(algorithm, constants):
    with pytest.raises(NotProved):
        theory.certify(algorithm, constants)


def test_weights_count_client_by_client():
    uneven = known(3, convention="federated", weights=[0.6, 0.3, 0.1])
    found = theory.certify(half_averaged(step_size=0.05), uneven, curvatures=[[1, 2], [1, 3], [2, 4]])
    (first,) = found.rounds.consensus.step[0][0]
    assert float(first) == pytest.approx(0.5 + 0.5 * 0.6)
    mixed = known(4, weights=[0.4, 0.3, 0.2, 0.1])
    assert theory.certify(gossip(step_size=0.05, W=RING), mixed).by_client


def test_the_value_is_rounded_upward_and_printed_so():
    rate = F(95000000000000003, 10**17)
    assert F(replace(GOSSIP, rate=rate).value) >= rate
    assert "closer by 0.950000001," in " ".join(str(replace(GOSSIP, rate=rate)).split())


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e4, 1e8])
def test_the_unit_of_length_does_not_matter(unit):
    algorithms = [gossip(step_size=0.05 / unit, W=RING),
                  fs.DESGHMC(0.1 / np.sqrt(unit), 4.0 * np.sqrt(unit), RING),
                  diging_sgld(step_size=0.02 / unit, W=RING)]
    for algorithm, rate in zip(algorithms, (0.95, 0.973956, 0.98), strict=True):
        found = theory.certify(algorithm, known(4, unit, 4 * unit))
        assert found.value == pytest.approx(rate, abs=2e-5) and found.verify(algorithm)


def test_nothing_that_moves_is_no_contraction():
    @fs.sampler
    def still(x, *, step_size):
        return x + 0.0 * noise()

    with pytest.raises(NotProved, match="nothing that could come together"):
        theory.certify(still(step_size=0.1), known(3, convention="federated"))
