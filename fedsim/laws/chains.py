"""Draws with names, as ArviZ takes them: whole chains of `sample_path`, and the last states of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..pickles import keep_function, made
from ..provenance import Provenance
from ..settings.validation import Array
from .frames import attributes_of

_KEY = "fedsim.Chains"


class Chains(np.ndarray[tuple[int, ...], np.dtype[np.float64]]):
    """The array that `sample_path` returns, float64 (n_chains, n_kept, d): it knows what its chains are of.

    It is used as any other array. A part of it, and any result computed with it, is a plain array; a copy or
    another view, as after `reshape`, has lost what it is of, for its numbers may no longer be those chains.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> chains = fs.sample_path(problem, fs.FALD(0.1), n_rounds=30, seed=1, every=10, n_chains=2)
    >>> type(chains).__name__, type(chains[:, 1:]).__name__, chains.shape
    ('Chains', 'ndarray', (2, 3, 1))
    """

    _origin: tuple[Provenance, int, int, int | None] | None = None
    """Problem, algorithm and start; seed; rounds between two draws; client."""

    if not TYPE_CHECKING:  # for checkers as any array

        def __getitem__(self, index: Any) -> Any:
            return np.asarray(self)[index]

        def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
            return np.asarray(array)[()] if return_scalar else np.asarray(array)

    def __reduce__(self) -> tuple[Any, ...]:
        return made, (_KEY, np.asarray(self), self._origin)

    def to_arviz(self) -> Any:
        """The chains as ArviZ takes them, as `arviz.summary(chains.to_arviz())`.

        The group posterior has ``average`` with dimensions chain, draw, coordinate; or, of one client,
        ``clients`` with chain, draw, client, coordinate. A chain is a replica, and draws are numbered by
        their rounds, so that `.sel(draw=slice(501, None))` of the result leaves out the first 500 rounds.
        Attributes say what the chains are of.

        Chains that all begin at one point may agree long before they have forgotten it: before R-hat says
        something, give `sample_path` a wide `start`, as a `fs.Gaussian`.

        Returns
        -------
        xarray.DataTree, as functions of ArviZ 1 take it; an arviz.InferenceData where an ArviZ before 1 is
        installed.

        Raises
        ------
        ImportError
            Without xarray, which comes with ArviZ.
        ValueError
            For an array that `sample_path` did not return as it is, such as a reshaped one or a copy.

        Examples
        --------
        >>> problem, wide = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.Gaussian([0.0], [[4.0]])
        >>> chains = fs.sample_path(problem, fs.FALD(0.1), 300, seed=1, every=3, n_chains=4, start=wide)
        >>> posterior = chains.to_arviz()["posterior"]
        >>> posterior["average"].dims, posterior["draw"].values[:3].tolist(), posterior.attrs["step_size"]
        (('chain', 'draw', 'coordinate'), [3, 6, 9], 0.1)
        """
        if self._origin is None:
            raise ValueError(f"chains of shape {self.shape} must be as fs.sample_path returned them; select "
                             "from what to_arviz gives instead, as by .sel(draw=slice(501, None))")
        of, seed, every, client = self._origin
        values = np.asarray(self)
        return posterior(values, every * np.arange(1, values.shape[1] + 1),
                         attributes_of(of, n_replicas=len(values), seed=seed), client)


@keep_function(_KEY)
def chains_of(values: Array, origin: tuple[Provenance, int, int, int | None] | None) -> Chains:
    """The same numbers, not copied, which know what they are of, their seed, `every` and client."""
    chains = values.view(Chains)
    chains._origin = origin
    return chains


def posterior(values: Array, draws: np.ndarray, attributes: dict[str, Any], client: int | None = None) -> Any:
    """An object of ArviZ, or the tree that it takes, of iterates (chain, draw, coordinate).

    Raises
    ------
    ImportError
        Without xarray.
    """
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_arviz needs xarray, which comes with ArviZ: pip install arviz") from None

    places = {"chain": np.arange(len(values)), "draw": draws, "coordinate": np.arange(values.shape[2])}
    attributes = {"inference_library": "fedsim"} | attributes
    if client is None:
        variables: dict[str, Any] = {"average": (("chain", "draw", "coordinate"), values)}
    else:
        places["client"] = np.array([client])
        variables = {"clients": (("chain", "draw", "client", "coordinate"), values[:, :, None])}
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs=attributes),
                                  "posterior": xr.Dataset(variables, places, attributes)})
    try:
        from arviz import from_datatree  # before ArviZ 1, whose functions take trees themselves
    except ImportError:
        return tree
    return from_datatree(tree)
