"""The shipped algorithms in the notation of `fs.sampler`, beside their kernels.

Kernels, and the exact laws by hand, are other writings of the same equations: the law that is traced from
these functions is a second derivation of each, and `fedsim.explain` shows a round as it is written here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..samplers.declarations import says
from ..samplers.notation import grad, mean, noise, past, sqrt, weights
from ..samplers.sampler import sampler
from ..settings.participation import Participation
from ..settings.participation_fixed import FixedParticipation
from ..settings.staleness import Fixed, as_staleness
from ..settings.validation import shown
from .de_sghmc import DESGHMC
from .de_sgld import DESGLD
from .fa_hmc import FAHMC
from .fa_ld import FALD
from .stale import StaleSGHMC, StaleSGLD


@sampler
def fa_ld(x, *, step_size, local_steps=1, temperature=1.0, shared_noise=0.0, sets=None, drawn=None):
    """FA-LD: local Langevin steps, then the average; over `sets` of clients in turn, or over `drawn` ones."""
    for _ in range(local_steps):
        x = (x - step_size * grad(x)
             + sqrt(2 * step_size * temperature * shared_noise) * noise(common=True)
             + sqrt(2 * step_size * temperature * (1 - shared_noise)) * noise() / sqrt(weights()))
    return mean(x, of=sets, drawn=drawn)


@sampler
def fa_hmc(x, *, step_size, leapfrog_steps, local_steps=1, shared_noise=1.0, sets=None, drawn=None):
    """FA-HMC: new momenta and leapfrog steps, so many times, then the average."""
    for _ in range(local_steps):
        p = sqrt(shared_noise) * noise(common=True) + sqrt((1 - shared_noise) / weights()) * noise()
        for _ in range(leapfrog_steps):
            p = p - step_size / 2 * grad(x)
            x = x + step_size * p
            p = p - step_size / 2 * grad(x)
    return mean(x, of=sets, drawn=drawn)


def trajectories(x, correction, step_size, leapfrog_steps, local_steps, shared_noise):
    """The local updates of FA-HMC with corrected gradients."""
    for _ in range(local_steps):
        p = sqrt(shared_noise) * noise(common=True) + sqrt((1 - shared_noise) / weights()) * noise()
        for _ in range(leapfrog_steps):
            p = p - step_size / 2 * (grad(x) + correction)
            x = x + step_size * p
            p = p - step_size / 2 * (grad(x) + correction)
    return x


@sampler
def fa_hmc_fresh(x, *, step_size, leapfrog_steps, local_steps, shared_noise, sets=None, drawn=None):
    """FA-HMC debiased by gradients at the server's value."""
    g = grad(x)
    new = trajectories(x, mean(g) - g, step_size, leapfrog_steps, local_steps, shared_noise)
    return mean(new, of=sets, drawn=drawn)


@sampler
def fa_hmc_stale(x, c, *, step_size, leapfrog_steps, local_steps, shared_noise, sets=None, drawn=None):
    """FA-HMC debiased by gradients at the server's value one round ago; c is zero in the first round."""
    new, g = trajectories(x, c, step_size, leapfrog_steps, local_steps, shared_noise), grad(x)
    return mean(new, of=sets, drawn=drawn), mean(g) - g


@sampler
def fa_hmc_stale_exact(x, z, *, step_size, leapfrog_steps, local_steps, shared_noise, sets=None, drawn=None):
    """The same with the anchor z, which is the origin in the first round."""
    g = grad(z)
    new = trajectories(x, mean(g) - g, step_size, leapfrog_steps, local_steps, shared_noise)
    return mean(new, of=sets, drawn=drawn), x


@sampler
def fa_hmc_stale_printed(x, z, m, *, step_size, leapfrog_steps, local_steps, shared_noise, sets=None,
                         drawn=None):
    """The same with the server's gradient m, which is zero in the first round."""
    new = trajectories(x, m - grad(z), step_size, leapfrog_steps, local_steps, shared_noise)
    return mean(new, of=sets, drawn=drawn), x, mean(grad(x))


for _debiased in (fa_hmc_fresh, fa_hmc_stale, fa_hmc_stale_exact, fa_hmc_stale_printed):
    _debiased._exact_gradients = True  # at the anchor they are, also where grad() has noise
FIRST_ROUNDS = {"none": fa_hmc_stale, "exact": fa_hmc_stale_exact, "printed": fa_hmc_stale_printed}


@sampler(follows="components")
def de_sgld(x, *, step_size, W):
    """DE-SGLD: mixing and a Langevin step."""
    return W @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()


@sampler(follows="components")
def de_sghmc(x, v, *, step_size, friction, W):
    """DE-SGHMC: positions are mixed, velocities are not."""
    v = v - step_size * (friction * v + grad(x)) + sqrt(2 * friction * step_size) * noise()
    return W @ x + step_size * v, v


@sampler(follows="global")
def stale_sgld(x, *, step_size, age):
    """Stale SGLD: the gradient is taken where the chain was."""
    return x - step_size * grad(past(x, age)) + sqrt(2 * step_size) * noise()


@sampler(follows="global")
def stale_sghmc(x, q, *, step_size, friction, age):
    """Stale SGHMC: the same with momentum."""
    q = (1 - friction * step_size) * q - step_size * grad(past(x, age))
    q = q + sqrt(2 * friction * step_size) * noise()
    return x + step_size * q, q


def _shared(algorithm: Any) -> dict[str, Any]:
    """The parameters of both federated algorithms, who takes part among them."""
    if algorithm.local_steps > 1 and not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant, or local_steps=1: schedules "
                         "of the notation have one number for each round, and this one for each local step")
    given = {"step_size": algorithm.step_size, "local_steps": algorithm.local_steps,
             "shared_noise": algorithm.shared_noise}
    chosen = algorithm.participation
    if isinstance(chosen, FixedParticipation) and chosen.cyclic:
        return given | {"sets": chosen.sets}
    if isinstance(chosen, Participation):
        return given | {"drawn": chosen}
    if chosen is not None:
        known = isinstance(chosen, FixedParticipation)
        why = ("the notation's sets of clients come again, as with cyclic=True" if known else
               "averages of the notation have shares that sum to one, also where nobody answers")
        raise ValueError(f"participation={chosen!r} must be None, fs.Participation or cyclic sets: {why}")
    return given


@says(FALD)
def _fa_ld(algorithm: FALD) -> Any:
    return fa_ld(**_shared(algorithm), temperature=algorithm.temperature)


@says(FAHMC)
def _fa_hmc(algorithm: FAHMC) -> Any:
    stale = FIRST_ROUNDS[algorithm.first_round]
    kind = {None: fa_hmc, "fresh": fa_hmc_fresh, "stale": stale}[algorithm.debias]
    return kind(**_shared(algorithm), leapfrog_steps=algorithm.leapfrog_steps)


@says(DESGLD)
def _de_sgld(algorithm: DESGLD) -> Any:
    return de_sgld(step_size=algorithm.step_size, W=algorithm.mixing)


@says(DESGHMC)
def _de_sghmc(algorithm: DESGHMC) -> Any:
    velocity = algorithm.start_velocity
    if velocity is not None and np.any(velocity):
        raise ValueError(f"start_velocity={shown(velocity)} must be zero or None: in the notation all parts "
                         "of the state but the first begin at zero")
    return de_sghmc(step_size=algorithm.step_size, friction=algorithm.friction, W=algorithm.mixing)


def _age(algorithm: Any) -> int:
    staleness = as_staleness(algorithm.staleness)
    if not isinstance(staleness, Fixed):
        raise ValueError(f"staleness={shown(algorithm.staleness)} must be one age: that of past(x, age) does "
                         "not change from round to round")
    return staleness.tau


@says(StaleSGLD)
def _stale_sgld(algorithm: StaleSGLD) -> Any:
    return stale_sgld(step_size=algorithm.step_size, age=_age(algorithm))


@says(StaleSGHMC)
def _stale_sghmc(algorithm: StaleSGHMC) -> Any:
    return stale_sghmc(step_size=algorithm.step_size, friction=algorithm.friction, age=_age(algorithm))
