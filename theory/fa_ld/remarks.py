"""Remarks on FA-LD that are no errata: statements that are true and not sharp ("loose"), and places where our
transcription of the paper may have lost a mark ("transcription")."""

from __future__ import annotations

from fedsim.algorithms.fa_ld import FALD
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.participation import Participation

from ..declare.corrections import Evidence
from ..exact import stationary_law
from ..facts.constants_of_problem import constants
from ..tuning import best_step_size
from .notation import erratum, reading
from .theorems import w2_bound, w2_bound_partial


@erratum("bias_at_full_sharing", "section 4.4, after Theorem 4.10", "loose", "nothing", ("w2_bound_partial",),
         "Partial device participation leads to an extra bias regardless of the scale of eta.",
         "so for the bound, and for the algorithm with rho < 1; with rho = 1 the algorithm's bias vanishes "
         "with eta")
def _bias_at_full_sharing() -> Evidence:
    """Theorem C.3's last term tends to 2 sqrt(2 d tau (rho^2 + N (1-rho^2)) C_S/(S m)) as eta falls. In
    the algorithm shared noise is the same for every client and cancels in beta^c - beta, so that drawing
    adds a variance of order 1 - rho^2. The paper's next sentence advises rho = 1.
    """
    # Stationary variance over the target's, for falling step sizes.
    problem = Quadratic([1.0, 2.0, 3.0, 2.0], [[1.0], [-1.0], [0.0], [2.0]])
    numbers = {}
    for shared in (1.0, 0.0):
        for step in (1e-2, 1e-4, 1e-6):
            algorithm = FALD(step, local_steps=5, shared_noise=shared, participation=Participation(2, False))
            law, goal = stationary_law(problem, algorithm), algorithm.target(problem)
            numbers[f"variance / target's, rho={shared:g}, eta={step:g}"] = float(
                law.cov[0, 0] / goal.cov[0, 0])
    algorithm = FALD(1e-6, local_steps=5, shared_noise=1.0, participation=Participation(2, False))
    bound = w2_bound_partial(constants(problem, algorithm), algorithm, n_rounds=0, variant="printed")
    numbers["bound's participation term, rho=1, eta=1e-06"] = float(bound.terms["participation"][0])
    vanishes = abs(numbers["variance / target's, rho=1, eta=1e-06"] - 1.0) < 1e-3
    stays = numbers["variance / target's, rho=0, eta=1e-06"] > 1.1
    return Evidence(vanishes and stays, numbers,
                    f"As eta falls an extra variance stays with rho = 0: {stays}; it vanishes with rho = 1: "
                    f"{vanishes}.")


@erratum("growth_with_local_steps", "section 4.3.1, Optimal choice of K", "loose", "nothing", ("w2_bound",),
         "setting K either too large or too small leads to high communication costs",
         "so for the rounds that the bound asks for; the exact rounds at the best step size can level off")
def _growth_with_local_steps() -> Evidence:
    """The text derives rounds that suffice, proportional to K + kappa/K, from an upper bound, and 'it
    suffices' and 'indicates' say so. On quadratic clients the bias is proportional to eta (K-1), so that
    at equal bias eta falls like 1/K and the rounds tend to a constant.
    """
    # Two clients of different curvature, the step size tuned for every K by the exact law.
    problem = Quadratic([1.0, 3.0], [[-1.0], [1.0]])
    numbers: dict[str, float] = {}
    for K in (10, 100, 1000):
        best = best_step_size(problem, FALD(1.0, K), 0.02, n_grid=17, n_refine=2, max_rounds=10**5)
        if best is None:
            return Evidence(False, numbers, f"K={K}: the accuracy 0.02 was not reached within 1e5 rounds.")
        numbers[f"exact rounds at the best step size, K={K}"] = float(best.n_rounds)
    few, _, many = numbers.values()
    known = constants(problem, FALD(1e-6))
    floors = [w2_bound(known, FALD(1e-6, K), n_rounds=0, variant="printed").terms["discretization"][0]
              for K in (10, 1000)]
    # at equal accuracy the bound's step size goes like 1/floor^2, its rounds like floor^2/K
    asked = float((floors[1] / floors[0]) ** 2 / 100.0)
    numbers["rounds asked for by the bound, K=1000 over K=10"] = asked
    return Evidence(many / few < 2.0 < asked, numbers,
                    f"From K = 10 to 1000 the bound asks for {asked:.3g} times the rounds; the exact number "
                    f"at the best step size changes by the factor {many / few:.3g}.")


reading("noise_variance_factor", "Lemma B.4", "loose", ("gradient_noise_bound",),
        "E||grad f(theta) - stochastic grad f(theta)||^2 <= d sigma^2", "<= d sigma^2 sum_c p_c^2 holds too",
        "The clients' noises are independent, so that p_c^2 add up; the proof writes this line out and then "
        "uses sum_c p_c^2 <= (sum_c p_c)^2 = 1.", kind="derivation")
reading("partial_constants", "Lemma C.2 and equation (36)", "loose",
        ("participation_gap_bound", "w2_bound_partial"), "112 and 8 in Lemma C.2",
        "28 and 4 for a fixed learning rate, as its proof has them and (36) uses them",
        "Both are true (in the range of fa_ld.lemma_range). 400 ((K-1)^2 + kappa) + 28 K^2 is at most 450 "
        "(K^2 + kappa), which with 112 it is not for large K; 4 K d eta tau is the proof's 4.",
        kind="derivation")
reading("geometric_sum", "proof of Theorem C.3, first display after (36)", "transcription",
        ("w2_bound_partial",), "(1 - (1 - eta m/2)^K)^floor(k/K) / (1 - (1 - eta m/2)^K)",
        "(1 - (1 - eta m/2)^(K floor(k/K))) / (1 - (1 - eta m/2)^K)",
        "A bracket of an exponent in a geometric sum; the next line, 1/(1 - e^(-eta m K/2)), is right.")
reading("correlated_constant", "proofs of Theorems B.8 and C.3", "transcription",
        ("w2_bound", "w2_bound_partial"), "H_0 is generalized to H_0; 900 eta m d kappa^2 H_0 (...)",
        "H_0 is generalized to H_rho; 900 eta m d kappa^2 H_rho (...)",
        "A subscript rho read as 0: the sentence has no other sense, and the statements have H_rho.")
reading("square_roots", "proof of Theorem B.7, equation (29) and after", "transcription",
        ("w2_bound_decreasing",),
        "(1 - eta_k m/12) eta_k^(1/2) <= eta_{k+1}, and (d/(2L + (1/12) m k))^(1/2) in (29)",
        "(1 - eta_k m/12) eta_k^(1/2) <= eta_{k+1}^(1/2), and (m d/(2L + (1/12) m k))^(1/2) in (29)",
        "An exponent and an m: (29)'s own right-hand side has (eta_k m d)^(1/2), the last display's middle "
        "member is eta_{k+1}^(1/2), and the display after it has m d.")
reading("independent_noises", "section B.4, after equation (31)", "transcription", (),
        "xi_k is dependent with xi_k^c for any c in [N]", "independent with xi_k^c",
        "Two letters; section 4.3.3 has the same sentence with 'independent'.")
reading("partial_grouping", "Theorem C.3", "transcription", ("w2_bound_partial",),
        "2 sqrt(C_K d tau/(S m)) (rho^2 + N (1-rho^2)) C_S",
        "2 sqrt(C_K d tau (rho^2 + N (1-rho^2)) C_S/(S m))",
        "Where a radical ends: Theorem 4.10 and the last line of the proof have all factors under the root.")
