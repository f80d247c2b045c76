"""What is said against FA-LD section 5 and appendix G, with the computed reason of each."""

from __future__ import annotations

import math

import numpy as np

from fedsim.participation import Participation

from ..errata import Evidence, erratum, reading
from .hypotheses import validity_ceiling
from .profiles import Component, drawn_client_delta, mixture_delta, record_shift
from .setting import PrivacySetting
from .terms import drawn_probability
from .theorem import guarantee_at


def one_upload(n_clients: int, records: int) -> tuple[PrivacySetting, float]:
    """One round of one full-batch step by one of N clients, and the distance from client to client.

    Records are -1 or 1 with loss (theta - x)^2 / 2, so that the sensitivity is 2. The changed record's
    client holds records of one sign, all other clients hold the other sign: their uploads differ by
    `records` times what the changed record does. The distance is returned for the step size of (57), in
    standard deviations of the noise.
    """
    given = PrivacySetting(sensitivity=2.0, batch_fraction=1.0, delta0=1e-5, delta1=0.0, delta2=0.0,
                           local_steps=1, n_rounds=1, n_clients=n_clients,
                           participation=Participation(1, False), client_sizes=records)
    return given, records * record_shift(given, validity_ceiling(given), 1.0 / n_clients)


def one_weighted_upload(n_clients: int, weight: float) -> tuple[PrivacySetting, float]:
    """One round of one full-batch step by one client drawn by scheme I, one record a client; its step size.

    The first client has this weight, the others share the rest. Records lie in [-1, 1] with loss
    (theta - x)^2 / 2, the server starts from 0. The step size is 1 % of (57).
    """
    weights = np.full(n_clients, (1.0 - weight) / (n_clients - 1))
    weights[0] = weight
    given = PrivacySetting(sensitivity=2.0, batch_fraction=1.0, delta0=1e-6, delta1=0.0, delta2=0.0,
                           local_steps=1, n_rounds=1, weights=weights / weights.sum(),
                           participation=Participation(1, True), client_sizes=1)
    return given, 0.01 * validity_ceiling(given)


def weighted_upload_delta(given: PrivacySetting, step_size: float, epsilon: float) -> float:
    """Exact delta at `epsilon` when the first client's record goes from 1 to -1 and the others have 0.

    In units of the first client's noise the upload is N(-+shift/2, 1) with probability p_1, and else that
    of another client, N(0, p_1/p_c), whose noise has the variance that goes with its own weight.
    """
    first, other = float(given.weights[0]), float(given.weights[1])
    half = 0.5 * record_shift(given, step_size, first)
    others: Component = (1.0 - first, 0.0, math.sqrt(first / other))
    return mixture_delta(epsilon, [(first, -half, 1.0), others], [(first, half, 1.0), others])


@erratum(id="fa_ld.privacy.client_sampling", paper="FA-LD", where="Theorems 5.1 and G.3, (62)",
         printed="eps~_K = log(1 + (S/N)(e^eps_K - 1)) \"w.r.t.\" the replacement of one data point",
         corrected="eps~_K = eps_K; only delta_K is multiplied by the chance to be drawn. As printed for one "
                   "record per client, and for S = N",
         grade="error", consequence="conclusion",
         theorems=("privacy.round_bound", "privacy.run_bound", "privacy.simplified_run_bound",
                   "privacy.epsilon_rate_bound"),
         derivation="Amplification by sampling compares the law P_1 given that the client is drawn with the "
                    "law P_0 given that it is not, so that neighbours must turn a drawn client into any "
                    "other. \"S ~ S'\" of (13) replaces one data point of one client. With P_0 far from P_1, "
                    "P = (1-q) P_0 + q P_1 and P' = (1-q) P_0 + q P_1', the event far from P_0 gives "
                    "delta(e) >= q delta_1(e), the profile of P_1, P_1' at the same e: no smaller epsilon.",
         kind="numerical")
def _client_sampling() -> Evidence:
    found: dict[str, float] = {}
    for name, records, variant in (("claimed", 100, "printed"), ("one_record", 1, "printed"),
                                   ("record_level", 100, "record_level")):
        given, gap = one_upload(100, records)
        step = validity_ceiling(given)
        claim = guarantee_at(given, step, variant=variant)
        found[f"{name}_epsilon"], found[f"{name}_delta"] = claim.epsilon, claim.delta
        found[f"{name}_exact"] = drawn_client_delta(claim.epsilon, record_shift(given, step, 0.01), 0.01, gap)
    wrong = found["claimed_exact"] > found["claimed_delta"]
    mended = all(found[f"{name}_exact"] <= found[f"{name}_delta"] for name in ("one_record", "record_level"))
    return Evidence(
        wrong and mended, found,
        f"N=100, S=1, 100 records a client: at the printed epsilon {found['claimed_epsilon']:.3g} the exact "
        f"delta is {found['claimed_exact']:.2g}, the printed one {found['claimed_delta']:.2g}; with one "
        f"record a client it is {found['one_record_exact']:.2g}; at epsilon_K = "
        f"{found['record_level_epsilon']:.3g} it is {found['record_level_exact']:.2g}")


@erratum(id="fa_ld.privacy.scheme_i_chance", paper="FA-LD", where="Theorem G.3, (62) and (63), scheme I",
         printed="1 - (1 - 1/N)^S under scheme I, beside min_c p_c; scheme I \"takes a value of c with a "
                 "probability p_c\"",
         corrected="holds for equal weights (and one record per client); else eps~_K = eps_K and delta_K "
                   "times 1 - (1 - max_c p_c)^S",
         grade="error", consequence="range",
         theorems=("privacy.round_bound", "privacy.run_bound"),
         derivation="1/N is the chance of a uniform draw, scheme I draws client c with p_c. With unequal "
                    "weights clients cannot be exchanged either: the noise of client c has variance "
                    "2 eta tau (1-rho^2)/p_c, so that the tails of a light client's upload are its own, and "
                    "nobody else's upload hides its record there. So it is also with one record per client, "
                    "and with the right chance in place of 1/N.",
         kind="numerical")
def _scheme_i_chance() -> Evidence:
    clients, light = 50, 0.01
    found: dict[str, float] = {"chance_as_printed": drawn_probability(1.0 / clients, 1), "chance": light}
    for name, weight, variant in (("equal", 1.0 / clients, "printed"), ("unequal", light, "printed"),
                                  ("record_level", light, "record_level")):
        given, step = one_weighted_upload(clients, weight)
        claim = guarantee_at(given, step, variant=variant)
        found[f"{name}_epsilon"], found[f"{name}_delta"] = claim.epsilon, claim.delta
        found[f"{name}_exact"] = weighted_upload_delta(given, step, claim.epsilon)
    wrong = found["unequal_exact"] > found["unequal_delta"]
    mended = all(found[f"{name}_exact"] <= found[f"{name}_delta"] for name in ("equal", "record_level"))
    return Evidence(
        wrong and mended, found,
        f"N={clients}, S=1, one record a client: with equal weights the exact delta at the printed epsilon "
        f"is {found['equal_exact']:.2g}, the printed one {found['equal_delta']:.2g}; with one client of "
        f"weight {light} they are {found['unequal_exact']:.2g} and {found['unequal_delta']:.2g}; at "
        f"epsilon_K it is {found['record_level_exact']:.2g}")


reading(id="fa_ld.privacy.grouping", paper="FA-LD", where="Theorem 5.1, epsilon^(3)",
        printed="sqrt{ (2T/K) log(1/delta2) + TS(e^eps_K - 1)/(KN), T/K }",
        corrected="sqrt{ (2T/K) log(1/delta2) } + TS(e^eps_K - 1)/(KN), as in Theorem G.3 and (64)",
        grade="transcription", consequence="nothing", theorems=("privacy.run_bound",),
        derivation="In our text the root runs on over the comma to the minimum's other argument, so that its "
                   "end is lost. Theorem G.3, of which 5.1 is a part, and the proof's (64) and last line "
                   "have it end after its first term, as advanced composition needs.")
