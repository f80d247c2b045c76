"""Problems and laws that several test files take as examples."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

import fedsim as fs
from fedsim import network
from theory.declare.bound import Assumption, Bound

NETWORKS = {"complete": network.complete, "ring": network.ring, "path": network.path, "star": network.star,
            "disconnected": network.disconnected}
SCHEME_I, SCHEME_II = fs.Participation(2, True), fs.Participation(2, False)
SIGMA = np.array([[5.0, -2.0], [-2.0, 1.0]])
PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]],
                       [0.3, 0.7])
ALGORITHM = fs.FALD(0.1, 3, 1.0, 0.3)


def close(found, wanted, tol=1e-12):
    """Equal within `tol` of the largest entry."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tol * np.abs(wanted).max()


def gaussian_start(dim, diagonal=False):
    """A start with correlated (or independent) coordinates."""
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(dim, dim))
    cov = factor @ factor.T
    return fs.Gaussian(rng.normal(size=dim), np.diag(cov) if diagonal else 0.5 * (cov + cov.T))


def make_problem(structure="dense", n_clients=3, dim=2, noise=None, uniform=False, seed=0):
    """Random unequal clients with curvatures between 0.5 and 4."""
    rng = np.random.default_rng([seed, n_clients, dim])
    if structure == "dense":
        bases = np.linalg.qr(rng.normal(size=(n_clients, dim, dim)))[0]
        curvatures = rng.uniform(0.5, 4.0, size=(n_clients, 1, dim))
        hessians = (bases * curvatures) @ bases.transpose(0, 2, 1)
    else:
        hessians = rng.uniform(0.5, 4.0, size=(n_clients, dim)[: 2 if structure == "diagonal" else 1])
    weights = None if uniform else rng.dirichlet(np.full(n_clients, 5.0))
    if noise == "covariances":
        factor = rng.normal(size=(n_clients, dim, dim))
        noise = factor @ factor.transpose(0, 2, 1)
        noise = 0.5 * (noise + noise.transpose(0, 2, 1))
    return fs.Quadratic(hessians, 3.0 * rng.normal(size=(n_clients, dim)), weights, noise)


def random_quadratic(rng, shape, scale, kappa, kind, unequal, roughest):
    """A random quadratic of this shape (N, d): curvatures between scale and scale kappa.

    kind() is asked for its kind once the Hessians are drawn; 1: one Hessian for all, 2: coordinates apart,
    3: one minimizer. `unequal`: the probability of unequal weights, their concentration; `roughest`: the
    largest power of ten of gradient noise.
    """
    n, d = shape
    spectra = scale * kappa ** rng.uniform(0, 1, shape)
    frames = np.linalg.qr(rng.standard_normal((n, d, d)))[0]
    hessians = (frames * spectra[:, None, :]) @ np.swapaxes(frames, 1, 2)
    hessians = 0.5 * (hessians + np.swapaxes(hessians, 1, 2))
    kind = kind()
    if kind == 1:
        hessians = np.repeat(hessians[:1], n, axis=0)
    if kind == 2:
        hessians = spectra
    minimizers = 10.0 ** rng.uniform(-2, 2) / np.sqrt(scale) * rng.standard_normal(shape)
    if kind == 3:
        minimizers = np.repeat(minimizers[:1], n, axis=0)
    weights, (chance, concentration) = None, unequal
    if chance and rng.random() < chance:
        weights = rng.dirichlet(np.full(n, concentration)) + 1e-3
        weights = weights / weights.sum()
    noise = None
    if rng.random() < 0.5:
        roots = rng.standard_normal((n, d, d)) * np.sqrt(scale) * 10.0 ** rng.uniform(-2, roughest)
        noise = roots @ np.swapaxes(roots, 1, 2)
    return fs.Quadratic(hessians, minimizers, weights, noise)


def regression(batch_size, replace=True, grad_scale="unbiased", sizes=(3, 4), dim=2, weights=None, seed=20):
    """Linear regression with minibatches; one client's data after the other's."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((sum(sizes), dim))
    return fs.LinearRegression(features, features @ np.ones(dim) + rng.standard_normal(sum(sizes)),
                               np.repeat(np.arange(len(sizes)), sizes), noise_std=0.8, prior_variance=2.0,
                               batch_size=batch_size, replace=replace, grad_scale=grad_scale, weights=weights)


def posterior(kind, dim=3, sizes=(9, 4, 13), seed=0, weights=None, **options):
    """Linear or logistic regression whose clients own different, interleaved numbers of rows."""
    rng = np.random.default_rng(seed)
    clients = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    features = rng.standard_normal((len(clients), dim)) * rng.uniform(0.5, 2.0, dim)
    scores = features @ rng.standard_normal(dim)
    if kind == "linear":
        targets = scores + 0.7 * rng.standard_normal(len(clients))
        return fs.LinearRegression(features, targets, clients, noise_std=0.7, prior_variance=5.0,
                                   weights=weights, **options)
    labels = (rng.random(len(clients)) < expit(scores)).astype(int)
    return fs.LogisticRegression(features, labels, clients, prior_variance=5.0, weights=weights, **options)


def fa_ld_pair():
    """A problem whose constants are found by hand, and FA-LD for it."""
    problem = fs.Quadratic([[1.0, 2.0], [3.0, 1.5]], [[0.0, 1.0], [1.0, -1.0]], [0.25, 0.75],
                           gradient_noise=np.array([np.diag([1.0, 2.0]), np.eye(2)]))
    return problem, fs.FALD(0.02, local_steps=4, temperature=2.0, shared_noise=0.25)


def small_bound(**changes):
    """A bound of two terms at two rounds."""
    given = {"terms": {"a": [2.0, 1.0], "b": 1.0}, "rounds": np.array([0, 5]),
             "assumptions": (Assumption("x", True, 0.5),), "quantity": "w2", "kind": "upper",
             "source": "Theorem 0", "start_distance": 2.5, "floor": 1.0}
    return Bound.from_terms(**(given | changes))
