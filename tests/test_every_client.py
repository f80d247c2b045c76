"""ContractionCertificate for every client of a class: values, and chains that keep to them."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pages
import pytest
from sampler_zoo import de_baoab, diging_sgld, extra_sgld, scaffold_ld

import fedsim as fs
import theory
from fedsim.samplers import declared
from fedsim.samplers.sampler import Sampled
from fedsim.samplers.trace import evaluate
from theory.all_clients import ContractionCertificate, NotProved

RING = fs.network.ring(10)


def known(n_clients=10, m=1.0, L=4.0, convention="components", **more):
    return theory.Constants(dim=1, strong_convexity=m, smoothness=L, n_clients=n_clients,
                            convention=convention, **more)


FEDERATED, ALONE = known(4, convention="federated"), known(1, convention="global")
TABLE = [  # found by another program, with another solver
    (fs.DESGLD(0.02, RING), known(), 0.98), (fs.DESGLD(0.1, RING), known(), 0.9),
    (extra_sgld(step_size=0.02, W=RING), known(), 0.98), (extra_sgld(step_size=0.05, W=RING), known(), 0.95),
    (extra_sgld(step_size=0.1, W=RING), known(), 0.91722),
    (diging_sgld(step_size=0.02, W=RING), known(), 0.98),
    (diging_sgld(step_size=0.05, W=RING), known(), 0.96100),
    (fs.DESGHMC(0.1, 4.0, RING), known(), 0.973956), (fs.DESGHMC(0.1, 8.0, RING), known(), 0.987461),
    (fs.DESGHMC(0.2, 4.0, RING), known(), 0.949325), (fs.DESGHMC(0.1, 2.0, RING), known(), 0.95684),
    (de_baoab(step_size=0.1, friction=4.0, W=RING), known(), 0.973164),
    (de_baoab(step_size=0.1, friction=8.0, W=RING), known(), 0.986694),
    (de_baoab(step_size=0.1, friction=2.0, W=RING), known(), 0.96212),
    *((fs.FAHMC(0.5 / K, K, shared_noise=1.0), known(4, 0.1, 1.0, "federated"), rate)
      for K, rate in ((1, 0.9875), (2, 0.98752), (3, 0.987524), (5, 0.987525))),
    *((fs.FALD(0.1, local_steps=K), FEDERATED, 0.9**K) for K in (1, 2, 5)),
    (fs.StaleSGLD(0.05, 1), ALONE, 0.947214), (fs.StaleSGLD(0.05, 3), ALONE, 0.939754)]


@pytest.mark.parametrize("algorithm, constants, rate", TABLE)
def test_rates_are_those_of_another_program_and_of_quadratics(algorithm, constants, rate):
    found = theory.certify(algorithm, constants)
    assert found.value == pytest.approx(rate, abs=1e-5) and found.verify(algorithm)
    assert found.quadratic <= found.value
    if not (isinstance(algorithm, de_baoab | fs.DESGHMC) and algorithm.friction == 2.0):
        assert found.quadratic == pytest.approx(found.value, abs=3e-3)
    assert ContractionCertificate.from_json(found.to_json()).verify(algorithm)


def test_closed_forms():
    """DE-SGLD contracts by the largest |w - eta h|; FA-LD and SCAFFOLD by powers of 1 - eta m."""
    for eta in (0.05, 0.12, 0.16):
        closed = max(1 - eta, 1 / 3 + 4 * eta)
        assert theory.certify(fs.DESGLD(eta, RING), known()).value == pytest.approx(closed, abs=1e-5)
    with pytest.raises(NotProved, match=r"does not contract for quadratic clients.* 1\.00667"):
        theory.certify(fs.DESGLD(0.505 / 3, RING), known())
    weighted = known(4, convention="federated", weights=[0.1, 0.2, 0.3, 0.4])
    assert theory.certify(fs.FALD(0.1, local_steps=3), weighted).value == pytest.approx(0.729, abs=1e-5)
    assert theory.certify(scaffold_ld(step_size=0.02, local_steps=5), FEDERATED).value == pytest.approx(
        0.98**5, abs=1e-5)


class Numbers:
    """A round in numbers: clients (N,), gradients of any kind, the same noise from the same seed."""

    def __init__(self, state, gradient, weights, seed):
        self.values, self.gradient, self.weights = state, gradient, weights
        self.draws = np.random.default_rng(seed)

    def state(self, part):
        return self.values[part]

    def noise(self, number, common):
        n = len(self.weights)
        return np.full(n, self.draws.normal()) if common else self.draws.normal(size=n)

    def lin(self, terms):
        return sum((np.asarray(c)[0] if np.ndim(c) else c) * value for value, c in terms)

    def grad(self, number, at):
        return self.gradient(at)

    def mix(self, matrices, of):
        return matrices[0] @ of

    def mean(self, shares, of):
        return np.full(len(of), self.weights @ of)

    def loop(self, number, body, begin):
        values = [0.0 if one is None else one for one in begin]
        for _ in range(body.turns):
            values = evaluate(body.nodes, body.outputs, self, values)
        return values


def size(found, gaps):
    """sum_j z_j'P_j z_j of differences {part: (N,)}."""
    n = found.n_clients
    if found.rounds.network is None:
        vectors, values = np.linalg.svd(np.ones((n, 1)))[0], [1.0, *[None] * (n - 1)]
    else:
        values, vectors = np.linalg.eigh(np.array(found.rounds.network, dtype=float))
        values, vectors = [*values[::-1]], vectors[:, ::-1]
    total = 0.0
    for number in range(n):
        centres = [None if one.at is None else float(one.at.centre) for one in found.modes]
        mode = 0 if number == 0 else 1 if values[number] is None else 1 + int(
            np.argmin(np.abs(np.array(centres[1:]) - values[number])))
        parts = found.rounds.consensus.parts if mode == 0 else found.rounds.rest.parts
        if not parts:
            continue
        z = np.array([vectors[:, number] @ gaps[part] for part in parts])
        T = np.array(found.modes[mode].kept.basis, dtype=float).reshape(-1, len(parts))
        a = T @ z / (T**2).sum(axis=1)
        assert np.abs(z - a @ T).max() < 1e-9 * (1 + np.abs(z).max())  # what is conserved agrees
        total += a @ np.array(found.modes[mode].form, dtype=float).reshape(len(T), len(T)) @ a
    return total


def kinds(rng, n, m, L):
    """Gradients of clients in the class that are not affine."""
    shift, gain = rng.normal(0.0, 2.0, n), rng.uniform(0.2, 1.0, n) * (L - m)
    yield lambda x: m * x + gain * np.tanh(x - shift)
    yield lambda x: m * x + (L - m) * np.maximum(x - shift, 0.0)
    yield lambda x: np.where(x > shift, L, m) * (x - shift) + m * shift
    yield lambda x: np.where(np.arange(n) % 2, L, m) * (x - shift)


def round_of(algorithm, n, state, gradient, seed):
    told = algorithm if isinstance(algorithm, Sampled) else declared(algorithm)
    trace = told.trace(fs.Quadratic(np.ones(n), np.zeros((n, 1))))
    new = evaluate(trace.nodes, trace.out, Numbers(state, gradient, trace.weights, seed))
    return dict(zip(trace.names, new, strict=True))


@pytest.mark.parametrize("number", range(8))
def test_chains_on_clients_of_all_kinds_come_together_as_proved(number):
    """In the certificate's own norm every round, and so all of them."""
    rng = np.random.default_rng(number)
    m, L = 1.0, rng.uniform(2.0, 10.0)
    n = int(rng.integers(3, 8))
    W = 0.5 * (np.eye(n) + fs.network.ring(n))
    eta = rng.uniform(0.2, 0.8) / L
    algorithms = [fs.DESGLD(eta, W), extra_sgld(step_size=eta, W=W), diging_sgld(step_size=0.2 * eta, W=W),
                  fs.DESGHMC(np.sqrt(0.1 * eta), 3 * np.sqrt(L), W),
                  de_baoab(step_size=np.sqrt(0.1 * eta), friction=3 * np.sqrt(L), W=W),
                  fs.FALD(eta, local_steps=3), fs.FAHMC(0.3 * eta, 3, shared_noise=0.5)]
    tried = tight = 0
    for algorithm in algorithms:
        federated = isinstance(algorithm, fs.FALD | fs.FAHMC)
        try:
            found = theory.certify(algorithm, known(n, m, L, "federated" if federated else "components"))
        except NotProved as error:
            assert "may contract" in str(error) or "does not contract" in str(error)
            continue
        parts = found.rounds.consensus.parts
        for gradient in kinds(rng, n, m, L):
            chains = []
            for begin in rng.normal(0.0, 5.0, (2, n)):
                first = np.full(n, begin.mean()) if federated else begin
                chains.append({part: first if part == "x" else np.zeros(n) for part in parts})
            for turn in range(15):
                before = size(found, {part: chains[0][part] - chains[1][part] for part in parts})
                chains = [round_of(algorithm, n, chain, gradient, turn) for chain in chains]
                after = size(found, {part: chains[0][part] - chains[1][part] for part in parts})
                assert after <= found.value**2 * before * (1 + 1e-9) + 1e-20
                tight = max(tight, after / (found.value**2 * before + 1e-300))
            tried += 1
    assert tried >= 12 and tight > 0.8  # a rate twice too large would be seen


def test_clients_with_curvatures_of_their_own_and_directed_networks():
    own = [[1.0, 2.0], [1.4, 2.6], [1.7, 3.3], [2.0, 4.0]]
    found = theory.certify(fs.DESGLD(0.05, fs.network.ring(4)), known(4), curvatures=own)
    everyone = theory.certify(fs.DESGLD(0.05, fs.network.ring(4)), known(4))
    assert found.quadratic <= found.value < everyone.value - 0.02 and found.by_client
    directed = 0.5 * (np.eye(4) + np.roll(np.eye(4), 1, axis=1))

    @fs.sampler(follows="components")
    def one_way(x, *, step_size, W):
        from fedsim.samplers import grad, noise, sqrt
        return W @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()

    found = theory.certify(one_way(step_size=0.05, W=directed), known(4))
    assert found.by_client and found.value == pytest.approx(0.95, abs=2e-5)
    assert ContractionCertificate.from_json(found.to_json()).verify(one_way(step_size=0.05, W=directed))
    with pytest.raises(ValueError, match="at most 12"):
        theory.certify(fs.DESGLD(0.05, fs.network.ring(13)), known(13), curvatures=[[1, 2]] + [[1, 3]] * 12)
    with pytest.raises(NotProved, match="symmetric"):
        theory.certify(one_way(step_size=0.05, W=0.5 * (np.eye(13) + np.roll(np.eye(13), 1, 1))), known(13))


def test_all_networks_between_two_eigenvalues():
    found = theory.certify(fs.DESGLD(0.05, RING), known(), eigenvalues=(-0.4, 0.9))
    assert found.value == pytest.approx(0.95, abs=1e-5) and len(found.modes) == 2
    assert found.verify(fs.DESGLD(0.05, fs.network.complete(10)))
    with pytest.raises(NotProved, match="for which there is no inequality"):
        found.verify(fs.DESGLD(0.05, 0.9 * np.eye(10) + 0.1 * RING))
    again = ContractionCertificate.from_json(found.to_json())
    assert again.verify() and again.between == found.between
    with pytest.raises(NotProved, match="may contract nevertheless"):  # products of two such rounds grow
        theory.certify(extra_sgld(step_size=0.05, W=RING), known(), eigenvalues=(-1 / 3, 0.88))
    found = theory.certify(diging_sgld(step_size=0.02, W=RING), known(), eigenvalues=(-0.34, 0.88))
    assert theory.certify(diging_sgld(step_size=0.02, W=RING), known()).value < found.value < 0.981


def test_the_certificate_on_the_page_is_one():
    """As it is printed there, with the forms of its eigenvalues, and no more digits."""
    text = (pages.DOCS / "guide" / "certificates.md").read_text(encoding="utf-8")
    (block,) = pages.blocks(text, "json")
    printed = json.loads(block[2])
    found = theory.certify(extra_sgld(step_size=0.05, W=RING), known())
    forms = {place: [[Fraction(x) for x in row] for row in form] for place, form in printed["forms"].items()}
    modes = tuple(one._replace(form=forms[f"{1 if one.at is None else float(one.at.centre):.6g}"])
                  for one in found.modes)
    whole = replace(found, rate=Fraction(printed["rate"]), modes=modes,
                    multipliers=(Fraction(printed["multiplier"]),))
    assert len(forms) == len(modes) == 6 and whole.verify(extra_sgld(step_size=0.05, W=RING))
    with pytest.raises(NotProved):
        replace(whole, multipliers=(2 * whole.multipliers[0],)).verify()


def test_many_clients_take_no_longer_than_their_eigenvalues():
    found = theory.certify(extra_sgld(step_size=0.05, W=fs.network.ring(50)), known(50))
    assert len(found.modes) == 26 and sum(one.at.multiplicity for one in found.modes[1:]) == 49
    assert found.quadratic <= found.value <= found.quadratic + 1e-5
