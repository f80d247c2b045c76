"""FA-HMC's test problems."""

from __future__ import annotations

import numpy as np

from ...settings.alignment import together
from ...settings.limits import refuse_bytes
from ...settings.validation import array, one_of, positive, shape, whole
from ..quadratic import Quadratic
from ..regression import LogisticRegression


def fa_hmc_two_groups(dim: int = 1, *, curvatures: object = (1.0, 0.25), minimizers: object = (2.0, 1.0),
                      n_clients: int = 2) -> Quadratic:
    """Two groups of equal size: clients with posterior N(b 1, I/a), a and b the group's own numbers.

    It is the worst case of FA-HMC's lower bound. All coordinates are alike and independent, so that W2
    in dimension d is sqrt(d) times W2 in dimension one.

    Parameters
    ----------
    dim : int
        d.
    curvatures : (2,)
        a of each group, the bound's L and mu. The paper does not give numbers; the default is ours.
    minimizers : (2,)
        b of each group in every coordinate, the bound's theta_L and theta_mu; the default is ours.
    n_clients : int
        N, even; without private noise the law of the average does not depend on it.

    Returns
    -------
    Quadratic
        Isotropic Hessians, weights 1/N, no gradient noise.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: Theorem I.1 of FA-HMC's supplement.

    Examples
    --------
    >>> target = fs.papers.fa_hmc_two_groups(3).target()
    >>> target.mean.round(6).tolist(), target.variances.round(6).tolist()
    ([1.8, 1.8, 1.8], [1.6, 1.6, 1.6])
    """
    size = whole("dim", dim, 1)
    clients = whole("n_clients", n_clients, 2)
    if clients % 2:
        raise ValueError(f"n_clients={clients} must be even: the two groups are equally large")
    refuse_bytes(64.0 * size * clients, f"dim={dim!r} of n_clients={n_clients!r} clients", "use fewer")
    curvatures, minimizers = together(0, curvatures=curvatures, minimizers=minimizers)
    values = shape("curvatures", array("curvatures", curvatures, 1), (2,))
    for value in values:
        positive("curvatures", value)
    centres = shape("minimizers", array("minimizers", minimizers, 1), (2,))
    group = np.arange(clients) // (clients // 2)
    return Quadratic(values[group, None].repeat(size, axis=1), centres[group, None].repeat(size, axis=1))


def fa_hmc_gaussian(dim: int = 2, *, variance: float = 4.0, n_clients: int = 2) -> Quadratic:
    """FA-HMC's Gaussian experiment: half of the posteriors N(20 1, I), the others N(1, variance I).

    Parameters
    ----------
    dim : int
        d; the paper takes 2, 50, 100, ..., 1000.
    variance : float
        4 gives the overall posterior N(16.2 1, 1.6 I) that the paper states. It prints the second group's
        covariance as 2 I, which would give N(13.67 1, 1.33 I): 2 is its standard deviation.
    n_clients : int
        N, even. The paper does not print it; with shared momentum it does not matter.

    Returns
    -------
    Quadratic
        Isotropic Hessians, weights 1/N, no gradient noise.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-HMC section 5.2 and figure 2.

    Examples
    --------
    >>> target = fs.papers.fa_hmc_gaussian(2).target()
    >>> target.mean.round(6).tolist(), target.variances.round(6).tolist()
    ([16.2, 16.2], [1.6, 1.6])
    """
    precision = 1.0 / positive("variance", variance)
    return fa_hmc_two_groups(dim, curvatures=(1.0, precision), minimizers=(20.0, 1.0), n_clients=n_clients)


def fa_hmc_logistic(dim: int = 1000, seed: int = 0, *, n_data: int = 1000, n_clients: int = 20,
                    prior_variance: float = 1.0, feature_norm: float = 1.0,
                    gradient_noise: float | None = None, coefficients: str = "prior") -> LogisticRegression:
    """FA-HMC's logistic regression: simulated data, split equally.

    Parameters
    ----------
    dim : int
        d, 1000 or 10 in the paper.
    seed : int
        Of the data.
    n_data, n_clients : int
        1000 and 20 in the paper; the second must divide the first.
    prior_variance : float
        Of each coefficient, normal; 1 by the cited paper's public code.
    feature_norm : float
        Every row of features is uniform on the sphere of this radius; 1 by the same code.
    gradient_noise : float, optional
        Standard deviation per coordinate of the noise added to every gradient of f_(c), the client's
        energy divided by its weight; 10 in the paper's runs with stochastic gradients.
    coefficients : "prior" or "unit"
        Given which labels are drawn: from the prior, or uniform on the unit sphere, which is the cited
        paper's law. The two share their random numbers.

    Returns
    -------
    LogisticRegression
        Weights 1/N.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-HMC section 5.1 and figure 1. Its text prints neither the data's law nor the prior and cites
    Mangoubi and Vishnoi (2018): "unit" with the other defaults is the law of that paper's public code.

    Examples
    --------
    >>> fs.papers.fa_hmc_logistic(10, gradient_noise=10.0)
    LogisticRegression(n_clients=20, dim=10, 1000 data)
    """
    size, rows, clients = whole("dim", dim, 1), whole("n_data", n_data, 1), whole("n_clients", n_clients, 1)
    if rows % clients:
        raise ValueError(f"n_clients={clients} must divide n_data={rows}: the data are split equally")
    refuse_bytes(40.0 * rows * size, f"dim={dim!r} of n_data={n_data!r} data", "use fewer of them")
    spread, norm = positive("prior_variance", prior_variance), positive("feature_norm", feature_norm)
    unit = one_of("coefficients", coefficients, ("prior", "unit")) == "unit"
    rng = np.random.default_rng(whole("seed", seed))
    # the data of different laws share their random numbers
    draws = rng.standard_normal(size)
    true = draws / np.linalg.norm(draws) if unit else np.sqrt(spread) * draws
    directions = rng.standard_normal((rows, size))
    features = directions / np.linalg.norm(directions, axis=1, keepdims=True) * norm
    with np.errstate(over="ignore"):  # a chance of 0
        labels = (rng.random(rows) < 1.0 / (1.0 + np.exp(-features @ true))).astype(np.float64)
    return LogisticRegression(features, labels, np.repeat(np.arange(clients), rows // clients),
                              prior_variance=spread, gradient_noise=gradient_noise)
