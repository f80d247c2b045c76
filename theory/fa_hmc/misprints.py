"""Errata of FA-HMC that are settled by reading or by derivation. None changes a conclusion."""

from ..errata import reading
from .setting import PAPER

reading(id="fa_hmc.average_weights", paper=PAPER, where="section 4.2 and Algorithm 3",
        printed="theta_t = sum_c theta_t^(c); theta_{t+1,0} and theta_{t,0} for the start of an update",
        corrected="sum_c w_c theta_t^(c); theta_{t,0} throughout",
        because="Section D.2 has both right.")
reading(id="fa_hmc.hamiltonian_sign", paper=PAPER, where="section D.1, equation (2)",
        printed="theta(t) = theta(0) + int (p(0) + int grad f)", corrected="p(0) - int grad f",
        because="dp/dt = -grad f in (1).")
reading(id="fa_hmc.leapfrog_count", paper=PAPER, where="Algorithm 1",
        printed="while k <= K, from k = 0", corrected="K steps, k = 0, ..., K-1",
        because="Equations (3) and (4) have theta_K after K steps.")
reading(id="fa_hmc.leapfrog_argument", paper=PAPER, where="Algorithm 3",
        printed="h(f, theta, eta, K)", corrected="h(f, theta, p, eta, K), as in the journal version",
        because="The momentum that was sampled is an argument of Algorithm 1.")
reading(id="fa_hmc.sums_of_squares", paper=PAPER, where="after equation (26)",
        printed="sum (K-k)^2 = (2 K^3 - 3 K^2 + K^2)/6", corrected="(2 K^3 - 3 K^2 + K)/6",
        because="The sum of the first K-1 squares; (26) itself is right.")
reading(id="fa_hmc.noise_signs", paper=PAPER, where="(II)^(c) in section G, (32) and the proof of Lemma D.6",
        printed="K(...) - (1/2) sum (K-j)(...); last sum of (32) with a plus",
        corrected="K(...) + sum (K-j)(...); last sum of (32) with a minus", kind="derivation",
        because="By the update (4). Variances and bounds do not depend on these signs.")
reading(id="fa_hmc.displacement_noise", paper=PAPER, where="Lemma D.5 (5), (6)", kind="derivation",
        printed="(k eta)^4 sigma^2 d", corrected="(k eta)^4 sigma^2 d/k, which the later proofs use",
        because="Independent draws average out along the leapfrog; both are true.")
reading(id="fa_hmc.second_order_difference", paper=PAPER, where="proof of Lemma D.4, (I_2)",
        printed="sum_c w_c (Hess f_c(theta^c) - Hess f_c(theta^pi)) p^c with one factor (K^3-K)",
        corrected="sum_c w_c Hess f_c(theta^c) p^c (K^3-K)/6 - Hess f(theta^pi) p K^3/6", kind="derivation",
        because="Hess f p is not sum_c w_c Hess f_c p^c when momenta differ; the bound that follows treats "
                "both parts by themselves and stands.")
reading(id="fa_hmc.main_part_constant", paper=PAPER, where="Lemma D.4", kind="derivation",
        printed="sum_c w_c sigma^(c)2 d/9 within 2 (K eta)^6 L^2(...)",
        corrected="/18, as section G uses it and (31) proves it",
        because="Both are true, /18 is what is needed.")
reading(id="fa_hmc.index_of_sum", paper=PAPER, where="equation (13)", printed="sum_{i=1}^N w_c sigma^(c)2",
        corrected="sum_{c=1}^N w_c sigma^(c)2")
reading(id="fa_hmc.missing_gradients", paper=PAPER, where="end of the proof of Lemma D.7",
        printed="||f_c(theta) - f_c(theta_*)||^2 and ||f_c(theta_*)||^2",
        corrected="||grad f_c(theta) - grad f_c(theta_*)||^2 and ||grad f_c(theta_*)||^2")
reading(id="fa_hmc.oracle_norm", paper=PAPER, where="Lemma D.9 (15) and its proof", kind="derivation",
        printed="||p||^2; constant 1/3 from C = 0.521; garbled constants in the last display",
        corrected="||p||_max^2; the constant is about 1.02 with C = 1.042 and still covered by c_d/3",
        because="E||p||^2 ||p||_max^2 = (d+2) E||p||_max^2, far below c_d d/3.4.")
reading(id="fa_hmc.sketch_constants", paper=PAPER, where="section F, (23) and (24)",
        printed="(K eta)^4/120 without L^3; (K eta)^6 L^3/(15 mu) (K eta)^6/mu",
        corrected="use the last display of section G", because="A sketch; section G is the proof.")
reading(id="fa_hmc.symbols_of_the_lower_bound", paper=PAPER, where="proof of Theorem I.1",
        printed="(Sigma_2^(1/2) Sigma_2 Sigma_2^(1/2))^(1/2); <= L/(L+mu) theta_mu; g'(0), g'' <= 0",
        corrected="(Sigma_2^(1/2) Sigma_1 Sigma_2^(1/2))^(1/2); <= L/(L+mu); g'(0) = 0, g'' <= 0")
reading(id="fa_hmc.dynamic_references", paper=PAPER, where="Proposition 4.5 and after",
        printed="gamma = min{1/sqrt(L), ...}; Proposition 4.6 and Section H",
        corrected="gamma = min{1/L, ...}; Proposition 4.5 and Section J",
        because="gamma is a squared length, as in Theorem 4.1.")
reading(id="fa_hmc.synchronization_unit", paper=PAPER, where="section 5",
        printed="synchronization every T local leapfrog step", corrected="every T local HMC iterations",
        because="Algorithm 3 synchronizes when t = 0 modulo T, t counting iterations of K leapfrog steps.")
