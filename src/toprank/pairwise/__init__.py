"""Ranking by pairs: fast sums over all pairs of points, and the ranker that they make possible.

``pair_sum`` is of use on its own. Importing this module does not import numba; the first fast sum does.
"""

from toprank.pairwise.pair_sums import SUMMATIONS, pair_sum
from toprank.pairwise.wmw import WMWRanker

__all__ = ["SUMMATIONS", "WMWRanker", "pair_sum"]
