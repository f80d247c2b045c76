"""Laws and runs as trees of labelled arrays, for xarray and ArviZ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .frames import parameters_of

if TYPE_CHECKING:
    import xarray as xr

    from .law import Gaussian


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

    groups = {name: xr.Dataset(_variables(law), _places(law.dim) | {"round": law.rounds}, _attributes(law))
              for name, law in laws.items()}
    first = next(iter(laws.values()))
    if first.target is not None:
        groups["target"] = xr.Dataset(_moments(first.target), _places(first.dim))
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=_attributes(first)), **groups})


def _places(dim: int) -> dict[str, np.ndarray]:
    return {"coordinate": np.arange(dim), "other": np.arange(dim)}


def _moments(law: Gaussian) -> dict[str, Any]:
    """Of the target: as full, or as thin, as it was given."""
    cov = {} if law.is_diagonal else {"covariance": (("coordinate", "other"), law.cov)}
    return {"mean": ("coordinate", law.mean), "variance": ("coordinate", law.variances), **cov}


def _variables(law: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"mean": (("round", "coordinate"), law.mean)}
    if getattr(law, "outside", None) is not None:
        found["outside"] = ("round", law.outside)
    if law.cov is None:
        return found
    if law.cov.ndim == 3:
        found["covariance"] = (("round", "coordinate", "other"), law.cov)
        found["variance"] = (("round", "coordinate"), np.diagonal(law.cov, axis1=1, axis2=2))
    else:
        found["variance"] = (("round", "coordinate"), law.cov)
    w2 = law._distance()
    if w2 is not None:
        found["w2"] = ("round", w2)
        if hasattr(law, "w2_interval"):
            low, high = law.w2_interval().T
            found |= {"w2_low": ("round", low), "w2_high": ("round", high)}
            found["w2_floor"] = ("round", law.w2_floor())
    return found


def _attributes(law: Any) -> dict[str, Any]:
    """What it is of, its algorithm's parameters, of a run its replicas: values that files keep."""
    known = law.of.algorithm
    found = {"of": str(law.of), **parameters_of(law.label if known is None else known.words)}
    if hasattr(law, "n_replicas"):
        found |= {"n_replicas": law.n_replicas, "seed": str(law.seed)}  # may be beyond a file's integers
    return {name: int(value) if isinstance(value, bool) else value for name, value in found.items()
            if value is not None}
