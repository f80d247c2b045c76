"""Differential privacy of FA-LD (section 5 and appendix G).

`fa_ld_guarantee` takes plain numbers, `guarantee` a problem and an `fs.FALD`. Everything else starts from
a `PrivacySetting`: step-size ceilings, the simplified bound, the linearised rates, and the inverse
questions (largest step size, shared noise or number of drawn clients within a budget). The catalogue's
entries, `*_bound`, are compared with exact privacy profiles, `Release`.
"""

from .bounds import client_bound, minibatch_step_bound, noisy_step_bound, round_bound, run_bound
from .hypotheses import VARIANTS, local_ceiling, round_ceiling, round_epsilon_ceiling, validity_ceiling
from .planning import PrivateStep, largest_active_clients, largest_shared_noise, largest_step_size
from .profiles import gaussian_delta
from .release import Release
from .setting import PrivacySetting, setting_of
from .simplified import (
    Approximation,
    epsilon_rate,
    epsilon_rate_bound,
    simplified_client_bound,
    simplified_epsilon,
    simplified_run_bound,
    step_size_rate,
)
from .theorem import PrivacyGuarantee, fa_ld_guarantee, guarantee, guarantee_at

__all__ = [
    "VARIANTS", "Approximation", "PrivacyGuarantee", "PrivacySetting", "PrivateStep", "Release",
    "client_bound", "epsilon_rate", "epsilon_rate_bound", "fa_ld_guarantee", "gaussian_delta", "guarantee",
    "guarantee_at", "largest_active_clients", "largest_shared_noise", "largest_step_size", "local_ceiling",
    "minibatch_step_bound", "noisy_step_bound", "round_bound", "round_ceiling", "round_epsilon_ceiling",
    "run_bound", "setting_of", "simplified_client_bound", "simplified_epsilon", "simplified_run_bound",
    "step_size_rate", "validity_ceiling",
]
