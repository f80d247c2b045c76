"""Law: mean and covariance of the average iterate along time."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..provenance import Provenance
from ..settings.alignment import align_fields, square
from ..settings.validation import Array, flag, instance, set_fields, shape, shown, whole
from . import frames
from .gaussian import Gaussian as Gaussian
from .law_checks import check_law, kept
from .moments import w2_of
from .plots import draw_one
from .recording import recorded_rounds as recorded_rounds
from .storage import save_arrays

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


QUICK = 100
"""Dimensions up to which a readable line has W2."""


class NoTarget(ValueError):
    """The target law is not known in closed form."""


@dataclass(frozen=True, eq=False, repr=False)
class Law:
    """Mean and covariance of the average iterate at the recorded rounds.

    Attributes
    ----------
    rounds : (n,) int
        Communications made so far; round 0 is the start.
    mean : (n, d)
    cov : (n, d, d), (n, d) variances when only the diagonal is kept, or None
    target : Gaussian or None
        What the algorithm is meant to sample from.
    is_gaussian : bool
        False when the law is a mixture; `w2` is then that of the Gaussian with the same moments,
        a lower bound of the true distance (Gelbrich).
    clients : tuple of Law
        A law per client where they differ from one another at recorded rounds.
    label : str
        What made it.
    of : fedsim.provenance.Provenance
        The problem, algorithm and start that it is the law of; not known for one made or changed by hand.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> law = theory.exact_law(problem, fs.FALD(0.1, local_steps=3), n_rounds=20)
    >>> law.w2().shape, law.is_gaussian, law.at(20).mean.round(3).tolist()
    ((21,), True, [0.708])
    """

    rounds: np.ndarray
    mean: Array
    cov: Array | None
    target: Gaussian | None = None
    is_gaussian: bool = True
    clients: Sequence[Law] = field(default=(), repr=False)
    label: str = ""
    of: Provenance = field(init=False, default=Provenance())
    _arrays: ClassVar[tuple[str, ...]] = ("rounds", "mean", "cov")
    _by_round: ClassVar[tuple[str, ...]] = ("rounds", "mean", "cov")

    def __post_init__(self) -> None:
        align_fields(self, "rounds", "mean", "cov")
        align_fields(self, "mean", "cov", axis=1)
        set_fields(self, cov=square("cov", self.cov) if isinstance(self.cov, list) else self.cov)
        # an edit in place would leave `of` as it was
        set_fields(self, **{name: kept(name, getattr(self, name)) for name in self._arrays})
        check_law(self, Law, Gaussian)

    @property
    def dim(self) -> int:
        """Dimension d."""
        return self.mean.shape[1]

    def __repr__(self) -> str:
        kind = "none" if self.cov is None else {2: "diagonal", 3: "full"}[self.cov.ndim]
        of = self.of.algorithm.words if self.of.algorithm is not None else repr(self.label)
        return (f"{type(self).__name__}({of}, dim={self.dim}, rounds {self.rounds[0]}..{self.rounds[-1]}, "
                f"covariance={kind!r}{self._ends()})")

    def _at_rounds(self, index: slice) -> Any:
        """Its law at some of the recorded rounds alone, without clients."""
        parts: dict[str, Any] = {name: getattr(self, name) for name in self._by_round}
        parts = {name: part if part is None else part[index] for name, part in parts.items()}
        return replace(self, clients=(), **parts)

    def _ends(self) -> str:
        """W2 at the start and at the end, where it is there and quick."""
        if self.dim > QUICK or len(self.rounds) < 2:
            return ""
        value = self._at_rounds(slice(None, None, len(self.rounds) - 1))._distance()
        return "" if value is None else f", W2 {value[0]:.4g} -> {value[-1]:.4g}"

    def _covariance(self) -> Array:
        if self.cov is None:
            raise ValueError("this law was made with covariance='none' and has no covariance; "
                             "use covariance='full' or 'diagonal'")
        return self.cov

    def _distance(self) -> Array | None:
        """`w2` where there is one: None without target, or where variances are not enough for it."""
        try:
            return self.w2()
        except ValueError:
            return None

    def w2(self, target: Gaussian | None = None) -> Array:
        """2-Wasserstein distance to `target` (default: its own) at each recorded round, (n,)."""
        goal = target if target is not None else self.target
        if goal is None:
            raise ValueError("target=None: the target of this law is not known in closed form; pass a "
                             "fedsim.Gaussian, e.g. problem.laplace(), or compare with a reference sample")
        instance("target", goal, Gaussian, advice="None is the law's own; of round k: "
                 "law.at(k).w2(law.target)")
        shape("target.mean", goal.mean, (self.dim,))
        cov = self._covariance()
        if cov.ndim == 2:
            if goal.table.ndim == 2 and np.count_nonzero(goal.table - np.diag(goal.variances)):
                raise ValueError("covariance='diagonal' keeps variances only, which do not give W2 to "
                                 "a target with correlations; use covariance='full'")
            return w2_of(self.mean, cov, goal.mean, goal.variances)
        return w2_of(self.mean, cov, goal.mean, goal.table)

    def at(self, round: int) -> Gaussian:
        """The Gaussian with this law's moments at a recorded round."""
        number = whole("round", round)
        index = int(np.searchsorted(self.rounds, number))
        if index == len(self.rounds) or self.rounds[index] != number:
            raise ValueError(f"round={shown(round)} was not recorded; pass record=[{round}] when making it")
        return Gaussian(self.mean[index], self._covariance()[index])

    if not TYPE_CHECKING:  # for checkers there is none

        def __getitem__(self, round: object) -> Any:
            """Always raises: rounds are asked for by their numbers."""
            raise TypeError(f"law[{shown(round)}] is ambiguous: write law.at({shown(round)}) for the "
                            "Gaussian at that round, or law.mean[i] for the i-th recorded one")

    def to_frame(self, wide: bool = False) -> pd.DataFrame:
        """A tidy table: a row for each round, kind and coordinate.

        Parameters
        ----------
        wide : bool
            Instead, a row for each round with columns round, mean_i, var_i and w2 (of a run also w2_low,
            w2_high and w2_floor): the form of before.

        Returns
        -------
        pandas DataFrame
            Columns round, kind ("mean", "variance", "w2", and "outside" of a run with a support), coordinate
            (missing of the last two), value, low and high (of a run's W2), algorithm, and its parameters that
            are numbers or words.

        Examples
        --------
        >>> law = theory.exact_law(fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1), n_rounds=1)
        >>> law.to_frame()[["round", "kind", "value", "step_size"]].round(2).values.tolist()[-1]
        [1, 'w2', 0.65, 0.1]
        """
        return (frames.wide if flag("wide", wide) else frames.tidy)(self)

    def _quantities(self) -> dict[str, np.ndarray]:
        """Mean, variance, covariance and W2 (n, ...) by name, as far as there are such."""
        found: dict[str, np.ndarray] = {"mean": self.mean}
        if self.cov is not None:
            found["variance"] = variances_of(self.cov)
            if self.cov.ndim == 3:
                found["covariance"] = self.cov
        if (w2 := self._distance()) is not None:
            found["w2"] = w2
        return found

    def plot(self, ax: Axes | None = None, *, what: str = "w2") -> Axes:
        """Draw it against rounds; `fs.plot` draws several laws, runs and bounds together.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        what : "w2", "mean" or "variance"
            W2 to the target, or the first coordinates' means or variances beside the target's.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ValueError
            Where there is no such quantity.
        ImportError
            Where matplotlib is not installed (extra `plot`).

        Examples
        --------
        >>> law = theory.exact_law(fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1), n_rounds=20)
        >>> len(law.plot(what="mean").lines)
        2
        """
        return draw_one(self, ax, what)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    def summary(self) -> str:
        """A few lines of text: what it is and what of, and where it ends."""
        lines = [f"{self.label or type(self).__name__}: d={self.dim}, rounds 0..{self.rounds[-1]} "
                 f"({len(self.rounds)} recorded)", f"  of {self.of}"]
        lines.append(f"  final mean  {np.array2string(self.mean[-1], precision=6, threshold=6)}")
        if self.cov is not None:
            last = np.sqrt(variances_of(self.cov)[-1])
            lines.append(f"  final sd    {np.array2string(last, precision=6, threshold=6)}")
            if (distance := self._distance()) is not None:
                lines.append(f"  W2 to target {distance[0]:.6g} at the start, {distance[-1]:.6g} at the end")
        if not self.is_gaussian:
            lines.append("  the law is not Gaussian: W2 is that of the Gaussian with its moments, "
                         "a lower bound")
        return "\n".join(lines)

    def _payload(self) -> dict[str, Any]:
        """Arrays and plain values to save; `Run` adds its own."""
        data = {name: getattr(self, name) for name in self._arrays if getattr(self, name) is not None}
        if self.target is not None:
            data["target_mean"] = self.target.mean
            data["target_cov"] = self.target.table
        for i, client in enumerate(self.clients):
            data |= {f"client{i}_{name}": getattr(client, name) for name in ("mean", "cov")
                     if getattr(client, name) is not None}
        data["meta"] = {"kind": type(self).__name__, "version": 1, "is_gaussian": self.is_gaussian,
                        "n_clients": len(self.clients), "label": self.label, "of": self.of.as_json()}
        return data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a .npz file (no pickle), atomically. `fedsim.load` reads it back.

        Raises
        ------
        ValueError
            When `path` cannot be a file's.
        FileNotFoundError
            When its folder does not exist.
        """
        data = self._payload()
        meta = json.dumps(data["meta"], default=np.generic.item)
        data["meta"] = np.frombuffer(meta.encode(), dtype=np.uint8)
        save_arrays(path, data)


def variances_of(cov: Array) -> Array:
    """Variances (n, d) of covariances (n, d, d), or of variances themselves."""
    return cov if cov.ndim == 2 else np.diagonal(cov, axis1=1, axis2=2)
