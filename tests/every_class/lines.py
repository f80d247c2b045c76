"""Clients on the line that are not quadratic, with all that can be drawn of them.

Of `jump` the second derivative goes from m to L within `width`; of `log_cosh` it is L about a point and m
far from it; of `logistic` it is a regression's. So statements that claim all clients meet a third derivative
of any size.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

import fedsim as fs
import theory

Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Client:
    """f', f'' and f of a client, and gradients that may be drawn in place of f', equally likely."""

    slope: Curve
    bend: Curve
    height: Curve
    drawn: tuple[Curve, ...] = ()

    @property
    def gradients(self) -> tuple[Curve, ...]:
        """What may be evaluated, but for normal noise."""
        return self.drawn or (self.slope,)


def jump(m: float, L: float, at: float, width: float, up: bool = True) -> Client:
    """f'' = m + (L - m)(1 + z/sqrt(1 + z^2))/2 at z = (x - at)/width, or the same mirrored."""
    side = 1.0 if up else -1.0

    def z(x: np.ndarray) -> np.ndarray:
        return side * (x - at) / width

    def root(x: np.ndarray) -> np.ndarray:
        return np.hypot(1.0, z(x))

    half = 0.5 * (L - m)
    return Client(lambda x: m * (x - at) + half * ((x - at) + side * width * root(x)),
                  lambda x: m + half * (1.0 + z(x) / root(x)),
                  lambda x: 0.5 * (m + half) * (x - at) ** 2 + 0.5 * half * width**2 * (
                      z(x) * root(x) + np.arcsinh(z(x))))


def log_cosh(m: float, L: float, at: float, width: float) -> Client:
    """f'' = m + (L - m)/cosh(z)^2."""
    def z(x: np.ndarray) -> np.ndarray:
        return (x - at) / width

    return Client(lambda x: m * (x - at) + (L - m) * width * np.tanh(z(x)),
                  lambda x: m + (L - m) / np.cosh(np.clip(z(x), -300.0, 300.0)) ** 2,
                  lambda x: 0.5 * m * (x - at) ** 2 + (L - m) * width**2 * (np.logaddexp(z(x), -z(x))))


def _of_rows(X: np.ndarray, y: np.ndarray, ridge: float, scale: float, problem: Any) -> Client:
    """Logistic losses of rows, a prior's share `ridge` x^2/2, all times `scale`."""
    def summed(part: Callable[..., Any], chosen: np.ndarray, factor: float = 1.0) -> Curve:
        rows, labels = X[chosen], y[chosen]
        return lambda x: factor * part(np.multiply.outer(x, rows), rows, labels).sum(axis=-1)

    def with_prior(curve: Curve, prior: Curve) -> Curve:
        return lambda x: scale * (curve(x) + ridge * prior(x))

    def slope(score: Any, rows: Any, labels: Any) -> Any:
        return (expit(score) - labels) * rows

    every, n = np.arange(len(X)), len(X)
    drawn: tuple[Curve, ...] = ()
    if problem.batch_size is not None:
        draw = itertools.product if problem.replace else lambda data, repeat: itertools.combinations(
            data, repeat)
        drawn = tuple(with_prior(summed(slope, np.array(chosen), n / problem.batch_size), lambda x: x)
                      for chosen in draw(every, repeat=problem.batch_size))
    return Client(
        with_prior(summed(slope, every), lambda x: x),
        with_prior(summed(lambda s, r, _: expit(s) * expit(-s) * r**2, every), np.ones_like),
        with_prior(summed(lambda s, _, label: np.logaddexp(0.0, s) - label * s, every), lambda x: 0.5 * x**2),
        drawn)


@dataclass(frozen=True)
class Line:
    """Clients, their weights, normal noise of each f_(c)', and what is known of them all.

    `bound` is the Lipschitz constant of f''. `problem` is None where constants are made by hand. `kinks` are
    where f'' jumps.
    """

    clients: tuple[Client, ...]
    weights: np.ndarray
    noise: float
    m: float
    L: float
    bound: float | None
    problem: Any = None
    together: Client | None = None
    kinks: tuple[float, ...] = ()

    @cached_property
    def whole(self) -> Client:
        """f; minibatches are drawn from all data."""
        if self.together is not None:
            return self.together
        parts = list(zip(self.weights, self.clients, strict=True))
        return Client(*(lambda x, name=name: sum(w * getattr(c, name)(x) for w, c in parts)
                        for name in ("slope", "bend", "height")))

    @cached_property
    def minimizer(self) -> float:
        """Of f."""
        return float(brentq(lambda x: float(self.whole.slope(np.array(x))), -50.0, 50.0, xtol=1e-14))

    @cached_property
    def target(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and masses of exp(-f)."""
        x = self.minimizer + np.linspace(-9.0, 9.0, 6001) / np.sqrt(self.m)
        level = self.whole.height(x)
        mass = np.exp(level.min() - level)
        return x, mass / mass.sum()

    def scaled(self, convention: str) -> tuple[list[Client], np.ndarray, float]:
        """Clients that are followed, factors of f_(c), and the noise's sizes."""
        if convention == "global":
            return [self.whole], np.ones(1), self.noise * float(np.sqrt((self.weights**2).sum()))
        return list(self.clients), self.weights if convention == "components" else np.ones(
            len(self.clients)), self.noise

    def constants(self, algorithm: Any, start: float, bound: float | None = None) -> theory.Constants:
        """`theory.constants`, or by hand; L_H where it is given."""
        more = {} if bound is None or "hessian_smoothness" not in FIELDS else {"hessian_smoothness": bound}
        if self.problem is not None:
            return dataclasses.replace(theory.constants(self.problem, algorithm, [start]), **more)
        convention = algorithm.convention
        clients, factors, noise = self.scaled(convention)
        x, mass = self.target
        at = np.array(self.minimizer)
        weights = np.ones(1) if convention == "global" else self.weights
        return theory.Constants(
            dim=1, strong_convexity=self.m * factors.min(), smoothness=self.L * factors.max(),
            weights=weights, gradient_at_minimizer=np.array(
                [[factor * float(c.slope(at))] for factor, c in zip(factors, clients, strict=True)]),
            gradient_noise_traces=(factors * noise) ** 2, initial_distance=abs(start - self.minimizer),
            initial_second_moment=start**2, initial_w2=float(np.sqrt((x - start) ** 2 @ mass)),
            gaps_at_origin=[f * float(c.height(np.zeros(1))[0] - c.height(np.append(x, 0.0)).min())
                            for f, c in zip(factors, clients, strict=True)],
            minimizer=[self.minimizer], convention=convention, **more)


FIELDS = {field.name for field in dataclasses.fields(theory.Constants)}


def jumps(width: float, noise: float = 0.0, clients: int = 2) -> Line:
    """One client whose curvature jumps at 0, and one where it falls beside it."""
    made = (jump(1.0, 2.0, 0.0, width), jump(1.0, 2.0, 0.7, width, up=False))[:clients]
    shares = np.array([0.4, 0.6]) if clients == 2 else np.ones(1)
    return Line(made, shares, noise, 1.0, 2.0, 0.5 / width, kinks=(0.0, 0.7)[:clients])


def cosh(noise: float = 0.0) -> Line:
    """Two clients, 0.3 wide, of curvature 1 to 4."""
    third = 3.0 / 0.3 * 4.0 / (3.0 * np.sqrt(3.0))
    return Line((log_cosh(1.0, 4.0, -0.4, 0.3), log_cosh(1.0, 4.0, 0.8, 0.3)), np.array([0.3, 0.7]), noise,
                1.0, 4.0, third)


def regression(problem: fs.LogisticRegression) -> Line:
    """Those of a logistic regression with one feature."""
    X, y, w = problem.features[:, 0], problem.labels, problem.weights
    ridge = 1.0 / (problem.prior_variance * problem.n_clients)
    clients = tuple(_of_rows(X[problem.clients == c], y[problem.clients == c], ridge, 1.0 / w[c], problem)
                    for c in range(problem.n_clients))
    whole = _of_rows(X, y, 1.0 / problem.prior_variance, 1.0, problem)
    m, L = problem.curvature_bounds()
    sums = [(np.abs(X[problem.clients == c]) ** 3).sum() / w[c] for c in range(problem.n_clients)]
    return Line(clients, w, problem.gradient_noise or 0.0, m, L, 0.0962251 * max(sums), problem, whole)
