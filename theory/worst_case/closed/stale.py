"""Stale SGLD on one scalar client, every gradient 0 or 1 updates old.

With u = h a (step size times curvature) and noise N = 2 h + h^2 sigma^2, age 0 is x <- (1 - u) x + noise,
and age 1 is x_{l+1} = x_l - u x_{l-1} + noise, an AR(2) with stationary variance N (1 + u)/((1 - u) u (2 +
u)). The first update of age 1 takes its gradient at the start: x_1 = (1 - u) x_0, and noise of j updates
ago is passed on with c_0 = c_1 = 1, c_{j+1} = c_j - u c_{j-1}. The mean is the minimizer. Derived here
(Yule and Walker's equations); source of the algorithm: stale-gradient paper, equation (3).
"""

from __future__ import annotations

from fractions import Fraction

from fedsim.algorithms.stale import StaleSGLD
from fedsim.problems.quadratic import Quadratic

from .forms import Instance, Moments, Values, form, geometric


def contracts(v: Values) -> None:
    """u < 2 at age 0, u < 1 at age 1, without rounding."""
    step, curvature, age = v["step_size"], v["curvature"], v["staleness"]
    limit = 2 - age
    if Fraction(step) * Fraction(curvature) >= limit:
        most = f"{limit}/curvature={limit / curvature:.6g}"
        raise ValueError(f"step_size={step!r} must be less than {most} at the largest curvature "
                         f"{curvature!r} of the class and staleness={age}: beyond it no law is stationary")


def instance(v: Values) -> Instance:
    """Problem, algorithm and start of these floats."""
    problem = Quadratic([v["curvature"]], [[0.0]], None, v["gradient_noise"] or None)
    return Instance(problem, StaleSGLD(v["step_size"], v["staleness"]), float(v["start"]))


@form("stale", instance=instance, check=contracts, counts=("staleness",), curvatures=("curvature",),
      numbers=("step_size", "gradient_noise"), quantities=("stationary_w2", "w2", "variance_ratio"),
      apart=())
def stale(v: Values, n_rounds: int | None) -> list[Moments]:
    """The law of the iterate."""
    eta, a = v["step_size"], v["curvature"]
    u, noise = eta * a, eta * (2 + eta * v["gradient_noise"] ** 2)
    if n_rounds is None:
        own = u * (2 - u) if v["staleness"] == 0 else (1 - u) * u * (2 + u) / (1 + u)
        return [Moments(0 * u, noise / own, a)]
    if v["staleness"] == 0:
        left = 1 - u
        return [Moments((left**n_rounds * v["start"]) ** 2, noise * geometric(left**2, n_rounds), a)]
    older, mean = 1, 1 - u
    before, now, total = 0, 1, 1
    for number in range(1, n_rounds):
        older, mean = mean, mean - u * older
        before, now = (now, now) if number == 1 else (now, now - u * before)
        total = total + now**2
    return [Moments((mean * v["start"]) ** 2, noise * total, a)]
