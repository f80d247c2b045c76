"""Errata of FA-LD that are settled by reading or by derivation. None changes a conclusion."""

from ..errata import reading
from .setting import PAPER

reading(id="fa_ld.stray_client_weight", paper=PAPER, where="Lemma B.2 and equation (26)", kind="derivation",
        printed="16 eta d tau / p_c, and N in the last term of (26)",
        corrected="16 eta d tau, and (26) ends 2 eta^4 d L^4 H_0 + 16 eta^3 L^2 d tau",
        because="The diffusion follows the average, whose noise is a standard Brownian motion; the p_c and N "
                "are left over from a per-client version. The constant 400 of Lemma B.5 covers both.")
reading(id="fa_ld.noise_variance_factor", paper=PAPER, where="Lemma B.4", kind="derivation",
        printed="E||grad f - stochastic grad f||^2 <= d sigma^2",
        corrected="<= d sigma^2 sum_c p_c^2, as its proof has it",
        because="The statement drops a factor at most 1; true but weaker.")
reading(id="fa_ld.geometric_sum", paper=PAPER, where="proof of Theorem C.3, first display after (36)",
        kind="derivation", printed="(1 - (1 - eta m/2)^K)^floor(k/K) / (1 - (1 - eta m/2)^K)",
        corrected="(1 - (1 - eta m/2)^(K floor(k/K))) / (1 - (1 - eta m/2)^K)",
        because="A misplaced power in a geometric sum; both are at most 1/(1 - (1 - eta m/2)^K).")
reading(id="fa_ld.correlated_constant", paper=PAPER, where="proof of Theorem C.3",
        printed="900 eta m d kappa^2 H_0 (...)", corrected="900 eta m d kappa^2 H_rho (...)",
        because="The statement has H_rho.")
reading(id="fa_ld.square_roots", paper=PAPER, where="proof of Theorem B.7, equation (29) and after",
        printed="(1 - eta_k m/12) eta_k^(1/2) <= eta_{k+1}, and (d/(2L + m k/12))^(1/2) in (29)",
        corrected="(1 - eta_k m/12) eta_k^(1/2) <= eta_{k+1}^(1/2), and (m d/(2L + m k/12))^(1/2) in (29)",
        kind="derivation", because="The induction is right with the square root and the factor m in place.")
reading(id="fa_ld.sampling_probability", paper=PAPER, where="section C.1, scheme II and Lemma C.1",
        printed="n_j takes the value c with probability 1/S; E sum over S_k of theta_k^c",
        corrected="probability 1/N for each draw; E (1/S) sum over S_k of theta_k^c",
        because="S indices are drawn uniformly from N clients, and the average needs its 1/S.")
reading(id="fa_ld.client_temperature", paper=PAPER, where="section B.4", printed="T_{c,0} = (1 - rho^2)/p_c",
        corrected="T_{c,0} = tau/p_c", because="Definition A.4 at rho = 0; section 4.3.3 has it right.")
reading(id="fa_ld.generalized_constant", paper=PAPER, where="proof of Theorem B.8",
        printed="H_0 is generalized to H_0", corrected="H_0 is generalized to H_rho")
reading(id="fa_ld.independent_noises", paper=PAPER, where="section B.4, after equation (31)",
        printed="the shared noise is dependent with the clients' own",
        corrected="the shared noise is independent of the clients' own",
        because="Section 4.3.3 says independent, and the average noise is standard normal only then.")
reading(id="fa_ld.synchronization_index", paper=PAPER, where="equations (3), (15) and Algorithm 1",
        printed="k+1 mod K = 0", corrected="(k+1) mod K = 0",
        because="Clients synchronize after K local steps; read without brackets the index would never match.")
