"""The mean of normal data with a normal prior, in one dimension, with minibatches of the data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..laws.law import Gaussian
from ..settings.validation import Array, array, points, positive, set_fields, whole
from ..vector import lanes
from ..vector.compile import inner
from .gradients import stochastic_gradient
from .pooled import OneClient
from .quadratic import Quadratic
from .regression.batched import Batched
from .regression.gradients import Data, regression_scratch
from .regression.minibatch import MAX_DATA, draw_indices


class MeanModel(NamedTuple):
    """The data, as `draw_indices` looks for them, and the full gradients."""

    data: Data
    inner: Any


class MeanBatch(NamedTuple):
    """Gradient scale (J x - sum of `size` data) + prior x."""

    inner: MeanModel
    size: int
    replace: bool
    scale: float
    prior: float


@inner
def _subtract_gathered(out, values, index):
    for b in range(out.shape[0]):
        out[b] -= values[index[b]]


@stochastic_gradient.register(MeanBatch)
def _batch_gradient(batch, lane_set, client, step, draw, x, scratch, out):
    draw_indices(batch, lane_set, client, step, draw, scratch.indices)
    lanes.scale(out[0], float(batch.size), x[0])
    for k in range(batch.size):
        _subtract_gathered(out[0], batch.inner.data.targets, scratch.indices[k])
    lanes.scale_pair(out[0], batch.scale, out[0], batch.prior, x[0])


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMean(OneClient, Batched):
    """Data d_i ~ N(theta, 1) with prior theta ~ N(0, prior_variance), held by one client.

    f(theta) = sum_i (theta - d_i)^2 / 2 + theta^2 / (2 prior_variance). The stochastic gradient takes the
    data's part from J of them, times N / J; its noise is (N/J) (J dbar - sum of the minibatch), which does
    not depend on theta. So the first two moments of every chain are those of `as_quadratic`.

    Parameters
    ----------
    data : (N,)
    prior_variance : float
        1 in the paper.
    batch_size : int, optional
        J data for each gradient evaluation, drawn anew; at most N. All data by default.
    replace : bool
        Draw them with replacement.
    grad_scale : "unbiased" or "batch_sum"
        Multiply the minibatch's sum by N / J, or by 1. With "batch_sum" the chain follows a posterior with
        J data in place of N, ``as_quadratic().target()``, and not `target`.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: stale-gradient paper, section 5.1 and equation (2).

    Examples
    --------
    >>> problem = fs.GaussianMean([1.0, 2.0, 3.0], batch_size=1)
    >>> problem.curvature, problem.pull, round(problem.gradient_variance, 12)
    (4.0, 6.0, 6.0)
    >>> problem.target()
    Gaussian(dim=1, mean=[1.5], variances=[0.25])
    """

    data: Array
    _: KW_ONLY
    prior_variance: float = 1.0
    batch_size: int | None = None
    replace: bool = False
    grad_scale: str = "unbiased"
    n_data: int = field(init=False)
    """Number of data N."""

    if TYPE_CHECKING:  # what is given, where the fields say what is kept

        def __init__(self, data: ArrayLike, *, prior_variance: float = 1.0, batch_size: int | None = None,
                     replace: bool = False, grad_scale: str = "unbiased") -> None: ...

    dim = 1

    def __post_init__(self) -> None:
        data = array("data", self.data, 1)
        set_fields(self, data=data, n_data=len(data),
                   prior_variance=positive("prior_variance", self.prior_variance))
        if not self._check_batches():
            return
        set_fields(self, batch_size=whole("batch_size", self.batch_size, 1, self.n_data))
        if self.n_data > MAX_DATA:
            raise ValueError(f"data has {self.n_data} entries; with a batch_size it must have at most "
                             f"{MAX_DATA}, which the random streams can number")

    @property
    def scale(self) -> float:
        """Factor of a minibatch's sum: N / J or 1."""
        if self.batch_size is None or self.grad_scale == "batch_sum":
            return 1.0
        return self.n_data / self.batch_size

    @property
    def share(self) -> float:
        """Part of the likelihood in the mean gradient: 1, or J / N with grad_scale="batch_sum"."""
        return 1.0 if self.batch_size is None else self.scale * self.batch_size / self.n_data

    @property
    def curvature(self) -> float:
        """a of the mean gradient a theta - b: the precision of the law that is followed."""
        return self.share * self.n_data + 1.0 / self.prior_variance

    @property
    def pull(self) -> float:
        """b of the mean gradient a theta - b."""
        return self.share * float(self.data.sum())

    @cached_property
    def gradient_cumulants(self) -> tuple[float, float, float]:
        """Second, third and fourth cumulant of the noise of a stochastic gradient.

        From the central moments of the data; for a sum S of J numbers drawn without replacement from N,

            Var S = J (N-J) / (N-1) m2,    E (S-ES)^3 = J (N-J) (N-2J) / ((N-1) (N-2)) m3,
            E (S-ES)^4 = J (N-J) {[N (N+1) - 6 J (N-J)] m4 + 3 N (J-1) (N-J-1) m2^2} / ((N-1)(N-2)(N-3)).
        """
        if self.batch_size is None:
            return 0.0, 0.0, 0.0
        n, j = self.n_data, self.batch_size
        gap = self.data - self.data.mean()
        m2, m3, m4 = (float((gap**power).mean()) for power in (2, 3, 4))
        if self.replace:
            second, third, fourth = j * m2, j * m3, j * (m4 - 3.0 * m2**2)
        elif j == n:
            return 0.0, 0.0, 0.0
        else:
            second = j * (n - j) / (n - 1) * m2
            third = j * (n - j) * (n - 2 * j) / ((n - 1) * (n - 2)) * m3 if n > 2 else 0.0
            if n > 3:
                moment = j * (n - j) * ((n * (n + 1) - 6 * j * (n - j)) * m4
                                        + 3 * n * (j - 1) * (n - j - 1) * m2**2) / (
                                            (n - 1) * (n - 2) * (n - 3))
            else:  # the sum is a datum, or the total without one: its fourth moment is m4
                moment = m4
            fourth = moment - 3.0 * second**2
        scale = -self.scale  # the gradient has minus the sum of the data
        return scale**2 * second, scale**3 * third, scale**4 * fourth

    @property
    def gradient_variance(self) -> float:
        """Variance of the noise of a stochastic gradient."""
        return self.gradient_cumulants[0]

    def target(self, temperature: float = 1.0) -> Gaussian:
        """The posterior given all data, tempered: proportional to exp(-f / temperature)."""
        precision = self.n_data + 1.0 / self.prior_variance
        return Gaussian([float(self.data.sum()) / precision],
                        [positive("temperature", temperature) / precision])

    def as_quadratic(self) -> Quadratic:
        """The quadratic problem with the same mean gradient, and normal noise of the same variance."""
        noise = float(np.sqrt(self.gradient_variance))
        centre = self.pull / self.curvature
        return Quadratic(np.array([[self.curvature]]), np.array([[centre]]), None, noise or None)

    def curvature_problem(self) -> Quadratic:
        """The quadratic problem that stability is judged on."""
        return self.as_quadratic()

    def _points(self, client: int | None, x: Any) -> Array:
        """The points, once the client is known to be the only one."""
        if client is not None:
            whole("client", client, 0, 0)
        return points("x", x, 1)

    def potential(self, client: int | None, x: Any) -> Array:
        """f at points `x` (..., 1), in NumPy."""
        point = self._points(client, x)[..., 0]
        fit = 0.5 * ((point[..., None] - self.data) ** 2).sum(axis=-1)
        return fit + 0.5 * point**2 / self.prior_variance

    def _potentials(self, client: int, x: Array) -> Array:
        """As `exact_potential` has them, which is of the quadratic."""
        precision = self.n_data + 1.0 / self.prior_variance
        return Quadratic([precision], self.target().mean[None]).potential(client, x)

    def _without_potential(self) -> str:
        return ""

    def gradient(self, client: int | None, x: Any) -> Array:
        """Exact gradient of f at points `x` (..., 1), in NumPy."""
        point = self._points(client, x)
        return (self.n_data + 1.0 / self.prior_variance) * point - self.data.sum()

    def _scratch(self, dim: int, n_lanes: int, dtype: Any) -> Any:
        """What a gradient of this problem needs to work in."""
        if self.batch_size is None:
            return super()._scratch(dim, n_lanes, dtype)
        return regression_scratch(dim, n_lanes, dtype, self.batch_size)

    def _arrays(self) -> Any:
        """The NamedTuple that compiled code sees."""
        precision = self.n_data + 1.0 / self.prior_variance
        exact = Quadratic(np.array([[precision]]), self.target().mean[None])._arrays()
        if self.batch_size is None:
            return exact
        data = Data(np.ones((1, self.n_data)), self.data, np.zeros(1, np.int64),
                    np.array([self.n_data], np.int64))
        return MeanBatch(MeanModel(data, exact), self.batch_size, self.replace, self.scale,
                         1.0 / self.prior_variance)

    def __repr__(self) -> str:
        return f"GaussianMean({self.n_data} data, prior_variance={self.prior_variance:g}{self._batch_words})"
