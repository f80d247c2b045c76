"""`load`: from the arrays of a file to a Law or Run, checked as one made by hand."""

from __future__ import annotations

import os
from typing import Any

from ..provenance import Provenance, attach
from .law import Gaussian, Law
from .run import Run
from .storage import DAMAGED, file_path, read_payload

_TARGET = ("target_mean", "target_cov")


def _target(data: dict[str, Any]) -> Gaussian | None:
    if not data.keys() & _TARGET:
        return None
    try:
        return Gaussian(*(data[name] for name in _TARGET))
    except ValueError as error:
        raise ValueError(f"target_{error}") from None


def _law(data: dict[str, Any], meta: dict[str, Any], of: Provenance) -> Law:
    target = _target(data)

    def part(prefix: str) -> dict[str, Any]:
        return {"rounds": data["rounds"], "mean": data[f"{prefix}mean"], "cov": data.get(f"{prefix}cov"),
                "target": target, "is_gaussian": meta["is_gaussian"]}

    def client(number: int) -> Law:
        try:
            law = Law(**part(f"client{number}_"))
            if (outside := data.get(f"client{number}_outside")) is not None:  # only a run refuses W2 for them
                law = Run(**part(f"client{number}_"), **counted, outside=outside)
        except ValueError as error:
            raise ValueError(f"clients[{number}]: {error}") from None
        return attach(law, of.client(number))

    counted = {name: meta.get(name, False) for name in ("n_replicas", "seed", "includes_outside")}
    clients = tuple(client(number) for number in range(meta["n_clients"]))
    fields: dict[str, Any] = part("") | {"clients": clients, "label": meta["label"]}
    if meta["kind"] == "Law":
        return Law(**fields)
    fields |= {name: data.get(name) for name in Run._arrays if name not in Law._arrays}
    fields |= {name: meta[name] for name in ("n_replicas", "costs", "n_leaves", "seed")}
    return Run(**fields, includes_outside=meta.get("includes_outside", False))  # older files have none


def load(path: str | os.PathLike[str]) -> Law:
    """Read a `Law` or `Run` written by ``save``.

    Raises
    ------
    ValueError
        When the file is damaged or was written by something else, naming the field that cannot be right.
    FileNotFoundError
        When there is none.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> run = fs.simulate(problem, fs.FALD(0.1, local_steps=3), n_rounds=20, n_replicas=256, seed=1)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / 'run.npz'
    ...     run.save(path)
    ...     again = fs.load(path)
    >>> bool((again.mean == run.mean).all())
    True
    """
    file = file_path(path)
    try:
        data, meta = read_payload(file, (*Run._arrays, *_TARGET))
        of = Provenance.from_json(meta.get("of"))  # files of older versions have none
        return attach(_law(data, meta, of), of)
    except FileNotFoundError:
        raise FileNotFoundError(f"path={str(path)!r} does not exist") from None
    except DAMAGED as error:
        raise ValueError(f"path={str(path)!r} must be a file written by Law.save "
                         f"({type(error).__name__}: {error})") from None
