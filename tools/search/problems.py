"""Random quadratic problems and starts, in the ranges the bounds were derived and tried in."""

from __future__ import annotations

from typing import Any

import numpy as np

import fedsim as fs
from reproduce.random_settings import RANDOM

from .numbers import CLIENTS, DIM, Numbers

FAR = 30.0
"""Largest distance in units of the problem: beyond it float64 rounding looks like a violation."""


def frame(angles: np.ndarray, dim: int) -> np.ndarray:
    """A rotation (d, d), d up to 3, by up to three angles."""
    turn = np.eye(dim)
    for (i, j), angle in zip(((0, 1), (0, 2), (1, 2)), angles, strict=True):
        if j < dim:
            plane = np.eye(dim)
            plane[[i, i, j, j], [i, j, i, j]] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
            turn = turn @ plane
    return turn


def weights(n: Numbers, clients: int, equal: bool | None = None) -> np.ndarray | None:
    """Equal in 40% of the draws, else from a Dirichlet law, none below 0.1/N."""
    if n.coin("equal_weights", 0.4) if equal is None else equal:
        return None
    parts = -np.log(n.uniforms("weights", clients))
    return 0.9 * parts / parts.sum() + 0.1 / clients


def curvatures(n: Numbers, clients: int, dim: int) -> np.ndarray:
    """Eigenvalues (N, d) between 1 and kappa; either end is taken by some of them, kappa is 1 in a few."""
    kappa = n.log("condition", -0.15, np.log10(RANDOM.condition))
    return max(kappa, 1.0) ** np.clip(1.5 * n.uniforms("curvatures", clients, dim) - 0.25, 0.0, 1.0)


def gradient_noise(n: Numbers, clients: int, dim: int, size: float) -> Any:
    """None in half of the draws, else one size for all, or a covariance for each client."""
    kind = n.pick("noise_kind", (None, "equal", "own"), (0.5, 0.3, 0.2))
    if kind is None:
        return None
    size *= n.log("noise", -2.0, 1.0)
    if kind == "equal":
        return size
    parts = n.uniforms("noises", clients, dim)
    return size**2 * parts[:, :, None] * np.eye(dim)


def quadratic(n: Numbers, *, components: bool = False, equal: bool | None = None) -> fs.Quadratic:
    """N from 1 to 6, d from 1 to 3, kappa 10^U(0,3), rotated Hessians, minimizers 10^U(-2,2) apart, up to 30.

    `components`: these are the curvatures of w_c f_(c), in half of the draws.
    """
    clients, dim = n.whole("clients", 1, CLIENTS), n.whole("dim", 1, DIM)
    values = curvatures(n, clients, dim)
    scale = n.log("scale", -1.0, 1.0)
    kind = n.pick("frames", ("own", "common", "none"), (0.6, 0.2, 0.2))
    angles = n.uniforms("angles", clients, 3)
    if kind == "none":
        turns = np.broadcast_to(np.eye(dim), (clients, dim, dim))
    else:
        chosen = angles if kind == "own" else np.broadcast_to(angles[:1], angles.shape)
        turns = np.array([frame(2.0 * np.pi * each, dim) for each in chosen])
    hessians = scale * np.einsum("cij,cj,ckj->cik", turns, values, turns)
    shares = weights(n, clients, equal)
    size = min(n.log("minimizer_scale", -2.0, 2.0), FAR)
    minimizers = size / np.sqrt(scale) * n.normals("minimizers", clients, dim)
    if n.coin("same_minimizers", 0.1):
        minimizers = np.broadcast_to(minimizers[:1], minimizers.shape)
    if components and n.coin("units", 0.5):
        hessians = hessians / (1.0 / clients if shares is None else shares[:, None, None])
    noise = gradient_noise(n, clients, dim, float(np.sqrt(scale)))
    return fs.Quadratic(0.5 * (hessians + hessians.transpose(0, 2, 1)), minimizers, shares, noise)


def start(n: Numbers, problem: fs.Quadratic, target: fs.Gaussian, per_client: bool = False) -> Any:
    """At the origin, the target, its minimizer, a point, or a Gaussian, near or far; a point per client."""
    kinds = ("origin", "target", "minimizer", "point", "gaussian", "clients" if per_client else "point")
    kind = n.pick("start_kind", kinds)
    if kind == "origin":
        return None
    if kind == "target":
        return target
    if kind == "minimizer":
        return problem.minimizer
    size = min(n.log("start_scale", -2.0, 2.0), FAR) * float(np.sqrt(target.variances.sum()))
    away = size * n.normals("start", problem.n_clients if kind == "clients" else 1, problem.dim)
    if kind == "clients":
        return problem.minimizer + away
    if kind == "point":
        return problem.minimizer + away[0]
    return fs.Gaussian(problem.minimizer + away[0], size**2 * n.uniforms("spread", problem.dim))
