"""What gradients of one's own cost beside `fedsim.Quadratic`: the table of docs/own_problems.md.

    python docs/own_speed.py          some two minutes on a quiet machine; rewrites the table

One process and one thread, 20 clients, 640 replicas; medians of paired ratios of processor time, with the
smallest and the largest. The gradients are written in loops over coordinates, as tests/own_gradients.py has
them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import fedsim as fs

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
PAGE, BEGIN, END = HERE / "own_problems.md", "<!-- speed -->\n", "<!-- end of speed -->\n"
CLIENTS, REPLICAS, REPEATS = 20, 640, 9
ALGORITHMS = {"FA-LD, K = 5": (fs.FALD(0.01, 5), 200, 5), "FA-HMC, 3 leapfrog steps, T = 2": (
    fs.FAHMC(0.05, 3, 2), 200, 6), "DE-SGLD, ring": (fs.DESGLD(0.005, fs.network.ring(CLIENTS)), 1000, 1)}
KINDS = {"1": ("diagonal", 1), "2, diagonal": ("diagonal", 2), "2, dense": ("dense", 2),
         "5, diagonal": ("diagonal", 5), "5, dense": ("dense", 5), "10, dense": ("dense", 10)}


def pair(structure: str, dim: int) -> tuple[Any, Any]:
    """A quadratic problem, and the same by its gradient."""
    import own_gradients as own
    from problems import quadratic

    problem = quadratic(CLIENTS, dim, structure)
    hessians = problem.dense_hessians if structure == "dense" else problem.diagonal_hessians
    if dim == 1:
        data = hessians[:, 0].copy(), problem.minimizers[:, 0].copy()
    else:
        data = hessians, problem.minimizers
    function = own.line if dim == 1 else own.dense if structure == "dense" else own.diagonal
    return problem, fs.Custom(function, CLIENTS, dim, data=data, weights=problem.weights, curvature=10.0)


def seconds(problem: Any, algorithm: Any, n_rounds: int) -> float:
    """Processor time of a run."""
    begin = time.process_time()
    fs.simulate(problem, algorithm, n_rounds, REPLICAS, seed=1, threads=1, record=(), covariance="none",
                allow_unstable=True)
    return time.process_time() - begin


def row(name: str, algorithm: Any, n_rounds: int, gradients: int) -> str:
    """One line of the table: nanoseconds of a gradient with its step, and the ratio, for each kind."""
    cells = []
    for structure, dim in KINDS.values():
        both = pair(structure, dim)
        for problem in both:
            seconds(problem, algorithm, 2)
        times = np.array([[seconds(problem, algorithm, n_rounds) for problem in both]
                          for _ in range(REPEATS)])
        unit = 1e9 / (n_rounds * REPLICAS * CLIENTS * gradients)
        ratios, (one, other) = times[:, 1] / times[:, 0], np.median(times, axis=0) * unit
        cells.append(f"{one:.1f}, {other:.1f}: **{np.median(ratios):.2f}** ({ratios.min():.2f} to "
                     f"{ratios.max():.2f})")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, and put the table into the page."""
    lines = [f"| ns of Quadratic, of Custom: ratio | {' | '.join(f'd = {kind}' for kind in KINDS)} |",
             f"|---|{'---|' * len(KINDS)}", *(row(name, *given) for name, given in ALGORITHMS.items())]
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    table = "\n".join(lines) + "\n"
    print(table)
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
