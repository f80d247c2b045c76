"""Run: a Law estimated from replicas, with its sampling errors and its costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..provenance import attach, compared
from ..settings.alignment import align_fields
from ..settings.support import told
from ..settings.validation import Array, flag, instance, whole
from .chains import posterior
from .distance import check_quantile
from .frames import attributes_of
from .intervals import half_widths, proved_ends
from .law import Gaussian, Law, variances_of
from .law_checks import check_run
from .moments import floor_parts, floor_parts_diagonal, w2_of
from .scores import ZScores as ZScores, scores_of

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False)
class Run(Law):
    """Moments of replicas at the recorded rounds.

    Attributes
    ----------
    n_replicas : int
        R.
    costs : dict
        Of one replica: communications, gradient_evaluations, floats_sent.
    final : (R, d) or None
        Average iterates after the last round, with ``keep_final=True``.
    averages : (R,) or None
        Averages of the test function over rounds 1, ..., n_rounds of each replica.
    spread : (n, d, d), (n, d) or None
        Standard error of `leaf_cov` from the variation between leaves of 64 replicas; it does not
        assume a Gaussian law. NaN below two full leaves.
    leaf_cov : mean of the leaves' sample covariances
    n_leaves : int
        Number of full leaves.
    seed : int
    outside : (n,) int or None
        Replicas outside the problem's support, which it tells and never moves back; None without a support.
    includes_outside : bool
        True in what `including_outside` gives: W2 counts them too.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> run = fs.simulate(problem, fs.FALD(0.1, local_steps=3), n_rounds=20, n_replicas=256, seed=1)
    >>> law = theory.exact_law(problem, fs.FALD(0.1, local_steps=3), n_rounds=20)
    >>> run.n_replicas, run.costs['communications'], bool(run.z_scores(law).largest() < 5.0)
    (256, 20, True)
    """

    n_replicas: int = 0
    costs: dict[str, float] = field(default_factory=dict)
    final: Array | None = field(default=None, repr=False)
    averages: Array | None = field(default=None, repr=False)
    leaf_cov: Array | None = field(default=None, repr=False)
    spread: Array | None = field(default=None, repr=False)
    n_leaves: int = 0
    seed: int = 0
    outside: np.ndarray | None = field(default=None, repr=False)
    includes_outside: bool = False
    _arrays = (*Law._arrays, "final", "averages", "leaf_cov", "spread", "outside")
    _by_round = (*Law._by_round, "leaf_cov", "spread", "outside")

    def __post_init__(self) -> None:
        align_fields(self, "final", "averages")
        super().__post_init__()
        check_run(self)

    def including_outside(self) -> Run:
        """The same run, whose W2 counts replicas outside the support too, where its own refuses.

        It goes wherever a run goes, as to `fs.plot` and ``theory.check``.
        """
        clients = tuple(one.including_outside() if isinstance(one, Run) else one for one in self.clients)
        return attach(replace(self, includes_outside=True, clients=clients), self.of)

    def _told_outside(self) -> str:
        """The sentence about replicas outside the support; empty where there are none."""
        if self.outside is None or not self.outside.any():
            return ""
        return told(self.outside, self.rounds, self.n_replicas)

    def _require_inside(self) -> None:
        words = "" if self.includes_outside else self._told_outside()
        if words:
            raise ValueError(f"run has {words}: its W2 says little of the target; make steps smaller, or ask "
                             "run.including_outside() for W2 all the same")

    def w2(self, target: Gaussian | None = None) -> Array:
        """As of a law; ValueError where replicas are outside the support, see `including_outside`."""
        self._require_inside()
        return super().w2(target)

    def _floor_parts(self) -> tuple[Array, Array]:
        self._require_inside()
        cov = self._covariance()
        n_replicas = whole("n_replicas", self.n_replicas, 2)
        if cov.ndim == 2:
            mean_part, cov_part = floor_parts_diagonal(cov, n_replicas)
        else:
            reference = None if self.target is None else self.target.cov
            mean_part, cov_part = floor_parts(cov, n_replicas, reference)
        return mean_part, cov_part * self._kurtosis_factor()[:, None]

    def _kurtosis_factor(self) -> Array:
        """How much larger the variance of sample variances is than for a Gaussian law, (n,)."""
        cov = self._covariance()
        if self.is_gaussian or self.spread is None or self.n_leaves < 10:
            return np.ones(len(cov))
        gaussian = (2 * variances_of(cov)**2).sum(axis=1) / (63 * self.n_leaves)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = (variances_of(self.spread)**2).sum(axis=1) / gaussian
        return np.where(gaussian > 0.0, np.maximum(1.0, ratio), 1.0)

    def w2_floor(self) -> Array:
        """Root mean square of what sampling R replicas of this law adds to W2, (n,); 0 at a point start.

        A measured W2 near this floor says nothing about the law: use more replicas, or the exact law.
        """
        mean_part, cov_part = self._floor_parts()
        return np.sqrt(mean_part.sum(axis=1) + cov_part.sum(axis=1))

    def w2_interval(self, level: float = 0.95) -> Array:
        """Interval for the true W2 (of the Gaussian with the law's moments) at each round, (n, 2).

        The measured distance is off by at most the W2 between the law and its fit (triangle inequality),
        and the interval reaches as far as that one's `level` quantile: see `fedsim.laws.intervals`. It
        holds with probability at least `level`, less 0.02, in every dimension from 2 replicas on, and is not
        the shortest. Fewer replicas than about ten a dimension make it wide; a handful say little at all.

        Where the law is not Gaussian the probability is only about that, from 640 replicas on, by the fourth
        moments that they have shown. What it holds is then the W2 of moments, a lower bound of the true one;
        and so is, of variances alone, that of independent coordinates. Below 0.5 a level counts as 0.5.
        """
        check_quantile(level)
        n_replicas = whole("n_replicas", self.n_replicas, 2)
        value, cov = self.w2(), self._covariance()
        goal = None if self.target is None or cov.ndim == 2 else self.target.cov
        half = half_widths(cov, n_replicas, level, self._kurtosis_factor(), goal)
        return np.stack([np.maximum(0.0, value - half), value + half], axis=1)

    def w2_proved(self, level: float = 1.0 - 1e-7) -> Array:
        """Ends between which the true W2 lies with a proved probability of `level` at each round, (n, 2).

        By tail bounds that hold for any dimension and number of replicas (`proved_ends` of
        `fedsim.laws.intervals`), for a Gaussian law; 0 and infinity for any other, of which replicas prove
        nothing; of variances alone the W2 of independent coordinates, at most the true one. Wider than
        `w2_interval`, and what `theory.check` asks for before it says that a theorem is contradicted.

        Examples
        --------
        >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
        >>> run = fs.simulate(problem, fs.FALD(0.1), n_rounds=20, n_replicas=1000, seed=1, start=[90.0])
        >>> run.w2_proved()[0].round(2).tolist(), bool(run.w2_proved()[1, 0] > 60.0)
        ([89.25, 89.25], True)
        """
        check_quantile(level)
        n_replicas = whole("n_replicas", self.n_replicas, 2)
        value = self.w2()
        if not self.is_gaussian or self.target is None:
            return np.stack([np.zeros_like(value), np.full_like(value, np.inf)], axis=1)
        cov, goal = self._covariance(), self.target
        covs = w2_of(np.zeros_like(self.mean), cov, np.zeros(self.dim),
                           goal.variances if cov.ndim == 2 else goal.cov)
        gaps = np.linalg.norm(self.mean - goal.mean, axis=1), covs
        return np.stack(proved_ends(gaps, cov, n_replicas, level, float(goal.variances.sum())), axis=1)

    def z_scores(self, law: Law, *, same: bool = True) -> ZScores:
        """Deviations from a law in standard errors, at the rounds that both have recorded.

        Standard errors are those of the law's own covariance when it is Gaussian; otherwise those of
        the covariance come from the variation between leaves, turned into normal scores, and are not believed
        where they are small by chance (`fedsim.laws.scores.leaf_errors`). Nor do replicas say
        what none of them has met: where a client is drawn in fewer than about 30 of them, its share of the
        variance may seem to be missing.

        Parameters
        ----------
        law : Law
        same : bool
            False also compares with the law of another problem, algorithm or start, on purpose.

        Raises
        ------
        ValueError
            Also where the law is known to be of something else, unless `same` is False.
        """
        instance("law", law, Law)
        if self.dim != law.dim:
            raise ValueError(f"law has dimension {law.dim}; it must be {self.dim}")
        note = compared(self.of, law.of, ("run", "law"), flag("same", same))
        scores = scores_of(self, law)
        scores.note = note
        return scores

    def _at_rounds(self, index: slice) -> Run:
        some: Run = replace(self, final=None, averages=None)
        return Law._at_rounds(some, index)  # type: ignore[no-any-return]

    def _ends(self) -> str:
        words, left = f", {self.n_replicas:,} replicas{super()._ends()}", self._told_outside()
        if " -> " in words and self.n_replicas > 1:
            low, high = self._at_rounds(slice(-1, None)).w2_interval()[0]
            words += f" [{low:.4g}, {high:.4g}]"
        return f"{words}; {left}" if left else words

    def summary(self) -> str:
        """A few lines of text."""
        lines = [super().summary(), f"  {self.n_replicas} replicas, seed {self.seed}"]
        if self.cov is not None and self.n_replicas > 1 and self._distance() is not None:
            low, high = self.w2_interval()[-1]
            lines.append(f"  W2 at the end in [{low:.6g}, {high:.6g}] (95%), floor of "
                         f"{self.n_replicas} replicas {self.w2_floor()[-1]:.6g}")
        if words := self._told_outside():
            lines.append(f"  {words}{'; W2 counts them' if self.includes_outside else ''}")
        costs = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in self.costs.items())
        lines.append(f"  per replica: {costs}")
        return "\n".join(lines)

    def _quantities(self) -> dict[str, np.ndarray]:
        """And the interval of W2 and its floor, and how many replicas are outside a support."""
        found = super()._quantities()
        if "w2" in found:
            found["w2_low"], found["w2_high"] = self.w2_interval().T
            found["w2_floor"] = self.w2_floor()
        return found if self.outside is None else found | {"outside": self.outside}

    def to_datatree(self, law: Law | None = None) -> xr.DataTree:
        """Arrays with names: an xarray.DataTree with groups run and target, and law where one is given.

        Each has mean, variance and covariance by round, coordinate and other, and w2 (a run's with w2_low,
        w2_high and w2_floor), where there are such; attributes say what they are of.

        Parameters
        ----------
        law : Law, optional
            To stand beside it, as the exact one.

        Raises
        ------
        ImportError
            Without xarray.
        ValueError
            For what is no law, or one of another dimension.

        Examples
        --------
        >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1)
        >>> run = fs.simulate(problem, algorithm, n_rounds=20, n_replicas=1000, seed=1)
        >>> tree = run.to_datatree(theory.exact_law(problem, algorithm, n_rounds=20))
        >>> sorted(tree.children), tree["law"]["mean"].sizes["round"]
        (['law', 'run', 'target'], 21)
        """
        instance("law", law, Law, type(None))
        if law is None:
            return tree(run=self)
        if law.dim != self.dim:
            raise ValueError(f"law has dimension {law.dim}; it must be {self.dim}")
        return tree(run=self, law=law)

    def to_arviz(self) -> Any:
        """The replicas' last iterates as ArviZ takes them: one chain, in which every draw is a replica.

        As `to_arviz` of `fs.sample_path` returns them, with attribute round; draws are numbered as `final`.
        Replicas are independent draws of the law after the last round, so that ArviZ's mean, intervals and
        Monte Carlo errors are right for that law. Its effective sample size is then about the number of
        replicas, and R-hat of one chain is NaN, however slowly the chains mix: they say nothing of that. Ask
        `w2` how far that law is from the target, or `fs.sample_path` for whole chains.

        Raises
        ------
        ImportError
            Without xarray, which comes with ArviZ.
        ValueError
            Where no draws were kept.

        Examples
        --------
        >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1)
        >>> run = fs.simulate(problem, algorithm, n_rounds=20, n_replicas=500, seed=1, keep_final=True)
        >>> posterior = run.to_arviz()["posterior"]
        >>> posterior["average"].shape, posterior.attrs["round"]
        ((1, 500, 1), 20)
        """
        if self.final is None:
            raise ValueError("final=None: this run kept no draws; make it with keep_final=True (the clients' "
                             "are never kept), or ask fs.sample_path for whole chains")
        return posterior(self.final[None], np.arange(len(self.final)),
                         _attributes(self) | {"round": int(self.rounds[-1])})

    def _payload(self) -> dict[str, Any]:
        data = super()._payload()
        data["meta"] |= {"n_replicas": self.n_replicas, "costs": self.costs, "n_leaves": self.n_leaves,
                         "seed": self.seed, "includes_outside": self.includes_outside}
        data |= {f"client{i}_outside": client.outside for i, client in enumerate(self.clients)
                 if isinstance(client, Run) and client.outside is not None}
        return data


AXES = ("round", "coordinate", "other")


def tree(**laws: Any) -> xr.DataTree:
    """A group for each law, by name, and one for the target of the first.

    Raises
    ------
    ImportError
        Without xarray.
    """
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_datatree needs xarray, which is not installed: pip install xarray") from None

    groups = {name: xr.Dataset(
        {kind: (AXES[:values.ndim], values) for kind, values in law._quantities().items()},
        _places(law.dim) | {"round": law.rounds}, _attributes(law)) for name, law in laws.items()}
    first = next(iter(laws.values()))
    if first.target is not None:
        groups["target"] = xr.Dataset(_moments(first.target), _places(first.dim))
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=_attributes(first)), **groups})


def _places(dim: int) -> dict[str, np.ndarray]:
    return {"coordinate": np.arange(dim), "other": np.arange(dim)}


def _moments(law: Gaussian) -> dict[str, Any]:
    """Of the target: as full, or as thin, as it was given."""
    cov = {} if law.is_diagonal else {"covariance": (AXES[1:], law.cov)}
    return {"mean": ("coordinate", law.mean), "variance": ("coordinate", law.variances), **cov}


def _attributes(law: Any) -> dict[str, Any]:
    return attributes_of(law.of, law.label, getattr(law, "n_replicas", None), getattr(law, "seed", None))
