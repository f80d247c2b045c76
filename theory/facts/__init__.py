"""Facts about a problem, known before anything runs: constants of its potentials, start and noise."""

from .constants_of_problem import (
    NO_BEND as NO_BEND,
    Constants as Constants,
    constants as constants,
    refuse_off_target as refuse_off_target,
)
from .potentials_of_problem import (
    CONVENTIONS as CONVENTIONS,
    Potentials as Potentials,
    followed as followed,
    potentials as potentials,
)
