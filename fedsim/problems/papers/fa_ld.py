"""FA-LD's test problems.

Data sets that differ only in `alpha` or `spread` share their random numbers, so that curves differ by
the parameter and not by the draw.
"""

from __future__ import annotations

import numpy as np

from ...settings.alignment import square
from ...settings.limits import refuse_bytes
from ...settings.validation import Array, array, definite, nonnegative, shape, symmetric, whole
from ..quadratic import Quadratic

FA_LD_COVARIANCE = ((5.0, -2.0), (-2.0, 1.0))
"""Sigma, covariance of one observation in FA-LD's simulations."""

FA_LD_HETEROGENEITY = (0.0, 1.0, 10.0, 100.0, 1000.0)
"""Values of alpha in FA-LD's simulations."""


def _client_means(alpha: float, sizes: Array, cov: Array, rng: np.random.Generator) -> Array:
    """Data means of clients with `sizes` observations each, shape (N, d).

    Only the mean of a client's data enters its gradient, so it is drawn from its exact law
    N(theta_c, Sigma / n_c) instead of averaging n_c observations.
    """
    centres = np.sqrt(alpha) * rng.standard_normal((len(sizes), len(cov)))
    errors = rng.standard_normal((len(sizes), len(cov))) @ np.linalg.cholesky(cov).T
    return centres + errors / np.sqrt(sizes)[:, None]


def _covariance(covariance: object) -> Array:
    matrix = array("covariance", square("covariance", covariance), 2)
    checked = symmetric("covariance", shape("covariance", matrix, (len(matrix), len(matrix))))
    definite("covariance", np.asarray(np.linalg.eigvalsh(checked)[:1], dtype=np.float64))
    return checked


def fa_ld_simulation(alpha: float = 0.0, seed: int = 0, *, n_clients: int = 50, n_data: int = 1000,
                     covariance: object = FA_LD_COVARIANCE) -> Quadratic:
    """FA-LD's simulated problem: the mean of normal data that clients hold in equal shares.

    Client c draws theta_c from N(0, alpha I) and holds `n_data` observations from N(theta_c, Sigma).
    Its energy divided by its weight 1/N has Hessian n Sigma^-1, n = N n_data, *the same for every
    client*, and minimizer b_c, the mean of its data. The target is N(u, Sigma / n), u the mean of all data.

    Parameters
    ----------
    alpha : float
        Variance per coordinate of the clients' centres, at least 0. The paper takes 0, 1, 10, 100, 1000.
    seed : int
        Seed of the data. The same seed gives the same draws for every `alpha`.
    n_clients : int
        N, 50 in the paper.
    n_data : int
        Observations per client n_c. The paper does not print it; with 1000 the squared heterogeneity
        max_c |grad f_c(theta_*)|^2 agrees with the sizes it quotes (1e8 for alpha=0, 4e11 alpha beyond).
    covariance : (d, d)
        Sigma, positive definite; [[5, -2], [-2, 1]] in the paper.

    Returns
    -------
    Quadratic
        Weights 1/N, no gradient noise.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: On convergence of federated averaging Langevin dynamics, section 6 and appendix I.

    Examples
    --------
    >>> problem = fs.papers.fa_ld_simulation(alpha=1.0, seed=3)
    >>> bool(np.ptp(problem.hessians, axis=0).max() == 0.0)
    True
    """
    return fa_ld_unequal_curvature(alpha, seed, spread=0.0, n_clients=n_clients, n_data=n_data,
                                   covariance=covariance)


def fa_ld_unequal_curvature(alpha: float = 0.0, seed: int = 0, *, spread: float = 0.1, n_clients: int = 50,
                            n_data: int = 1000, covariance: object = FA_LD_COVARIANCE) -> Quadratic:
    """A variant of `fa_ld_simulation` in which the clients' Hessians differ.

    Client c holds n_c observations, n_c uniform around `n_data` with coefficient of variation
    `spread`, and keeps the weight 1/N. Its Hessian is then N n_c Sigma^-1 while the target is still
    the posterior N(u, Sigma / n) of all the data. (With weights n_c / n the Hessians would be equal.)

    Parameters
    ----------
    alpha, seed, n_clients, n_data, covariance
        As in `fa_ld_simulation`; the same seed gives the same centres and standardised errors.
    spread : float
        Coefficient of variation of the clients' data sizes, in [0, 0.57]. Zero is `fa_ld_simulation`.

    Returns
    -------
    Quadratic
        Weights 1/N, no gradient noise.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: not in the paper. It is the smallest change of section 6's set-up for which local steps,
    shared noise and heterogeneity do change the law of the average.

    Examples
    --------
    >>> problem = fs.papers.fa_ld_unequal_curvature(seed=3, spread=0.2)
    >>> bool(np.ptp(problem.hessians, axis=0).max() > 0.0)
    True
    """
    centre_variance = nonnegative("alpha", alpha)
    variation = nonnegative("spread", spread)
    if variation > 0.57:
        raise ValueError(f"spread={spread!r} must be at most 0.57: beyond 1/sqrt(3) a uniform law of "
                         "this coefficient of variation has negative data sizes")
    rng = np.random.default_rng(whole("seed", seed))
    clients = whole("n_clients", n_clients, 1)
    refuse_bytes(100.0 * clients, f"n_clients={clients}", "use fewer clients")
    mean_size = float(whole("n_data", n_data, 1))
    cov = _covariance(covariance)
    refuse_bytes(8.0 * clients * (6 * cov.size + 6 * len(cov)), f"n_clients={n_clients!r} of dimension "
                 f"{len(cov)}", "use fewer clients")
    # sizes come from their own stream: centres and errors are then those of fa_ld_simulation
    uniform = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, clients)
    sizes = np.maximum(np.rint(mean_size * (1.0 + np.sqrt(3.0) * variation * uniform)), 1.0)
    means, inverse = _client_means(centre_variance, sizes, cov, rng), np.linalg.inv(cov)
    return Quadratic((clients * sizes)[:, None, None] * (0.5 * (inverse + inverse.T)), means)
