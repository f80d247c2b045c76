"""The table of algorithms: a row is all that the inherited tests need.

From a row come kernel against slow twin, replicas against the exact law, the same bits however the work is
cut, input that must be refused, and mutants that must be caught.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import naive
import naive_decentralized
import naive_fa_hmc
import naive_stale
from cases import Example, Group, decentralized, fa_hmc, fa_ld, stale
from mutants import Mutants
from mutants.decentralized import DE_SGHMC, DE_SGLD
from mutants.fa_hmc import FA_HMC
from mutants.fa_ld import FA_LD
from mutants.stale import STALE_SGHMC, STALE_SGLD

import fedsim as fs


class Row(NamedTuple):
    """An algorithm as the tests know it.

    Attributes
    ----------
    twin : function (problem, algorithm, n_rounds, seed, replica, start, single)
        The plain second writing: what one replica does, (n_rounds + 1, d), or (n_rounds + 1, N, d) where
        every client has a law of its own.
    laws : dict of Example
        Cases with an exact law; the first is the plainest.
    n_rounds, n_replicas, seed, record
        Of the runs that are compared with the exact laws.
    mutants : Mutants
    groups : dict of Group
        Further options to compare with the twin.
    """

    twin: Callable[..., Any]
    laws: dict[str, Example]
    n_rounds: int
    n_replicas: int
    seed: int
    record: tuple[int, ...]
    mutants: Mutants
    groups: Mapping[str, Group] = MappingProxyType({})

    @property
    def plainest(self) -> Example:
        """The first case."""
        return next(iter(self.laws.values()))

    @property
    def bits(self) -> list[str]:
        """The plainest case, and one for each layout of coordinates that the others add."""
        layouts = {getattr(example.problem, "structure", "data"): name
                   for name, example in reversed(self.laws.items())}
        return sorted({next(iter(self.laws)), *layouts.values()})

    def path(self, *args: Any) -> Any:
        """The twin's path of the average, (n_rounds + 1, d)."""
        path = self.twin(*args)
        return path if path.ndim == 2 else path.mean(axis=1)


ROWS = {
    fs.FALD: Row(naive.fa_ld, fa_ld.LAWS, 8, 100_000, 11, (1, 2, 4), FA_LD, fa_ld.GROUPS),
    fs.FAHMC: Row(naive_fa_hmc.fa_hmc, fa_hmc.LAWS, 6, 60_000, 31, (1, 2, 3), FA_HMC, fa_hmc.GROUPS),
    fs.DESGLD: Row(naive_decentralized.de_sgld, decentralized.LAWS[fs.DESGLD], 8, 40_000, 51, (1, 2, 4),
                   DE_SGLD, decentralized.GROUPS[fs.DESGLD]),
    fs.DESGHMC: Row(naive_decentralized.de_sghmc, decentralized.LAWS[fs.DESGHMC], 8, 40_000, 51, (1, 2, 4),
                    DE_SGHMC, decentralized.GROUPS[fs.DESGHMC]),
    fs.StaleSGLD: Row(naive_stale.chain, stale.LAWS[fs.StaleSGLD], 12, 100_000, 31, (1, 3, 6), STALE_SGLD,
                      stale.GROUPS[fs.StaleSGLD]),
    fs.StaleSGHMC: Row(naive_stale.chain, stale.LAWS[fs.StaleSGHMC], 12, 100_000, 31, (1, 3, 6), STALE_SGHMC,
                       stale.GROUPS[fs.StaleSGHMC]),
}


def each(names: Callable[[Row], Any]) -> dict[str, Any]:
    """Arguments of `pytest.mark.parametrize`: every algorithm with each of the names that its row gives."""
    pairs = [(kind, name) for kind, row in ROWS.items() for name in names(row)]
    return {"argnames": ("kind", "name"), "argvalues": pairs,
            "ids": [f"{kind.__name__}: {name}" for kind, name in pairs]}
