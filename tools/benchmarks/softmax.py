"""Minibatch gradients of softmax regression: `python -m tools.benchmarks.softmax` rewrites the table of
docs/benchmarks.md.

One thread and one process, 16 replicas with a minibatch each, drawn anew. ``alone`` is a gradient of every
replica; ``a step`` is one of FA-LD with its normals. All contestants have to agree with `gradient` in NumPy
to 1e-10 on all data of a client. JAX takes part where it is installed. Times are of the processor, in pairs:
medians, and the smallest and largest ratio.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fedsim as fs
from fedsim.problems.gradients import exact_gradient, stochastic_gradient
from fedsim.random.streams import lane_set
from fedsim.vector.compile import compiled

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- softmax:begin -->\n", "<!-- softmax:end -->\n"
LANES, N_CLASSES, REPEATS = 16, 10, 9
CASES = {"digits, p = 65, b = 50": (64, 107, 50), "digits, p = 65, b = 107": (64, 107, 107),
         "MNIST's size, p = 785, b = 50": (784, 500, 50), "MNIST's size, p = 785, b = 200": (784, 500, 200)}
"""Pixels, data of a client, and of a minibatch."""


@compiled
def _gradients(problem, lanes, first, count, x, scratch, out):
    for step in range(first, first + count):
        stochastic_gradient(problem, lanes, 0, step, 0, x, scratch, out)


@compiled
def _exact(problem, x, scratch, out):
    exact_gradient(problem, 0, x, scratch, out)


class Work(NamedTuple):
    """A problem of one client, points (16, d), and the size of its minibatches."""

    problem: fs.SoftmaxRegression
    x: np.ndarray
    size: int

    @property
    def theta(self) -> np.ndarray:
        """The points as (16, C, p)."""
        return self.x.reshape(LANES, N_CLASSES, -1)


def work_of(pixels: int, n_data: int, size: int) -> Work:
    """Random pixels, a fifth of them not zero, with an intercept."""
    rng = np.random.default_rng(pixels + size)
    rows = rng.random((n_data, pixels)) * (rng.random((n_data, pixels)) < 0.2)
    features = np.column_stack([rows, np.ones(n_data)])
    problem = fs.SoftmaxRegression(features, np.arange(n_data) % N_CLASSES, np.zeros(n_data, int),
                                   prior_variance=1.0, batch_size=size)
    return Work(problem, 0.3 * rng.standard_normal((LANES, problem.dim)), size)


def with_fedsim(work: Work) -> Callable[[int], Any]:
    """Compiled gradients, evaluated so many times."""
    arrays, rows = work.problem._arrays(), np.ascontiguousarray(work.x.T)
    scratch, out = work.problem._scratch(work.problem.dim, LANES, np.float64), np.empty_like(rows)
    _exact(arrays, rows, scratch, out)
    _agrees("fedsim", work, out.T)
    return lambda count: _gradients(arrays, lane_set(1, 0, LANES), 0, count, rows, scratch, out)


def _in_numpy(work: Work, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Gradients (16, C, p) from rows (16, b) of the data, all replicas in one product."""
    features = work.problem.features[rows]
    z = features @ theta.transpose(0, 2, 1)
    z -= z.max(axis=2, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=2, keepdims=True)
    np.put_along_axis(z, work.problem.labels[rows][..., None], np.take_along_axis(
        z, work.problem.labels[rows][..., None], axis=2) - 1.0, axis=2)
    scale = len(work.problem.labels) / rows.shape[1]
    made: np.ndarray = scale * (z.transpose(0, 2, 1) @ features) + theta
    return made


def with_numpy(work: Work) -> Callable[[int], Any]:
    """The same in NumPy."""
    rng, n, size = np.random.default_rng(1), len(work.problem.labels), work.size
    every = np.tile(np.arange(n), (LANES, 1))
    _agrees("NumPy", work, _in_numpy(work, work.theta, every).reshape(LANES, -1))

    def run(count: int) -> None:
        for _ in range(count):
            _in_numpy(work, work.theta, rng.integers(0, n, (LANES, size)))

    return run


def with_jax(work: Work, noise: float = 0.0) -> Callable[[int], Any]:
    """The same in JAX, float64, compiled with a scan over evaluations; with `noise`, Langevin steps."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    features, labels = jnp.asarray(work.problem.features), jnp.asarray(work.problem.labels)
    n, size = len(labels), work.size

    def gradient(theta: Any, rows: Any) -> Any:
        chosen = features[rows]
        slope = jax.nn.softmax(chosen @ theta.T) - jax.nn.one_hot(labels[rows], N_CLASSES)
        return n / rows.shape[0] * slope.T @ chosen + theta

    def step(theta: Any, key: Any) -> tuple[Any, None]:
        one, other = jax.random.split(key)
        rows = jax.random.randint(one, (LANES, size), 0, n)
        moved = theta - 1e-6 * jax.vmap(gradient)(theta, rows)
        return moved + noise * jax.random.normal(other, theta.shape) if noise else moved, None

    whole = jax.vmap(lambda theta: gradient(theta, jnp.arange(n)))(jnp.asarray(work.theta))
    _agrees("JAX", work, np.asarray(whole).reshape(LANES, -1))
    scan = jax.jit(lambda theta, keys: jax.lax.scan(step, theta, keys)[0])
    keys: dict[int, Any] = {}

    def run(count: int) -> None:
        if count not in keys:
            keys[count] = jax.random.split(jax.random.key(1), count)
        scan(jnp.asarray(work.theta), keys[count]).block_until_ready()

    return run


def steps_with_fedsim(work: Work) -> Callable[[int], Any]:
    """Steps of FA-LD by the engine."""
    return lambda count: fs.simulate(work.problem, fs.FALD(1e-6), count, LANES, seed=1, threads=1, record=(),
                                     covariance="none", allow_unstable=True)


def steps_with_numpy(work: Work) -> Callable[[int], Any]:
    """The same in NumPy."""
    rng, n, size = np.random.default_rng(1), len(work.problem.labels), work.size

    def run(count: int) -> None:
        theta = work.theta.copy()
        for _ in range(count):
            gradient = _in_numpy(work, theta, rng.integers(0, n, (LANES, size)))
            theta += np.sqrt(2e-6) * rng.standard_normal(theta.shape) - 1e-6 * gradient

    return run


def _agrees(name: str, work: Work, found: np.ndarray) -> None:
    wanted = work.problem.gradient(None, work.x)
    if np.abs(found - wanted).max() > 1e-10 * np.abs(wanted).max():
        raise SystemExit(f"{name}: another gradient")


def microseconds(run: Callable[[int], Any], count: int) -> float:
    """Processor time of a replica's evaluation."""
    begin = time.process_time()
    run(count)
    return (time.process_time() - begin) / count / LANES * 1e6


def row(name: str, runs: dict[str, Callable[[int], Any]]) -> str:
    """A line of the table: fedsim's time, the others' and their paired ratios."""
    counts = {}
    for contestant, run in runs.items():
        run(2)
        counts[contestant] = max(3, int(0.3e6 / (16 * max(microseconds(run, 3), 1.0))))
        run(counts[contestant])
    times = np.array([[microseconds(run, counts[key]) for key, run in runs.items()] for _ in range(REPEATS)])
    cells = [f"{np.median(times[:, 0]):.3g}"]
    for column in range(1, len(runs)):
        ratio = times[:, column] / times[:, 0]
        cells.append(f"{np.median(times[:, column]):.3g}: **{np.median(ratio):.2f}** ({ratio.min():.2f} to "
                     f"{ratio.max():.2f})")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, and put the table into the page."""
    has_jax = importlib.util.find_spec("jax") is not None
    names = ["fedsim", "NumPy", *(["JAX"] if has_jax else [])]
    lines = [f"| us of a replica | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for name, sizes in CASES.items():
        work = work_of(*sizes)
        alone = {"fedsim": with_fedsim(work), "NumPy": with_numpy(work)}
        steps = {"fedsim": steps_with_fedsim(work), "NumPy": steps_with_numpy(work)}
        if has_jax:
            alone["JAX"], steps["JAX"] = with_jax(work), with_jax(work, 1e-3)
        lines += [row(f"{name}: gradient alone", alone), row(f"{name}: a step of FA-LD", steps)]
        print("\n".join(lines[-2:]), flush=True)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table = "\n".join(lines) + "\n"
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
