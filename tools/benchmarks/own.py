"""Samplers of one's own, which no package has: EXTRA- and DIGing-SGLD on a ring, written in the notation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .gossip import GossipCase, GossipTables


@dataclass(frozen=True)
class OwnTables(GossipTables):
    """As of gossip, with full gradients. `method` is "extra" or "diging"; the last two are wrong programs."""

    method: str = "extra"
    forgets: bool = False
    new_gradient_twice: bool = False

    @property
    def is_right(self) -> bool:
        """Is this the algorithm, rather than a wrong program?"""
        return not (self.forgets or self.new_gradient_twice)

    def mutations(self) -> dict[str, GossipTables]:
        """Descriptions of wrong programs, which the law test has to catch."""
        wrong: dict[str, GossipTables] = {
            "noise sqrt(2) too large": replace(self, temperature=2 * self.temperature),
            "one iteration too many": replace(self, late_rounds=1),
            "no gossip": replace(self, share=0.0),
            "the second vector is forgotten": replace(self, forgets=True)}
        if self.method == "diging":
            wrong["the last gradient is not taken off"] = replace(self, new_gradient_twice=True)
        return wrong


@dataclass(frozen=True, kw_only=True)
class OwnCase(GossipCase):
    """A sampler of one's own."""

    method: str
    contestants = ("fedsim", "fedsim single", "NumPy", "JAX tuned", "JAX own normals")

    def tables(self) -> OwnTables:
        """The data of DE-SGLD's benchmark."""
        given = super().tables()
        return OwnTables(given.features, given.targets, given.prior_variance, given.step_size,
                         method=self.method)


def _case(name: str, method: str, title: str) -> OwnCase:
    return OwnCase(
        name=name, title=f"{title}, linear regression, N=100, d=2, ring, 100 replicas, 2,000 iterations, as "
        "a function of `fs.sampler`", n_clients=100, n_data=50, dim=2, step_size=0.002, n_replicas=100,
        n_rounds=2000, check_replicas=32768, check_rounds=16, method=method,
        fractions={"NumPy": 1 / 2, "JAX tuned": 1 / 4, "JAX own normals": 1 / 2})


CASES = (_case("extra", "extra", "EXTRA-SGLD"), _case("diging", "diging", "DIGing-SGLD"))


def ring_and_step(t: OwnTables) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mixing matrix, eta A_i (N, d, d) and eta A_i b_i (N, d)."""
    hessians, pulls = t.quadratic()
    return t.mixing(), t.step_size * hessians, t.step_size * pulls
