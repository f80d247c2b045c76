"""Reference samples of a posterior without closed form: Metropolis-adjusted Hamiltonian Monte Carlo.

Plain NumPy, all chains at once, and nothing shared with the compiled samplers that it judges: the
accept-reject step makes the target exact, so that what is left is Monte Carlo error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fedsim.laws.distance import psd_sqrt
from fedsim.settings.validation import Array, array, positive, shape, whole


class Reference(NamedTuple):
    """Draws (n_draws, n_chains, d) of independent chains, and the share of accepted proposals."""

    draws: Array
    acceptance: float

    def pooled(self) -> Array:
        """All draws as one sample (n_draws * n_chains, d)."""
        return self.draws.reshape(-1, self.draws.shape[-1])

    def mean(self, function: Callable[[Array], Array] = lambda x: x) -> tuple[Array, Array]:
        """Mean of a function of the points (.., d) -> (.., k), and its standard error between chains."""
        chains = function(self.draws).mean(axis=0)
        return chains.mean(axis=0), chains.std(axis=0, ddof=1) / np.sqrt(len(chains))


def split_rhat(values: Any) -> float:
    """Between halves of chains against within them: near 1 where they have mixed.

    Parameters
    ----------
    values : (n_draws, n_chains)
        Of one function of the draws, at least 4 of each chain.

    Source: Gelman et al., Bayesian Data Analysis, third edition (2013), section 11.4.

    Examples
    --------
    >>> mixed = np.random.default_rng(1).standard_normal((500, 4))
    >>> bool(split_rhat(mixed) < 1.01), bool(split_rhat(mixed + [0, 0, 0, 5]) > 2.0)
    (True, True)
    """
    found = array("values", values, 2)
    half = len(found) // 2
    if half < 2:
        raise ValueError(f"values with {len(found)} draws of each chain must have at least 4")
    halves = np.concatenate([found[:half], found[-half:]], axis=1)
    within = halves.var(axis=0, ddof=1).mean()
    return float(np.sqrt((half - 1) / half + halves.mean(axis=0).var(ddof=1) / within))


def metropolis_hmc(potential: Callable[[Array], Array], gradient: Callable[[Array], Array], start: Any, *,
                   n_draws: int, seed: int, step_size: float = 0.3, leapfrog_steps: int = 5,
                   warmup: int = 50, scale: Any = None) -> Reference:
    """Sample exp(-potential) with independent chains.

    Parameters
    ----------
    potential, gradient : functions of points (n_chains, d), giving (n_chains,) and (n_chains, d)
    start : (n_chains, d)
    n_draws : int
        Kept updates of each chain.
    seed : int
        Of NumPy's generator.
    step_size : float
        Mean leapfrog step, in units of `scale`; each update draws it anew within 20 percent of that,
        so that no trajectory is periodic.
    leapfrog_steps, warmup : int
        Leapfrog steps of an update; updates before the first kept one.
    scale : (d, d), optional
        Covariance whose square root multiplies the momenta; the identity by default.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: Neal, MCMC using Hamiltonian dynamics, Handbook of Markov Chain Monte Carlo (2011), section 5.3.

    Examples
    --------
    >>> made = metropolis_hmc(lambda x: (x**2).sum(axis=-1) / 2, lambda x: x, np.zeros((200, 1)),
    ...                       n_draws=50, seed=1)
    >>> made.draws.shape, bool(abs(made.pooled().var() - 1.0) < 0.1)
    ((50, 200, 1), True)
    """
    x = array("start", start, 2).copy()
    dim = x.shape[1]
    step_size = positive("step_size", step_size)
    n_steps, n_draws = whole("leapfrog_steps", leapfrog_steps, 1), whole("n_draws", n_draws, 1)
    warmup = whole("warmup", warmup, 0)
    root = np.eye(dim) if scale is None else psd_sqrt(shape("scale", array("scale", scale, 2), (dim, dim)))
    rng = np.random.default_rng(whole("seed", seed))
    draws, accepted = np.empty((n_draws, *x.shape)), 0.0
    energy, slope = potential(x), gradient(x) @ root
    for update in range(warmup + n_draws):
        step = step_size * rng.uniform(0.8, 1.2, (len(x), 1))
        p = rng.standard_normal(x.shape)
        kinetic = 0.5 * (p**2).sum(axis=1)
        point, force = x, slope
        for _ in range(n_steps):
            p = p - 0.5 * step * force
            point = point + step * p @ root
            force = gradient(point) @ root
            p = p - 0.5 * step * force
        new_energy = potential(point)
        change = energy + kinetic - new_energy - 0.5 * (p**2).sum(axis=1)
        accept = -rng.standard_exponential(len(x)) < change  # a NaN is refused
        x = np.where(accept[:, None], point, x)
        energy, slope = np.where(accept, new_energy, energy), np.where(accept[:, None], force, slope)
        if update >= warmup:
            draws[update - warmup] = x
            accepted += accept.mean()
    return Reference(draws, accepted / n_draws)


def posterior_reference(problem: Any, *, n_chains: int = 200, n_draws: int = 200, seed: int = 0,
                        **options: Any) -> Reference:
    """Reference sample of a `fedsim.LogisticRegression`, from and in the scale of its Laplace law.

    `options` are those of `metropolis_hmc`.
    """
    law = problem.laplace()
    return metropolis_hmc(
        lambda x: problem.potential(None, x), lambda x: problem.gradient(None, x),
        law.sample(whole("n_chains", n_chains, 2), whole("seed", seed)), n_draws=n_draws, seed=seed + 1,
        **({"scale": law.cov} | options))
