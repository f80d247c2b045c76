"""FA-HMC's theorems: the explicit recursion, lemmas, lower bound, rates, planning and errata.

Source: "Bayesian federated learning with Hamiltonian Monte Carlo: algorithm and theory", arXiv version with
supplement. "Printed" means: in our transcription of it.

Where what stands:

==========================================  ===============================================================
Theorem 4.4, Lemma D.8's parts              `theorem_44`; the exact coupled pair in `coupling`
W2 by the coupling itself, derived here      `recursion`; its update `coupled`; leapfrogs `contraction`
Theorem 4.1, Propositions 4.3, 4.5          `rates` (shapes), `planning` (rules), `proposition_45` (stages)
Theorem C.1 (I.1)                           `theorem_c1`
Lemmas D.4, D.6, D.7, D.8                   `lemmas_d4_d6_d7_d8`: an update and its clients
Lemmas D.2, D.3, D.5, D.9, D.10             `lemmas_d2_d3_d5_d9_d10`: trajectories and the oracle
letters, constants; hypotheses              `notation`; `hypotheses`
exact values of what is bounded             `quantities`
errata of Theorem 4.4; lemmas; C.1; rates   `errata`; `errata_lemmas`; `errata_lower`; `errata_schedules`
slips of the pen and remarks                `misprints`
==========================================  ===============================================================

Not in the catalogue, because no number can be put in: section K (gradient noise that grows with the gradient:
its C_1, .., C_7 are not given, and it states no rate but that those in d stay as long as sigma_g^2 = O(K),
which is `rounds_rate`'s own hypothesis), Remark 4.2 (the stopping rule R-hat has no guarantee), (22)-(24) of
section F (a sketch of section G, whose last display is `one_step_bound`), and the debiased algorithms B.1 and
B.2 (nothing is proved about them). Lemma D.1 is Jensen's inequality.
"""

from . import errata, errata_lemmas, errata_lower, errata_schedules, misprints, quantities
from .contraction import Contraction
from .coupling import CouplingLaw, coupling_law
from .coupling_recursion import NotCertified
from .lemmas_d2_d3_d5_d9_d10 import (
    displacement_bound,
    flow_distance_bound,
    gradient_displacement_bound,
    maxima_bound,
    oracle_deviation_bound,
    oracle_gradient_bound,
    oracle_reach_bound,
    target_moment_bound,
)
from .lemmas_d4_d6_d7_d8 import (
    client_gradient_bound,
    client_moment_bound,
    client_step_bound,
    divergence_bound,
    leapfrog_deviation_bound,
    leapfrog_gradient_deviation_bound,
    main_part_bound,
)
from .notation import Setting, setting
from .planning import Plan, paper_plan, plan, theorem_step_size, u_curve, vanilla_algorithm
from .proposition_45 import DynamicPlan, dynamic_plan, dynamic_rate, stages_rate
from .rates import error_rate, lower_rate, rounds_rate, vanilla_rate
from .recursion import w2_recursion
from .theorem_44 import coupling_bound, one_step_bound, steady_state, w2_bound
from .theorem_c1 import TwoGroups, fewest_rounds, lower_bound

__all__ = [
    "Contraction", "CouplingLaw", "DynamicPlan", "NotCertified", "Plan", "Setting", "TwoGroups",
    "client_gradient_bound", "client_moment_bound", "client_step_bound", "coupling_bound", "coupling_law",
    "displacement_bound", "divergence_bound", "dynamic_plan", "dynamic_rate", "errata", "errata_lemmas",
    "errata_lower", "errata_schedules", "error_rate", "fewest_rounds", "flow_distance_bound",
    "gradient_displacement_bound", "leapfrog_deviation_bound", "leapfrog_gradient_deviation_bound",
    "lower_bound", "lower_rate", "main_part_bound", "maxima_bound", "misprints", "one_step_bound",
    "oracle_deviation_bound", "oracle_gradient_bound", "oracle_reach_bound", "paper_plan", "plan",
    "quantities", "rounds_rate", "setting", "stages_rate", "steady_state", "target_moment_bound",
    "theorem_step_size",
    "u_curve", "vanilla_algorithm", "vanilla_rate", "w2_bound", "w2_recursion",
]
