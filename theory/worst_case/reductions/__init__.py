"""What the worst problem of a class may be reduced to: fewer coordinates, fewer clients, one angle.

Every statement says for which problems it is proved; what is only conjectured is called so.
"""

from .angles import RotatedBias, commuting_bias, rotated_bias, rotated_bias_at
from .clients import Clients, enough_clients, least_contraction
from .commuting import CommutingSupremum, commuting_supremum

__all__ = ["Clients", "CommutingSupremum", "RotatedBias", "commuting_bias", "commuting_supremum",
           "enough_clients", "least_contraction", "rotated_bias", "rotated_bias_at"]
