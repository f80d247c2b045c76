"""All clients together after every round of a sampler: the shipped joint laws, and by brute force."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sampler_zoo as zoo
from examples_of import close, gaussian_start, make_problem
from sampler_brute import stacked_law

import fedsim as fs
import theory
from fedsim.samplers import blocks, grad, mean, noise, past, sqrt, weights
from theory.exact import NoExactLaw, joint_law, traced, traced_joint
from theory.exact.traced_joint import RoundJointLaw

NOT_SYMMETRIC = 0.6 * np.roll(np.eye(3), 1, axis=0) + 0.4 * np.eye(3)
MOMENTS = ("mean", "cov", "sync_steps", "before_mean", "before_cov", "average_mean", "average_cov",
           "client_cov")
READ = ("divergence", "divergence_before", "participation_gap", "gradient_second_moment")


@fs.sampler
def drawn_fa_ld(x, *, step_size, clients):
    return mean(x - step_size * grad(x) + sqrt(2 * step_size / weights()) * noise(), drawn=clients)


def shipped_pairs(ring):
    """Algorithms with one step a round."""
    schedule = fs.schedules.Harmonic(8.0, 0.5)
    yield zoo.fa_ld(step_size=0.1, temperature=1.5, shared_noise=0.3), fs.FALD(0.1, 1, 1.5, 0.3)
    yield zoo.fa_ld(step_size=schedule), fs.FALD(schedule)
    yield zoo.fa_hmc(step_size=0.2, leapfrog_steps=3, shared_noise=0.4), fs.FAHMC(0.2, 3, 1, 0.4)
    yield (drawn_fa_ld(step_size=0.1, clients=fs.Participation(2, True)),
           fs.FALD(0.1, participation=fs.Participation(2, True)))
    yield zoo.de_sgld(step_size=0.1, W=ring), fs.DESGLD(0.1, ring)
    yield zoo.de_sgld(step_size=schedule, W=ring), fs.DESGLD(schedule, ring)
    yield zoo.de_sghmc(step_size=0.2, friction=2.0, W=ring), fs.DESGHMC(0.2, 2.0, ring)


def differences(problem, start):
    for mine, shipped in shipped_pairs(fs.network.ring(3)):
        law, known = (joint_law(problem, each, 6, start=start, allow_unstable=True)
                      for each in (mine, shipped))
        assert isinstance(law, RoundJointLaw) and law.is_gaussian == known.is_gaussian
        pairs = [(getattr(law, name), getattr(known, name)) for name in MOMENTS]
        pairs += [(getattr(law, name)(), getattr(known, name)()) for name in READ]
        pairs.append((law.second_moment_about([1.0, 2.0]), known.second_moment_about([1.0, 2.0])))
        assert all(one.shape == other.shape for one, other in pairs)
        yield max(float(np.abs(one - other).max()) / max(1e-300, float(np.abs(other).max()))
                  for one, other in pairs if one.size)


@pytest.mark.filterwarnings("ignore:drawn_fa_ld aims at:fedsim.samplers.SamplerWarning")  # as the shipped
@pytest.mark.parametrize(("structure", "rough"), [
    ("dense", "covariances"), ("dense", None), ("diagonal", 0.3)])
@pytest.mark.parametrize("diagonal", [True, False])
def test_joint_laws_are_those_of_the_shipped_algorithms(structure, rough, diagonal):
    found = list(differences(make_problem(structure, noise=rough), gaussian_start(2, diagonal)))
    assert len(found) == 7 and max(found) < 1e-12


@fs.sampler
def crossed(x, y, *, step_size, W):
    """Clients differ, mix by a matrix that is not symmetric, and look back."""
    n = noise()
    x = W @ x - step_size * grad(past(x, 1)) + sqrt(step_size) * n + 0.3 * y
    return x, mean(x) + 0.2 * noise(common=True) + 0.1 * n


BRUTE = {
    "crossed": crossed(step_size=0.1, W=NOT_SYMMETRIC),
    "extra": zoo.extra_sgld(step_size=0.1, W=fs.network.path(3)),
    "local_gossip": zoo.local_gossip(step_size=0.05, W=NOT_SYMMETRIC, local_steps=5),
    "random turns": zoo.random_pairs(step_size=0.1, W=[NOT_SYMMETRIC, np.eye(3)]),
    "scaffold": zoo.scaffold_ld(step_size=0.05, local_steps=4),
    "known delays": zoo.known_delays(step_size=0.1, sets=((0, 1), (2,))),
}


def brute_difference(name):
    problem, start = make_problem(), np.array([0.7, -0.4])
    law = joint_law(problem, BRUTE[name], 4, start=start, allow_unstable=True)
    centre, cov = stacked_law(BRUTE[name], problem, 4, start)
    return max(np.abs(law.mean.reshape(5, -1) - centre).max(), np.abs(law.cov - cov).max())


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
@pytest.mark.parametrize("name", BRUTE)
def test_joint_laws_are_those_of_the_function_on_numbers(name):
    assert brute_difference(name) < 1e-12


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
def test_its_average_and_clients_are_those_of_the_exact_law():
    problem = make_problem(noise=0.2)
    for name in ("crossed", "extra", "scaffold"):
        joint, law = (call(problem, BRUTE[name], 5, start=[1.0, 2.0], allow_unstable=True)
                      for call in (joint_law, theory.exact_law))
        close(joint.average_mean, law.mean)
        close(joint.average_cov, law.cov, 1e-11)
        for c, client in enumerate(law.clients):
            close(joint.client_cov[:, c], client.cov, 1e-11)
    assert not joint.n_clients == 1 and joint.divergence().max() < 1e-12  # all have the server's


def test_what_is_averaged_last_is_known_before():
    """K local steps: beta of the shipped law, though not the steps between."""
    problem, K = make_problem(noise=0.2), 4
    mine = joint_law(problem, zoo.fa_ld(step_size=0.05, local_steps=K), 3, start=[1.0, 2.0])
    shipped = joint_law(problem, fs.FALD(0.05, K), 3 * K, start=[1.0, 2.0])
    close(mine.before_mean, shipped.before_mean)
    close(mine.before_cov, shipped.before_cov)
    close(mine.cov, shipped.cov[::K])
    close(mine.divergence_before(), shipped.divergence_before())
    for other in (zoo.known_delays(step_size=0.05, sets=((0, 1), (2,))),
                  zoo.random_pairs(step_size=0.05, W=fs.network.ring(3))):
        assert not len(joint_law(problem, other, 3).sync_steps)


def _transposed(monkeypatch):
    right = blocks.Blocks.mix
    monkeypatch.setattr(blocks.Blocks, "mix", lambda self, W, of: right(self, W.swapaxes(1, 2), of))


def _of_another_part(monkeypatch):
    right = traced_joint.clients_of
    monkeypatch.setattr(traced_joint, "clients_of", lambda mean, cov, first, rows, shape: right(
        mean, cov, mean.shape[1] - rows * shape[1], rows, shape))


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
@pytest.mark.parametrize("mutant", [_transposed, _of_another_part])
def test_faults_are_seen(mutant, monkeypatch):
    mutant(monkeypatch)
    assert brute_difference("crossed") > 1e-3


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
@pytest.mark.parametrize("wrong", ["f_(c)", "before", "noise"])
def test_faults_of_what_is_read_are_seen(wrong, monkeypatch):
    right, averaged = traced_joint.followed_by, traced_joint.averaged_last
    if wrong == "f_(c)":
        monkeypatch.setattr(traced_joint, "followed_by", lambda problem, _, differ: right(
            problem, False, differ))
    elif wrong == "noise":
        monkeypatch.setattr(traced_joint, "followed_by", lambda problem, *rest: dataclasses.replace(
            right(problem, *rest), gradient_noise=None))
    else:
        def after(found):
            made, factor = averaged(found) or (None, 0.0)
            return made and (dataclasses.replace(made, out=(*made.out[:-1], made.out[0])), factor)

        monkeypatch.setattr(traced, "averaged_last", after)
    assert max(differences(make_problem(noise="covariances"), gaussian_start(2))) > 1e-3


def test_bounds_on_clients_refuse_laws_at_rounds():
    problem, algorithm = make_problem(), fs.FALD(0.01, 3)
    bound = theory.fa_ld.divergence_bound(theory.constants(problem, algorithm), algorithm, n_rounds=2)
    law = joint_law(problem, zoo.fa_ld(step_size=0.01, local_steps=3), 6)
    with pytest.raises(ValueError, match=r"must be a theory\.exact\.JointLaw at local steps"):
        theory.check(bound, law, same=False)
    gossip, mine = (kind(step_size=0.01, **{name: fs.network.ring(3)}) for kind, name in (
        (fs.DESGLD, "mixing"), (zoo.de_sgld, "W")))
    bound = theory.de_sgld.disagreement_bound(theory.constants(problem, gossip), gossip, n_rounds=2)
    with pytest.raises(ValueError, match=r"must be the theory\.exact\.joint_law of a decentralized"):
        theory.check(bound, joint_law(problem, mine, 6), same=False)


def test_what_is_not_known():
    problem = make_problem()
    with pytest.raises(NoExactLaw, match="one client of all"):
        joint_law(problem, zoo.stale_sgld(step_size=0.1, age=1), 3)
    with pytest.raises(ValueError, match="step_size has 3 entries; n_steps=4 asks for 4"):
        joint_law(problem, zoo.de_sgld(step_size=[0.1, 0.1, 0.1], W=fs.network.ring(3)), 4)
    with pytest.raises(ValueError, match="n_steps=100 joint laws of 3 clients"):
        joint_law(make_problem(dim=2000, structure="diagonal"), zoo.de_sgld(
            step_size=0.1, W=fs.network.ring(3)), 100)
