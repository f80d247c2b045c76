"""The linear regression of the decentralized paper: figures 1 to 4 and the spectral gap."""

import numpy as np

from reproduce.decentralized import shared as de
from reproduce.figure import FAIL, NOT_TESTABLE, OUTSIDE, PASS
from reproduce.verdicts import DOES_NOT_HOLD, HOLDS


def put(table, column, value, **where):
    """A change that sets a column, in the rows with these values, to a value or to f(old values)."""
    def change(tables):
        rows = np.ones(len(tables[table]), dtype=bool)
        for name, wanted in where.items():
            rows &= tables[table][name].isin(np.atleast_1d(wanted)).to_numpy()
        old = tables[table].loc[rows, column]
        if tables[table][column].dtype.kind == "i":
            tables[table] = tables[table].astype({column: float})
        tables[table].loc[rows, column] = value(old) if callable(value) else value
        return tables
    return change


def both(*changes):
    """One change after the other."""
    def change(tables):
        for one in changes:
            tables = one(tables)
        return tables
    return change


def half(change):
    """The change on every second data set only."""
    def some(tables):
        new = change({name: table.copy() for name, table in tables.items()})["sets"]
        odd = new["data_set"] % 2 == 1
        tables["sets"] = tables["sets"].astype(new.dtypes.to_dict())
        tables["sets"].loc[odd] = new.loc[odd]
        return tables
    return some


REPLICAS = [(DOES_NOT_HOLD, put("replicas", "deviation", 9.0))]
ALWAYS = [(PASS, put("sets", "status", de.HOLD))]
UNBOUNDED = [(FAIL, put("noise", "bounded", False)),
             (NOT_TESTABLE, put("noise", "bounded", False, network="ring", data_set=[1, 2]))]
READINGS = ("average_settles", "agents_settles", "average_reaches", "agents_reaches",
            "radius")


def speeds(slow, fast, columns=READINGS):
    """Tables in which one network is slower than another by every reading."""
    return both(*[change for name in columns for change in (
        put("sets", name, 0.9, network=slow), put("sets", name, 0.1, network=fast))])


def rising(table, column, key):
    """The column increases with a key."""
    return put_by(table, column, key, 1.0)


def falling(table, column, key):
    """The column decreases with a key."""
    return put_by(table, column, key, -1.0)


def put_by(table, column, key, sign):
    def change(tables):
        order = tables[table][key].rank(method="dense")
        tables[table][column] = order if sign > 0 else 1000.0 - order
        return tables
    return change


def no_pair(tables):
    """Every network as far away as its gap says."""
    for name in ("average", "agents"):
        tables["networks"][name] = 1.0 / (1.0 + tables["networks"]["gap"])
    return tables


def against(tables):
    """Larger gaps further away."""
    for name in ("average", "agents"):
        tables["networks"][name] = tables["networks"]["gap"].rank(method="dense")
    return tables


OPPOSITES = {
    ("de_fig1", "condition_7"): [(FAIL, put("gaps", "smallest", -1.0, network="ring"))],
    ("de_fig1", "formula"): [(FAIL, put("gaps", "formula", 0.3, network="ring"))],
    ("de_fig1", "order"): [(FAIL, put("gaps", "gap", 0.1))],
    ("de_fig1", "larger_gap"): [(FAIL, put("gaps", "gap", 2.0, network="ring"))],
    ("de_fig2", "tolerance"): [(FAIL, put("sets", "worst_agent", 1e3)),
                               (NOT_TESTABLE, half(put("sets", "worst_agent", 1e3)))],
    ("de_fig2", "sampling"): [(HOLDS, put("sets", "best_agent", 1e-6))],
    ("de_fig2", "disconnected"): [(FAIL, put("sets", "agents", 1e-6, network="disconnected"))],
    ("de_fig2", "average_of_disconnected"): [(FAIL, put("sets", "average", 9.0, network="disconnected"))],
    ("de_fig2", "averages"): [(FAIL, put("sets", "average", 9.0, network="complete")),
                              (NOT_TESTABLE, half(put("sets", "average", 9.0, network="complete")))],
    ("de_fig2", "faster"): [(FAIL, speeds("complete", "ring")),
                            (NOT_TESTABLE, half(speeds("complete", "ring")))],
    ("de_fig2", "step_size_range"): ALWAYS,
    ("de_fig2", "printed_components"): [
        (PASS, put("printed", "spread", 1.0)), (FAIL, put("printed", "spread", 1.5))],
    ("de_fig2", "replicas"): REPLICAS,
    ("de_fig3", "similar"): [
        (FAIL, both(put("sets", "agents", 9.0, network="complete"), put("sets", "worst_agent", 1e3))),
        (NOT_TESTABLE, half(put("sets", "agents", 9.0, network="complete")))],
    ("de_fig3", "sampling"): [(HOLDS, put("sets", "best_agent", 1e-6))],
    ("de_fig3", "faster"): [(FAIL, speeds("complete", "ring")), (PASS, both(
        speeds("ring", "complete"), put("sets", "radius", 2.0, network="disconnected"),
        *[put("sets", name, 2.0, network="disconnected") for name in READINGS]))],
    ("de_fig3", "step_size_range"): ALWAYS,
    ("de_fig3", "replicas"): REPLICAS,
    ("de_fig4a", "error"): [(FAIL, rising("sets", "average", "batch_size"))],
    ("de_fig4a", "predicted"): [
        (FAIL, both(put("predicted", "full", 9.0), put("predicted", "small", 1.0))),
        (OUTSIDE, put("predicted", "covered", False))],
    ("de_fig4a", "small_batches"): [(DOES_NOT_HOLD, put("settled", "settles", True))],
    ("de_fig4a", "replicas"): REPLICAS,
    ("de_fig4b", "trade_off"): [(FAIL, falling("sets", "average", "step_size")),
                                (FAIL, rising("sets", "average_settles", "step_size"))],
    ("de_fig4b", "predicted"): [(FAIL, falling("theorem", "floor", "step_size")),
                                (OUTSIDE, put("theorem", "within_hypotheses", False))],
    ("de_fig4b", "informative"): [(HOLDS, put("starts", "floor", 1e-9))],
    ("de_fig4b", "order"): [(FAIL, falling("small", "average", "step_size"))],
    ("de_fig4b", "replicas"): REPLICAS,
    ("de_fig4c", "fastest"): [
        (FAIL, speeds("complete", "ring", ("agents_settles", "agents_reaches", "radius")))],
    ("de_fig4c", "lowest"): [(DOES_NOT_HOLD, put("sets", "agents", 9.0, network="complete"))],
    ("de_fig4c", "alone"): [(FAIL, put("alone", "off", 0.5)), (FAIL, put("alone", "nearest", 0.0))],
    ("de_fig4c", "assumptions"): UNBOUNDED,
    ("de_fig4c", "random_agent"): [(DOES_NOT_HOLD, both(put("agents", "w2", 1.0, network="complete"),
                                                put("agents", "w2", 2.0, network="ring"),
                                                put("agents", "w2", 3.0, network="disconnected")))],
    ("de_fig4c", "replicas"): REPLICAS,
    ("de_spectral_gap", "bound_in_gamma"): [(FAIL, falling("bound", "average", "gamma"))],
    ("de_spectral_gap", "family"): [(HOLDS, no_pair), (DOES_NOT_HOLD, against)],
    ("de_spectral_gap", "theorem_holds"): [(FAIL, put("networks", "average", 1e9))],
    ("de_spectral_gap", "every_pair"): [(HOLDS, no_pair)],
    ("de_spectral_gap", "equal_gaps"): [(HOLDS, both(put("networks", "average", 1.0),
                                                     put("networks", "agents", 1.0)))],
    ("de_spectral_gap", "informative"): [(HOLDS, put("networks", "average_bound", 1e-9))],
    ("de_spectral_gap", "slope"): [(HOLDS, lambda t: t | {"networks": t["networks"].assign(
        average=t["networks"]["average_bound"])})],
    ("de_spectral_gap", "equal_curvature"): [(DOES_NOT_HOLD, rising("equal", "average", "gap"))],
    ("de_spectral_gap", "replicas"): REPLICAS,
}
