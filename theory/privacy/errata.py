"""What is said against FA-LD section 5 and appendix G, with the computed reason of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedsim.settings.participation import Participation

from ..declare.corrections import Evidence
from ..fa_ld.notation import erratum, reading
from .hypotheses import validity_ceiling
from .profiles import Component, drawn_client_delta, mixture_delta, record_shift
from .setting import PrivacySetting
from .terms import amplified
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


def one_weighted_upload(sizes: Sequence[int]) -> tuple[PrivacySetting, float]:
    """One round of one full-batch step by one client drawn by scheme I, p_c = n_c/n; and its step size.

    Records lie in [-1, 1] with loss (theta - x)^2 / 2, the server starts from 0. The step size is 1 % of
    (57).
    """
    records = np.asarray(sizes, dtype=np.float64)
    given = PrivacySetting(sensitivity=2.0, batch_fraction=1.0, delta0=1e-6, delta1=0.0, delta2=0.0,
                           local_steps=1, n_rounds=1, weights=records / records.sum(),
                           participation=Participation(1, True), client_sizes=records)
    return given, 0.01 * validity_ceiling(given)


def weighted_upload_delta(given: PrivacySetting, step_size: float, epsilon: float) -> float:
    """Exact delta at `epsilon` when the first client's only record goes from 1 to -1, all others being 0.

    In units of the first client's noise the upload is N(-+shift/2, 1) with probability p_1, and with
    probability p_c that of client c, N(0, p_1/p_c): the variance of a client's noise goes with 1/p_c.
    """
    first = float(given.weights[0])
    half = 0.5 * record_shift(given, step_size, first)
    others: list[Component] = [(float(count * weight), 0.0, math.sqrt(first / weight)) for weight, count
                               in zip(*np.unique(given.weights[1:], return_counts=True), strict=True)]
    return mixture_delta(epsilon, [(first, -half, 1.0), *others], [(first, half, 1.0), *others])


@erratum("privacy.client_sampling", "Theorems 5.1 and G.3, (62)", "error", "conclusion",
         ("privacy.round_bound", "privacy.run_bound", "privacy.simplified_run_bound",
          "privacy.epsilon_rate_bound"),
         'eps~_K = log(1 + (S/N)(e^eps_K - 1)) "w.r.t." the replacement of one data point',
         "eps~_K = eps_K; only delta_K is multiplied by the chance to be drawn. The proof covers the "
         "printed form for one record per client, and for S = N")
def _client_sampling() -> Evidence:
    """Amplification by sampling compares the law P_1 given that the client is drawn with the law P_0
    given that it is not, so that neighbours must turn a drawn client into any other. "S ~ S'" of (13)
    replaces one data point of one client. With q the chance to be drawn, P = (1-q) P_0 + q P_1 and P' =
    (1-q) P_0 + q P_1'. As P_0 moves away from P_1, delta(e) tends to at least q delta_1(e), the profile
    of P_1, P_1' at the same e: from an upload's (eps_K, delta_K) no smaller epsilon than eps_K can be
    promised at delta = q delta_K. The guarantee stands with eps_K in place of eps~_K, and delta keeps the
    factor S/N: P_1(E) <= e^eps_K P_1'(E) + delta_K, averaged over who is drawn.
    """
    # One of 100 clients drawn, and the fewest records a client at which the printed bound is exceeded.
    claims = {"claimed": _claimed(100, "printed"), "one_record": _claimed(1, "printed"),
              "record_level": _claimed(100, "record_level")}
    claimed, single, level = claims.values()
    exceeded = [records for records in range(1, 11) if _exceeds(_claimed(records, "printed"))]
    return Evidence(
        _exceeds(claimed) and not _exceeds(single) and not _exceeds(level), _numbers(claims),
        f"N=100, S=1, one full-batch step at the step size of (57), delta_0=1e-5, 100 records a client: at "
        f"the printed epsilon {claimed['epsilon']:.2g} the exact delta is {claimed['exact']:.1e}, the "
        f"printed one {claimed['delta']:.0e}; with one record a client it is {single['exact']:.0e}; with 100 "
        f"at epsilon_K = {level['epsilon']:.2g} it is {level['exact']:.0e}. Of 1 to 10 "
        "records a client the printed delta is exceeded "
        + (f"from {exceeded[0]} on." if exceeded and exceeded == list(range(exceeded[0], 11))
           else f"at {exceeded}." if exceeded else "at none."))


def _claimed(records: int, variant: str) -> dict[str, float]:
    """Claimed epsilon and delta of `one_upload` of one of 100 clients, and the exact delta there."""
    given, gap = one_upload(100, records)
    claim = guarantee_at(given, validity_ceiling(given), variant=variant)
    shift = record_shift(given, claim.step_size, 0.01)
    return {"epsilon": claim.epsilon, "delta": claim.delta,
            "exact": drawn_client_delta(claim.epsilon, shift, 0.01, gap)}


def _exceeds(claim: dict[str, float]) -> bool:
    return claim["exact"] > claim["delta"]


def _numbers(claims: dict[str, dict[str, float]]) -> dict[str, float]:
    return {f"{name}_{what}": value for name, claim in claims.items() for what, value in claim.items()}


@erratum("privacy.scheme_i_chance", "Theorem G.3, (62) and (63), scheme I", "error", "range",
         ("privacy.round_bound", "privacy.run_bound"),
         '1 - (1 - 1/N)^S under scheme I, beside min_c p_c; scheme I "takes a value of c with a probability '
         'p_c"',
         "not contested for one record per client (then p_c = 1/N; computed here at S = 1 only); else "
         "eps~_K = eps_K and delta_K times 1 - (1 - max_c p_c)^S")
def _scheme_i_chance() -> Evidence:
    """With one record a client p_c = 1/N: where the condition of `client_sampling` holds nothing further is
    lost here. Beyond it, 1/N is the chance of a uniform draw, scheme I draws client c with p_c. With
    unequal weights clients cannot be exchanged either: the noise of client c has variance 2 eta tau
    (1-rho^2)/p_c, so that the tails of a light client's upload are its own, and nobody else's upload
    hides its record there. So it is also with the right chance p_c in place of 1/N. Example: a client
    with one record beside clients with two or three, p_c = n_c/n.
    """
    # As printed, with the right chance of the light client in place of 1/N, and without amplification.
    unequal, equal = (1, *48 * (2,), 3), 50 * (1,)
    claims = {}
    for name, sizes, variant in (("equal", equal, "printed"), ("unequal", unequal, "printed"),
                                 ("right_chance", unequal, "printed"),
                                 ("record_level", unequal, "record_level")):
        given, step = one_weighted_upload(sizes)
        claim = guarantee_at(given, step, variant=variant)
        epsilon, delta, chance = claim.epsilon, claim.delta, float(given.weights[0])
        if name == "right_chance":
            epsilon = amplified(claim.terms["epsilon_client"], chance)
            delta = chance * claim.terms["delta_client"]
        claims[name] = {"epsilon": epsilon, "delta": delta,
                        "exact": weighted_upload_delta(given, step, epsilon)}
    alike, apart, right, level = claims.values()
    return Evidence(
        [name for name, claim in claims.items() if _exceeds(claim)] == ["unequal", "right_chance"],
        _numbers(claims),
        "N=50, S=K=1, full batches, delta_0=1e-6, 1 % of the step size of (57). One record a client: at the "
        f"printed epsilon the exact delta is {alike['exact']:.0e}, the printed one {alike['delta']:.0e}. The "
        "client with one record (p_c=.01) beside 48 with two and one with three: "
        f"{apart['exact']:.1e} and {apart['delta']:.0e}; with its chance .01 in place of 1/N "
        f"{right['exact']:.1e} and {right['delta']:.0e}; at epsilon_K {level['exact']:.0e} and "
        f"{level['delta']:.0e}.")


reading("privacy.grouping", "Theorem 5.1, epsilon^(3)", "transcription", ("privacy.run_bound",),
        "sqrt{ (2T/K) log(1/delta2) + TS(e^eps_K - 1)/(KN), T/K }",
        "sqrt{ (2T/K) log(1/delta2) } + TS(e^eps_K - 1)/(KN), as in Theorem G.3 and (64)",
        "In our text the root runs on over the comma to the minimum's other argument, so that its end is "
        "lost. Theorem G.3, of which 5.1 is a part, and the proof's (64) and last line have it end after its "
        "first term, as advanced composition needs.")
