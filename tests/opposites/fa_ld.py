"""Opposites for FA-LD's figures."""

from reproduce.figure import FAIL, MISPRINT, PASS
from reproduce.verdicts import DOES_NOT_HOLD, HOLDS


def column(table, name, value):
    """The change that replaces a column by a value, or by a function of its table."""
    def change(tables):
        one = tables[table]
        return tables | {table: one.assign(**{name: value(one) if callable(value) else value})}
    return change


def where(table, name, rows, value):
    """The same in some rows alone, a number."""
    return column(table, name, lambda one: one[name].where(~rows(one), value))


def middle(one):
    return (one["local_steps"] > one["local_steps"].min()) & (one["local_steps"] < one["local_steps"].max())


OPPOSITES = {
    ("fa_ld_fig1a", "small_k"): [(FAIL, column("equal", "rounds", 5.0))],
    ("fa_ld_fig1a", "large_k"): [
        (PASS, where("equal", "rounds", lambda t: t["local_steps"] == t["local_steps"].max(), 1e5))],
    ("fa_ld_fig1a", "gamma"): [(PASS, column("heterogeneity", "gamma", lambda t: t["quoted"])),
                               (MISPRINT, column("heterogeneity", "gamma", lambda t: t["quoted"]**0.5)),
                               (FAIL, column("heterogeneity", "gamma", 1.0))],
    ("fa_ld_fig1a", "unequal_fixed"): [(DOES_NOT_HOLD, column("bias", "w2", 1e-5))],
    ("fa_ld_fig1a", "unequal_tuned"): [(HOLDS, where("tuned", "rounds", middle, 0.5)),
                                       (DOES_NOT_HOLD, column("tuned", "rounds", 7.0))],
    ("fa_ld_fig1b", "level"): [(FAIL, column("fits", "w2", lambda t: 100.0 * t["w2"]))],
    ("fa_ld_fig1b", "slower"): [(FAIL, column("hits", "rounds", 100.0))],
    ("fa_ld_fig1b", "cause"): [
        (DOES_NOT_HOLD, column("equal_start", "w2", lambda t: t["w2"] * (1.0 + t["alpha"])))],
    ("fa_ld_fig1c", "accelerates"): [
        (PASS, column("curves", "w2", lambda t: t["w2"] * (1.0 - 0.1 * t["rho"])))],
    ("fa_ld_fig1c", "unequal_approach"): [(DOES_NOT_HOLD, column("gain", "most", 0.1))],
    ("fa_ld_fig1c", "unequal_end"): [(DOES_NOT_HOLD, column("gain", "last", 0.1))],
    ("fa_ld_fig1de", "density"): [(FAIL, column("laws", "share", 0.5))],
    ("fa_ld_fig3a", "full"): [(FAIL, column("bias", "w2", 1e-3)), (FAIL, column("speed", "rounds", 9.0))],
    ("fa_ld_fig3a", "seen"): [
        (DOES_NOT_HOLD,
         column("fits", "w2", lambda t: (1.0 + 0.01 * t["data_set"]) * 1e-9 / t["step_size"]))],
    ("privacy_frontier", "increasing"): [(FAIL, column("steps", "epsilon_theorem", 1.0))],
    ("privacy_frontier", "optimum"): [(FAIL, column("data_sets", "w2", lambda t: t["step_size"]))],
    ("privacy_frontier", "largest"): [(FAIL, column("data_sets", "w2", 1e-3))],
    ("privacy_frontier", "record"): [(PASS, column("evidence", "claimed_exact", 0.0))],
    ("privacy_frontier", "condition"): [(DOES_NOT_HOLD, column("steps", "valid_57", False))],
    ("privacy_frontier", "all_clients"): [
        (DOES_NOT_HOLD, column("shares", "w2", lambda t: t["w2"] * (1.0 - 0.5 * t["shared_noise"])))],
    ("privacy_frontier", "scheme_i"): [(DOES_NOT_HOLD, column("deltas", "theorem_vacuous", False))],
}
for letter in "bcde":
    figure = f"fa_ld_fig3{letter}"
    OPPOSITES |= {
        (figure, "flat"): [(FAIL, where("bias", "w2", lambda t: t["scheme"] == "full", 1e-3))],
        (figure, "dominant"): [(FAIL, column("bias", "w2", 1e-3))],
        (figure, "shared"): [(FAIL, where("bias", "w2", lambda t: t["rho"] == 1.0, 1.0)),
                             (FAIL, column("bias", "w2", lambda t: t["step_size"]))],
    }
