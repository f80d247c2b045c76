"""Laws and runs as tables: tidy ones, for seaborn and the like, and wide ones, with a row for each round."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from ..provenance import Provenance


def parameters_of(words: str) -> dict[str, Any]:
    """What a readable line as "FALD(step_size=0.1, local_steps=5)" says; the class is the `algorithm`.

    What is no plain value, as an array that the line leaves out, is left out.
    """
    before, of, last = words.rpartition(" of ")
    try:
        call = ast.parse(last.partition(" #")[0], mode="eval").body
    except SyntaxError:
        return {"algorithm": words}
    if not isinstance(call, ast.Call):
        return {"algorithm": words}
    found = {"algorithm": before + of + ast.unparse(call.func)}
    for keyword in call.keywords:
        if keyword.arg is not None and isinstance(keyword.value, (ast.Constant, ast.UnaryOp)):
            found[keyword.arg] = ast.literal_eval(keyword.value)
    return found


def attributes_of(of: Provenance, label: str = "", n_replicas: int | None = None,
                  seed: int | None = None) -> dict[str, Any]:
    """Problem, algorithm and start, the algorithm's parameters, the replicas: values that files keep."""
    found = {"of": str(of), **parameters_of(label if of.algorithm is None else of.algorithm.words)}
    if n_replicas is not None:
        found |= {"n_replicas": n_replicas, "seed": str(seed)}  # may be beyond a file's integers
    return {name: int(value) if isinstance(value, bool) else value for name, value in found.items()
            if value is not None}


def tidy(law: Any) -> pd.DataFrame:
    """A row for each round, kind and coordinate: columns round, kind, coordinate, value, low, high, and more.

    `coordinate` is missing of W2 and of how many replicas are outside a support; low and high are there of a
    run's W2. The other columns are the algorithm and its parameters, where they are known, and a run's
    replicas.
    """
    import pandas as pd

    (n, d), known, tables = law.mean.shape, law._quantities(), []
    for kind in [kind for kind in ("mean", "variance", "w2", "outside") if kind in known]:
        each = known[kind].ndim > 1
        tables.append(pd.DataFrame({
            "round": np.repeat(law.rounds, d if each else 1), "kind": kind,
            "coordinate": pd.array(np.tile(np.arange(d), n) if each else [None] * n, dtype="Int64"),
            "value": known[kind].ravel()}))
        if kind == "w2" and "w2_low" in known:
            tables[-1]["low"], tables[-1]["high"] = known["w2_low"], known["w2_high"]
    whole = pd.concat(tables, ignore_index=True).reindex(
        columns=["round", "kind", "coordinate", "value", "low", "high"])
    algorithm = law.of.algorithm
    whole = whole.assign(**parameters_of(law.label if algorithm is None else algorithm.words))
    replicas = {name: getattr(law, name) for name in ("n_replicas", "seed") if hasattr(law, name)}
    return whole.assign(**replicas)


def wide(law: Any) -> pd.DataFrame:
    """A row for each round: round, mean_i, var_i, w2 and what a run has, where there are such."""
    import pandas as pd

    columns: dict[str, Any] = {"round": law.rounds}
    for kind, values in law._quantities().items():
        if values.ndim == 1:
            columns[kind] = values
        elif values.ndim == 2:
            columns |= {f"{kind.removesuffix('iance')}_{i}": values[:, i] for i in range(law.dim)}
    return pd.DataFrame(columns)
