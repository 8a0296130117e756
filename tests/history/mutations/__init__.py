"""What a broken broker would have shown: each function plants one anomaly in a good history.

It returns the history, or None where there is nothing in it to break this way; which place is broken is left to chance.
"""

from . import coordination, cycles, ends, shares, values
from .places import MUTATIONS

__all__ = ["MUTATIONS", "coordination", "cycles", "ends", "shares", "values"]
