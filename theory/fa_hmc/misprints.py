"""Errata and remarks on FA-HMC that are settled by reading or by derivation. None changes a conclusion.

Of its supplement there is one transcription, of its main text two (arXiv and journal version).
"""

from ..declare.corrections import Evidence
from .notation import erratum, reading

reading("dynamic_references", "Proposition 4.5 and after (arXiv version)", "error", (),
        "'One setting of eta_t that satisfies the claims in Proposition 4.6 is specified in .. Section H'",
        "Proposition 4.5, Section J",
        "There is no Proposition 4.6. Section H of the arXiv version proves Lemmas D.3 to D.10, and the "
        "setting of eta_t is in its Section J. (The journal version has the same sentence, and we have no "
        "text of its supplement: of that nothing is said.) Only the references are wrong: gamma has "
        "1/sqrt(L) in Proposition 4.5 and 1/L in Theorem 4.1 and Proposition 4.3, and with C depending on L "
        "that makes no difference.")
reading("noise_signs", "(II)^(c) in section G, (32) and the proof of Lemma D.6", "proof",
        ("displacement_bound", "leapfrog_deviation_bound"),
        "K(..) - sum ((K-j)/2)(..); last sum of (32) with a plus",
        "K(..) + sum (K-j)(..), as in (II) of section G; last sum of (32) with a minus",
        "By the update (4). Likewise (K eta)^2/2 grad f(theta_*) in (II) of D.7 wants a minus, given (I), "
        "and the difference in (I)_i^(c) of D.8 is grad f(theta_{i,k}) - grad f(theta_{i,0}). Only second "
        "moments and norms of these sums are used, and the bounds have the right weights.", kind="derivation")
reading("second_order_difference", "proof of Lemma D.4, (I_2)", "proof", ("main_part_bound",),
        "((K^3-K) eta^3/6) sum_c w_c (Hess f_c(theta^c) - Hess f_c(theta^pi)) p^c",
        "sum_c w_c Hess f_c(theta^c) p^c (K^3-K) eta^3/6 - Hess f(theta^pi) p (K eta)^3/6 (up to sign)",
        "Hess f p is not sum_c w_c Hess f_c p^c when momenta differ, and its factor is K^3. (31) bounds both "
        "parts by themselves, and its second part dominates that of Hess f p, since s_c >= 1 and f's Hessian "
        "is the average; so the bound stands.", kind="derivation")

reading("displacement_noise", "Lemma D.5 (5), (6)", "loose",
        ("displacement_bound", "gradient_displacement_bound"), "(k eta)^4 sigma^2 d",
        "(k eta)^4 sigma^2 d/k, as the end of its proof has it",
        "Independent draws average out along the leapfrog; both are true.", kind="derivation")
reading("main_part_constant", "Lemma D.4", "loose", ("main_part_bound",),
        "2 (K eta)^6 L^2 sum_c w_c sigma^(c)2 d/9", "/18, as section G uses it and (31) proves it",
        "The term of /9 is twice that of /18, and larger than needed.", kind="derivation")
reading("synchronization_unit", "section 5 (journal version too)", "loose", (),
        "synchronization every T local leapfrog step", "every T local HMC iterations",
        "Algorithm 3 synchronizes when t = 0 modulo T, t counting iterations of K leapfrog steps; 'a local "
        "leapfrog step' can be read as one call of Algorithm 1.")

reading("hamiltonian_sign", "section D.1, equation (2)", "transcription", (),
        "theta(t) = theta(0) + int (p(0) + int grad f)", "p(0) - int grad f",
        "One mark: dp/dt = -grad f in the line before, and section G has the minus.")
reading("average_weights", "section 4.2 and Algorithm 3", "transcription", (),
        "theta_t = sum_c theta_t^(c); theta_{t+1,0} for the start of update t",
        "sum_c w_c theta_t^(c); theta_{t,0}", "Algorithm 3 and section D.2 have the weights.")
reading("leapfrog_argument", "Algorithm 3", "transcription", (), "h(f, theta, eta, K)",
        "h(f, theta, p, eta, K)", "The journal version has p here, and so has Lemma D.5.")
reading("index_of_sum", "equation (13)", "transcription", (), "sum_{i=1}^N w_c sigma^(c)2", "sum_{c=1}^N",
        "The summand is client c's; N is the number of clients.")
reading("missing_gradients", "end of the proof of Lemma D.7", "transcription", (),
        "||grad f_c(theta) - f_c(theta_*)||^2, ||f_c(theta_*)||^2",
        "||grad f_c(theta) - grad f_c(theta_*)||^2, ||grad f_c(theta_*)||^2",
        "The same display has ||grad f_c(theta_*)||^2 at its end.")
reading("oracle_norm", "Lemma D.9 (15) and the end of its proof", "transcription",
        ("oracle_reach_bound", "oracle_gradient_bound"), "||p||^2; L^4/mu, sigma_rho^4", "||p||_max^2; L/mu",
        "The proof of (15) has the largest entry; (28) has the right constants.")
reading("sketch_constants", "section F, (23) and (24)", "transcription", (),
        "(K eta)^4/120 without L^3; (K eta)^6 L^3/(15 mu) (K eta)^6/mu", "the last display of section G",
        "Section F is a sketch, and section G, the proof, has the constants.")
reading("symbols_of_the_lower_bound", "proof of Theorem I.1", "transcription", (),
        "(Sigma_2^(1/2) Sigma_2 Sigma_2^(1/2))^(1/2); <= L/(L+mu) theta_mu; g'(0), g'' <= 0",
        "(Sigma_2^(1/2) Sigma_1 Sigma_2^(1/2))^(1/2); <= L/(L+mu); g'(0) = 0, g'' <= 0",
        "Subscripts and marks, of which our text loses some; nothing rests on them.")


@erratum("three_constants", "Lemma D.7, (10) and (39)", "loose", "nothing",
         ("client_step_bound", "client_moment_bound", "client_gradient_bound"),
         "(K eta)^2 (L/mu) B_a in (10), (K eta)^2 B_a in (39); sigma_g^2 d/(7 K mu), sigma_g^2 d/(K mu)",
         "(K eta)^2 B_a with B_a = 2 (L/mu) s_c d + 4 ||grad f_c||^2/(3 mu) + sigma_g^2 d/(7 K mu)")
def _three_constants() -> Evidence:
    """The factor L/mu >= 1 and the larger noise are true and not needed: with (c_3, c_4) = (9/10, 1/10),
    (c_5, c_6) = (1/2, 1/2) in (36)-(38) and L (K eta)^2 <= 1/4 all constants of (10) come out with the
    prefactor of (39).
    """
    # The four constants at L (K eta)^2 = 1/4, L = mu, where they are largest.
    c3, c4, c5, c6 = 0.9, 0.1, 0.5, 0.5
    parts = {"momentum (2)": (15 / 14 + 1 / (18 * c4)) / 2,
             "heterogeneity (4/3)": 3 * (1 / (4 * c3) + 1 / 16 / (120 * c4 * c6)),
             "gradient noise (1/7)": 7 * (15 / 14 / 16 + 4 / 16 / (72 * c4)),
             "lost contraction (2)": 4 / (120 * c4 * c5) / 2}
    return Evidence(max(parts.values()) <= 1.0,
                    {f"from (36)-(38) over the constant: {k}": v for k, v in parts.items()},
                    "At most 1 where the sharper form is proved.")
