"""What is known of a problem before anything runs: constants of its potentials, its start and its noise."""

from .constants import Constants as Constants
from .potentials import Potentials as Potentials
