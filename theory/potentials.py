"""Facts about the potentials of a problem, one function for each class of problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import Array

from .exact.tables import at


@dataclass(frozen=True)
class Potentials:
    """Facts about the f_(c) of a problem, from which every convention follows.

    Attributes
    ----------
    curvature : (N, 2)
        Smallest and largest curvature of every f_(c).
    global_curvature : (2,)
        Those of f = sum_c w_c f_(c).
    minimizer : (d,)
        Of f.
    gradients : (N, d)
        grad f_(c) at the minimizer.
    noise_traces : (N,)
        E||noise||^2 of an evaluation of grad f_(c).
    gaps_at_origin : (N,) or None
        f_(c)(0) - min f_(c), or an upper bound of it.
    """

    curvature: Array
    global_curvature: Array
    minimizer: Array
    gradients: Array
    noise_traces: Array
    gaps_at_origin: Array | None = None


@singledispatch
def potentials(problem: Any) -> Potentials:
    """Facts about a problem's potentials; register a new class of problem with ``potentials.register``."""
    raise ValueError(f"problem={problem!r} has no known constants; make a theory.Constants by hand")


@potentials.register
def _of_quadratic(problem: Quadratic) -> Potentials:
    dense = problem.structure == "dense"
    hessians = problem.hessians if dense else problem.diagonal_hessians
    spectrum: Any = np.linalg.eigvalsh if dense else np.sort
    local, overall = spectrum(hessians), spectrum(problem.mean_hessian)
    times = at if dense else np.multiply
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not known
        gradients = times(hessians, problem.minimizer - problem.minimizers)
        at_origin = 0.5 * (problem.minimizers * times(hessians, problem.minimizers)).sum(axis=1)
    noise = problem.gradient_noise
    if noise is None:
        traces = np.zeros(problem.n_clients)
    elif np.ndim(noise) == 0:
        traces = np.full(problem.n_clients, noise**2 * problem.dim)
    else:
        traces = np.trace(noise, axis1=1, axis2=2)
    gaps = np.maximum(at_origin, 0.0) if np.isfinite(at_origin).all() else None
    return Potentials(local[:, [0, -1]], overall[[0, -1]], problem.minimizer, gradients,
                      np.maximum(traces, 0.0), gaps)
