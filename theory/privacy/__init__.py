"""Differential privacy of FA-LD (section 5 and appendix G).

`fa_ld_guarantee` takes plain numbers, `guarantee` a problem and an `fs.FALD`. Everything else starts from
a `PrivacySetting`: step-size ceilings, the simplified bound, the linearised rates, and the inverse
questions (largest step size, largest shared noise within a budget).
"""

from . import errata as _errata  # registers the corrections
from .planning import (
    Approximation,
    PrivateStep,
    epsilon_rate,
    largest_shared_noise,
    largest_step_size,
    local_ceiling,
    round_ceiling,
    round_epsilon_ceiling,
    simplified_epsilon,
    step_size_rate,
)
from .setting import PrivacySetting, setting_of
from .terms import gaussian_delta
from .theorem import (
    VARIANTS,
    PrivacyGuarantee,
    fa_ld_guarantee,
    guarantee,
    guarantee_at,
    validity_ceiling,
)

__all__ = [
    "VARIANTS", "Approximation", "PrivacyGuarantee", "PrivacySetting", "PrivateStep", "epsilon_rate",
    "fa_ld_guarantee", "gaussian_delta", "guarantee", "guarantee_at", "largest_shared_noise",
    "largest_step_size", "local_ceiling", "round_ceiling", "round_epsilon_ceiling", "setting_of",
    "simplified_epsilon", "step_size_rate", "validity_ceiling",
]
