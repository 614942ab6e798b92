"""Metrics of the top of a ranked list.

All of them take ``(y_true, y_score)`` and by keyword `sample_weight` and `pos_label`; a weight of 2 equals a
repeated row, a weight of 0 a removed one. Each docstring states how ties are counted. The cost is one sort.

Labels, scores and weights may be Dask arrays, and give the same number without being gathered.
"""

from toprank.metrics.gains import bedroc_score, ndcg_score
from toprank.metrics.pairwise import wmw_score
from toprank.metrics.roc import optroc_accuracy, partial_auc_score, precision_at_recall, roc_auc_score, tpr_at_fpr
from toprank.metrics.scorers import get_scorer, get_scorer_names
from toprank.metrics.top import enrichment_factor, positives_at_top, precision_at_k, precision_at_quantile, recall_at_k

__all__ = [
    "bedroc_score",
    "enrichment_factor",
    "get_scorer",
    "get_scorer_names",
    "ndcg_score",
    "optroc_accuracy",
    "partial_auc_score",
    "positives_at_top",
    "precision_at_k",
    "precision_at_quantile",
    "precision_at_recall",
    "recall_at_k",
    "roc_auc_score",
    "tpr_at_fpr",
    "wmw_score",
]
