"""Faults in the coupling recursions."""

from . import Fault

TWINS = ("tests/test_recursions.py",)
TUNING = ("tests/test_tuning_by_recursion.py",)
CERTIFICATE = ("tests/test_contraction.py",)
LANGEVIN, FEDERATED = "theory/recursions/langevin.py", "theory/recursions/federated.py"
FA_LD, COUPLED = "theory/fa_ld/recursion.py", "theory/fa_hmc/coupled.py"
GOSSIP, MOMENTUM = "theory/decentralized/sgld/recursion.py", "theory/decentralized/sghmc/recursion.py"

FAULTS = [
    Fault("recursions: L for r in the coupling", LANGEVIN,
          "drift, A = h * f.radius * gap, near + less", "drift, A = h * f.smoothness * gap, near + less",
          TWINS),
    Fault("recursions: what is predicted, without 2 A", LANGEVIN,
          "wander = 2.0 * A * predicted + total", "wander = predicted**2 + total", TWINS),
    Fault("recursions: the wandering with 1/3 for 2/3", LANGEVIN,
          "return 2.0 / 3.0 * cube, predicted", "return 1.0 / 3.0 * cube, predicted", TWINS),
    Fault("recursions: c_P cut off", LANGEVIN, "PREDICTED = 0.161393", "PREDICTED = 0.1613905", TWINS),
    Fault("recursions: the energy without temperature", LANGEVIN,
          "2.0 * L * f.dim * f.temperature * h * h", "2.0 * L * f.dim * h * h", TWINS),
    Fault("recursions: an unknown M read as 0", LANGEVIN,
          "if self.hessian_smoothness is not None:\n            drift = L * math.sqrt(L * d * tau) + "
          "tau * d * self.hessian_smoothness",
          "if True:\n            drift = L * math.sqrt(L * d * tau) + tau * d "
          "* (self.hessian_smoothness or 0.0)", TWINS),
    Fault("recursions: the clients' distance from the minimizer is not followed", FEDERATED,
          "E, R, Q = step.of(E).after, of_R.after, of_Q.after", "E, R, Q = step.of(E).after, of_R.after, 1e6",
          TWINS),
    Fault("recursions: the spread is forgotten before clients are drawn", FEDERATED,
          "between, most = self.drawn * S", "between, most = 0.0 * S", TWINS),
    Fault("recursions: several clients as one", FEDERATED,
          "least(S, Q) if self.clients > 1 else 0.0)", "0.0)", TWINS),
    Fault("recursions: noise of the average for that of the clients", FA_LD,
          "moved(far, more, all_heat + square * self.noises)",
          "moved(far, more, all_heat + square * self.noise)", TWINS),
    Fault("recursions: N for N - 1", FA_LD,
          "heat * apart * (self.clients - 1)", "heat * apart * self.clients", TWINS),
    Fault("recursions: all of the noise for what is not shared", FA_LD,
          "heat * apart * (self.clients - 1)", "heat * (self.clients - 1)", TWINS),
    Fault("trajectories: the integration error of the first kick is not halved", COUPLED,
          "later = 2.0 * jump", "later = jump", TWINS),
    Fault("trajectories: gradient noise of one draw less", COUPLED,
          "(ks - 1) * ks * (2 * ks - 1) / 12.0", "(ks - 2) * (ks - 1) * (2 * ks - 3) / 12.0", TWINS),
    Fault("certificate: lower for both triangles", "theory/fa_hmc/contraction.py",
          "0.5 * (lower + lower.T)", "lower", CERTIFICATE),
    Fault("certificate: never refused", "theory/fa_hmc/contraction.py",
          "return self.margin >= -ROUNDING * self.leapfrog_steps", "return self.margin >= -0.5", CERTIFICATE),
    Fault("gossip: Gamma by the problem's weights", "theory/decentralized/recursion.py",
          "gradients_at_minimizer(constants, np.full(N, 1.0 / N))",
          "gradients_at_minimizer(constants, constants.weights)", TWINS),
    Fault("gossip: the average among the modes", "theory/decentralized/recursion.py",
          "return cls(f, mu, L, values[:-1]", "return cls(f, mu, L, np.maximum(values[:-1], 0.9)", TWINS),
    Fault("gossip: pushes without Gamma", GOSSIP,
          "eta * (c.r * (near + beyond) + c.gradients)", "eta * c.r * (near + beyond)", TWINS),
    Fault("momentum: the cascade without its first stage", MOMENTUM,
          "moved(sp, (b - 1.0) * sp + y + rise, 0.0)", "moved(sp, (b - 1.0) * sp + rise, 0.0)", TWINS),
    Fault("momentum: a start apart is forgotten", MOMENTUM,
          "given.variance**0.5 + given.start + root(state[6])", "given.variance**0.5 + root(state[6])",
          TWINS),
    Fault("stale: the lag without its noise", "theory/stale/updates.py",
          "return moved + self.h * math.sqrt(self.noise * age)", "return moved", TWINS),
    Fault("tangents: not taken anew", "theory/recursions/rounds.py", "LOOSE = 0.01", "LOOSE = 100.0", TWINS),
    Fault("tangents: an error may be as large as the whole way", "theory/recursions/rounds.py",
          "np.minimum(np.abs(after - start), after)", "np.abs(after - start)", TUNING),
    Fault("plans: one round less", "theory/recursions/catalogue.py",
          "                return now.number", "                return max(now.number - 1, 0)", TUNING),
    Fault("stale: a window that misses the oldest move", "theory/stale/updates.py",
          "for x in state[self.oldest + 1:]", "for x in state[self.oldest + 2:]", TWINS),
    Fault("floors: rounds are not followed", "theory/recursions/floor.py",
          "state = _along(recursion, given, scale)", "state = None", TWINS),
    Fault("plans: the friction for the momentum", "theory/tuning/best.py",
          "return replace(algorithm, step_size=step, friction=lost / step)",
          "return replace(algorithm, step_size=step)", TUNING),
    Fault("floors are not enlarged", "theory/recursions/floor.py",
          "state = state + ROOM * room / (room / state).max()", "state = 0.999 * state", TWINS),
]
