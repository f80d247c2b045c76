"""Opposites of the figures of the bounds themselves."""

from reproduce.bounds.algorithms import COSTS
from reproduce.verdicts import DOES_NOT_HOLD, HOLDS


def _times(table, column, factor, where=None):
    """Change: a column times a factor, in the rows for which `where` holds."""
    def change(tables):
        one = tables[table].astype({column: float})
        rows = slice(None) if where is None else where(one)
        one.loc[rows, column] *= factor
        tables[table] = one
        return tables
    return change


def _only(algorithm):
    """Change: one algorithm needs a millionth of what it does, by both routes and in everything."""
    def change(tables):
        for name in ("exact", "promised"):
            tables = _times(name, "effort", 1e-6, lambda one: one["algorithm"] == algorithm)(tables)
        return tables
    return change


def _named_as_needed(tables):
    """Change: the bounds promise a hundred times what is needed, whoever needs it."""
    exact = tables["exact"]
    tables["promised"] = exact[exact["cost"].isin(COSTS)].assign(effort=100.0 * exact["effort"])
    return tables


OPPOSITES = {
    ("bounds_one_run", "order"): [(DOES_NOT_HOLD, _times("curves", "exact", 1e3)),
                                  (DOES_NOT_HOLD, _times("curves", "published", 1e-6))],
    ("bounds_one_run", "plan"): [(DOES_NOT_HOLD, _times("curves", "exact", 1e3))],
    ("bounds_one_run", "replicas"): [(DOES_NOT_HOLD, _times("replicas", "deviation", 10.0))],
    ("bounds_conditions", "holds"): [(DOES_NOT_HOLD, _times("limits", "exact", 1e4))],
    ("bounds_conditions", "below_published"): [(DOES_NOT_HOLD, _times("published", "ours", 1e6))],
    ("bounds_conditions", "informative"): [(DOES_NOT_HOLD, _times("limits", "recursion", 1e4))],
    ("bounds_algorithms", "promise"): [(DOES_NOT_HOLD, _times("promised", "effort", 1e-3))],
    ("bounds_algorithms", "choice"): [(HOLDS, _named_as_needed), (HOLDS, _only("FA-LD"))],
    ("bounds_worst_case", "between"): [(DOES_NOT_HOLD, _times("limits", "found", 2.0))],
    ("bounds_worst_case", "rotated"): [(DOES_NOT_HOLD, _times("limits", "commuting_high", 1e3))],
    ("bounds_worst_case", "bounds"): [(DOES_NOT_HOLD, _times("limits", "recursion", 1e6)),
                                      (DOES_NOT_HOLD, _times("limits", "recursion", 1e-3))],
    ("bounds_worst_case", "random"): [
        (DOES_NOT_HOLD, _times("largest", "ratio", 1e6, lambda one: one["way"] == "random")),
        (HOLDS, _times("largest", "ratio", 1e6, lambda one: one["way"] == "search"))],
    ("bounds_algorithms", "one"): [(HOLDS, _only("FA-HMC"))],
}
