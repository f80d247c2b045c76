"""What every benchmark has in common. Only NumPy is imported where cases are described, so that a
contestant's peak memory is its own, and a peer with another interpreter can run them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

Same = TypeVar("Same", bound="Case")


class Problem(Protocol):
    """Everything that a contestant may know of a case."""

    def mutations(self) -> dict[str, Any]:
        """Descriptions of wrong programs, which the law test has to catch."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One benchmark.

    Attributes
    ----------
    n_rounds : int
        What fedsim runs. A contestant in `fractions` runs that fraction of it; rates are per step.
    check_replicas, check_rounds : int
        Size of the larger sample for the law test.
    fractions, replicas : dict
        From the contestant's name; `replicas` of those that cannot run all of them in reasonable time.
    notes : dict
        From the name of a contestant that computes something else, to how it differs: it is timed
        without being judged.
    """

    name: str
    title: str
    n_replicas: int
    n_rounds: int
    check_replicas: int
    check_rounds: int
    fractions: dict[str, float] = field(default_factory=dict)
    replicas: dict[str, int] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    contestants: ClassVar[tuple[str, ...]] = ()
    step: ClassVar[str] = "client-step"

    def tables(self) -> Any:
        """The problem, drawn from a fixed seed."""
        raise NotImplementedError

    def steps(self, n_rounds: int, n_replicas: int) -> int:
        """Steps of all replicas, in the unit that rates are given in."""
        raise NotImplementedError

    def normals(self, n_rounds: int) -> int:
        """Standard normals that the algorithm asks for."""
        raise NotImplementedError

    def rounds_of(self, contestant: str) -> int:
        """Rounds that this contestant runs in one timed run."""
        return max(1, round(self.n_rounds * self.fractions.get(contestant, 1.0)))

    def replicas_of(self, contestant: str) -> int:
        """Replicas that this contestant runs in one timed run."""
        return self.replicas.get(contestant, self.n_replicas)

    def shortened(self: Same, factor: float) -> Same:
        """The same case with fewer rounds, for development."""
        return replace(self, n_rounds=max(2, round(self.n_rounds * factor)))
