"""Brute-force oracles: slow, plain, written from the definitions, in exact rational arithmetic where it matters.

Nothing here imports toprank. Weights are integers and become repeated rows before anything is computed.
"""

import itertools
import math
from fractions import Fraction


def repeated(weight, *columns):
    """Each row as often as its weight says."""
    return tuple(
        [value for value, times in zip(column, weight, strict=True) for _ in range(times)] for column in columns
    )


def label_orders(y, score):
    """The 0/1 labels from best to worst score, once for every way to break the ties."""
    runs = [
        [label for label, s in zip(y, score, strict=True) if s == value] for value in sorted(set(score), reverse=True)
    ]
    for choice in itertools.product(*(itertools.permutations(run) for run in runs)):
        yield list(itertools.chain.from_iterable(choice))


def expected(statistic, y, score):
    """Mean of a statistic of the ordered labels over all ways to break the ties."""
    values = [statistic(labels) for labels in label_orders(y, score)]
    return sum(values) / len(values)


def found_in_top(labels, k):
    """Number of positives among the first k labels; of the row that a fractional k cuts, that fraction."""
    whole = math.floor(k)
    rest = (Fraction(k) - whole) * labels[whole] if whole < len(labels) else 0
    return sum(labels[:whole]) + rest


def precision_at_k(y, score, k):
    return expected(lambda labels: found_in_top(labels, k) / Fraction(k), y, score)


def recall_at_k(y, score, k):
    return expected(lambda labels: Fraction(found_in_top(labels, k)) / sum(y), y, score)


def positives_at_top(y, score):
    highest = max(s for label, s in zip(y, score, strict=True) if label == 0)
    return Fraction(sum(1 for label, s in zip(y, score, strict=True) if label == 1 and s > highest), sum(y))


def operating_points(y, score):
    """(true positives, false positives) of every threshold, from the strictest to the one that takes all."""
    points = [(0, 0)]
    for threshold in sorted(set(score), reverse=True):
        taken = [label for label, s in zip(y, score, strict=True) if s >= threshold]
        points.append((sum(taken), len(taken) - sum(taken)))
    return points


def tpr_at_fpr(y, score, max_fpr):
    negatives = len(y) - sum(y)
    return max(Fraction(tp, sum(y)) for tp, fp in operating_points(y, score) if Fraction(fp, negatives) <= max_fpr)


def precision_at_recall(y, score, min_recall):
    points = operating_points(y, score)[1:]
    return max(Fraction(tp, tp + fp) for tp, fp in points if Fraction(tp, sum(y)) >= min_recall)


def optroc_accuracy(y, score):
    negatives = len(y) - sum(y)
    return max(Fraction(tp + negatives - fp, len(y)) for tp, fp in operating_points(y, score))


def partial_auc(y, score, max_fpr, min_tpr):
    """Raw area below the ROC polygon, left of max_fpr and above min_tpr, by the exact integral of each segment."""
    positives, negatives = sum(y), len(y) - sum(y)
    curve = [(Fraction(fp, negatives), Fraction(tp, positives)) for tp, fp in operating_points(y, score)]
    area = Fraction(0)
    for (x0, y0), (x1, y1) in itertools.pairwise(curve):
        if x1 == x0 or x0 >= max_fpr:
            continue

        def height(x, x0=x0, y0=y0, slope=(y1 - y0) / (x1 - x0)):
            return max(y0 + slope * (x - x0) - min_tpr, Fraction(0))

        left, right = x0, min(x1, max_fpr)
        knots = [left, right]
        if y1 > y0:  # where the segment enters the area from below
            crossing = x0 + (min_tpr - y0) * (x1 - x0) / (y1 - y0)
            if left < crossing < right:
                knots.insert(1, crossing)
        area += sum((b - a) * (height(a) + height(b)) / 2 for a, b in itertools.pairwise(knots))
    return area


def ndcg(y, score, k=None):
    k = len(y) if k is None else k

    def dcg(labels):
        return sum(label / math.log2(1 + rank) for rank, label in enumerate(labels, start=1) if rank <= k)

    return expected(dcg, y, score) / dcg(sorted(y, reverse=True))


def bedroc(y, score, alpha):
    """Truchon and Bayly's closed form from the robust initial enhancement, for more than one order averaged."""
    n, size = sum(y), len(y)
    ratio = n / size

    def closed_form(labels):
        total = sum(math.exp(-alpha * rank / size) for rank, label in enumerate(labels, start=1) if label)
        rie = (total / n) / ((1 - math.exp(-alpha)) / (size * (math.exp(alpha / size) - 1)))
        factor = ratio * math.sinh(alpha / 2) / (math.cosh(alpha / 2) - math.cosh(alpha / 2 - alpha * ratio))
        return rie * factor + 1 / (1 - math.exp(alpha * (1 - ratio)))

    return expected(closed_form, y, score)


def wmw(y, score, edges):
    """All pairs; `edges` are (better, worse, strength)."""
    right = pairs = Fraction(0)
    rows = list(zip(y, score, strict=True))
    for better, worse, strength in edges:
        for (label_i, score_i), (label_j, score_j) in itertools.product(rows, rows):
            if label_i == better and label_j == worse:
                pairs += strength
                right += strength * (Fraction(score_i > score_j) + Fraction(score_i == score_j, 2))
    return right / pairs
