"""Quadratic clients and starts of a class, read from the cube."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array

from .classes import ProblemClass
from .cube import Cube


def quadratic(cube: Cube, cls: ProblemClass, *, components: bool = False, equal: bool = False,
              one: bool = False) -> tuple[Quadratic, float]:
    """Clients of a class, and their unit of length.

    `components`: the class is about f_i = f_(i)/N. `equal`: weights are. `one`: a single client.
    """
    n, dim = 1 if one else cls.n_clients, cls.dim
    scale = cube.log("units", 1.0 / cls.units, cls.units)
    hessians = _hessians(cube, cls, n)
    weights = None
    if cls.weights == "free" and not (equal or components) and n > 1:
        parts = np.exp([0.0, *(6.0 * (2.0 * cube.units("weight", n - 1) - 1.0))])
        weights = parts / parts.sum()
    minimizers: Any = np.zeros((n, dim))
    if cls.heterogeneity is None:
        minimizers[1:] = cube.signed("minimizer", cls.minimizers, n - 1, dim)
    elif n > 1:
        gradients = _gradients(cube, cls, n, np.full(n, 1.0 / n) if weights is None else weights)
        minimizers = -(np.linalg.solve(hessians, gradients[..., None])[..., 0] if cls.rotated
                       else gradients / hessians)
    noise = cube.or_zero("gradient_noise", cls.gradient_noise, 0.2)
    follows = n if components else 1
    return Quadratic(hessians * (follows / scale**2), minimizers * scale, weights,
                     noise * (follows / scale) if noise else None), scale


def _hessians(cube: Cube, cls: ProblemClass, n: int) -> Array:
    """(N, d) diagonals, or (N, d, d) where the class turns the eigenvectors of all clients but the first."""
    dim, kappa = cls.dim, cls.condition
    values = np.ones((n, dim))
    if kappa > 1.0:
        values = np.minimum(kappa ** cube.units("curvature", n, dim), kappa)
    if not cls.rotated:
        return values
    angles = np.pi * np.array([0.0, *cube.units("angle", n - 1)])
    cos, sin = np.cos(angles), np.sin(angles)
    turns = np.array([[cos, -sin], [sin, cos]])
    turned = np.einsum("ijc,cj,kjc->cik", turns, values, turns)
    return np.asarray(0.5 * (turned + turned.transpose(0, 2, 1)))


def _gradients(cube: Cube, cls: ProblemClass, n: int, weights: Array) -> Array:
    """(N, d) at the global minimizer, whose average is 0; in half of the cube the largest norm is reached."""
    raw = 2.0 * cube.units("gradient", n, cls.dim) - 1.0
    centred = raw - weights @ raw
    size = float(np.sqrt((centred**2).sum(axis=1).max()))
    assert cls.heterogeneity is not None
    return centred * (cls.heterogeneity * min(1.0, 2.0 * size) / size if size else 0.0)


def point(cube: Cube, cls: ProblemClass, problem: Quadratic, scale: float) -> Any:
    """The start: a point, or a normal law around it."""
    mean = problem.minimizer + scale * cube.signed("start", cls.start, cls.dim)
    variance = scale**2 * cube.or_zero("start_variance", cls.start_variance, 0.3)
    return Gaussian(mean, np.full(cls.dim, variance)) if variance else mean


def points(cube: Cube, cls: ProblemClass, problem: Quadratic, scale: float) -> Any:
    """The start of all clients, or in half of the cube a point for each."""
    if cls.start == 0.0:
        return point(cube, cls, problem, scale)
    own = cube.unit("start_of_each") > 0.5
    common = point(cube, cls, problem, scale)
    apart = scale * cube.signed("start_apart", cls.start, cls.n_clients, cls.dim)
    mean = common.mean if isinstance(common, Gaussian) else common
    return mean + apart - apart.mean(axis=0) if own else common
