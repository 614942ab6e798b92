"""From scores to decisions: thresholds with a guarantee, and lists of a given length."""

from toprank.decision.alert_share import AlertShareClassifier
from toprank.decision.neyman_pearson import NeymanPearsonClassifier
from toprank.decision.order_statistics import (
    ThresholdRule,
    fpr_upper_bound,
    negatives_needed,
    threshold_rule,
    violation_probability,
)
from toprank.decision.top_k import TopKClassifier

__all__ = [
    "AlertShareClassifier",
    "NeymanPearsonClassifier",
    "ThresholdRule",
    "TopKClassifier",
    "fpr_upper_bound",
    "negatives_needed",
    "threshold_rule",
    "violation_probability",
]
