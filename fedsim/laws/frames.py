"""Laws and runs as tables: tidy ones, for seaborn and the like, and wide ones, with a row for each round."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from ..settings.validation import Array

if TYPE_CHECKING:
    import pandas as pd


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


def tidy(law: Any, variances: Array | None, w2: Array | None, intervals: Array | None) -> pd.DataFrame:
    """A row for each round, kind and coordinate: columns round, kind, coordinate, value, low, high, and more.

    `coordinate` is missing of W2 and of how many replicas are outside a support; low and high are there of a
    run's W2. The other columns are the algorithm
    and its parameters, where they are known.
    """
    import pandas as pd

    n, d = law.mean.shape
    parts = [("mean", law.mean)] + ([] if variances is None else [("variance", variances)])
    tables = [pd.DataFrame({"round": np.repeat(law.rounds, d), "kind": kind,
                            "coordinate": pd.array(np.tile(np.arange(d), n), dtype="Int64"),
                            "value": values.ravel()}) for kind, values in parts]
    if w2 is not None:
        table = pd.DataFrame({"round": law.rounds, "kind": "w2",
                              "coordinate": pd.array([None] * n, dtype="Int64"), "value": w2})
        if intervals is not None:
            table["low"], table["high"] = intervals.T
        tables.append(table)
    if getattr(law, "outside", None) is not None:
        tables.append(pd.DataFrame({"round": law.rounds, "kind": "outside",
                                    "coordinate": pd.array([None] * n, dtype="Int64"), "value": law.outside}))
    whole = pd.concat(tables, ignore_index=True).reindex(
        columns=["round", "kind", "coordinate", "value", "low", "high"])
    known = law.of.algorithm
    return whole.assign(**parameters_of(law.label if known is None else known.words))


def wide(law: Any, variances: Array | None, w2: Array | None) -> pd.DataFrame:
    """A row for each round: round, mean_i, var_i and w2, where there are such."""
    import pandas as pd

    columns: dict[str, Any] = {"round": law.rounds}
    columns |= {f"mean_{i}": law.mean[:, i] for i in range(law.dim)}
    if variances is not None:
        columns |= {f"var_{i}": variances[:, i] for i in range(law.dim)}
    if w2 is not None:
        columns["w2"] = w2
    return pd.DataFrame(columns)
