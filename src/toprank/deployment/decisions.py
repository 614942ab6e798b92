"""From rows to scores and decisions: what pipelines, searches, thresholds and lists of a given length do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline

from toprank.arrays import Floats
from toprank.blending import TopBlend
from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier, TopKClassifier
from toprank.deployment.graph import Graph
from toprank.deployment.rows import Rows
from toprank.deployment.scorers import method_of, scored
from toprank.deployment.transformers import transformed
from toprank.inspection import scorer_of
from toprank.ranking.tie_runs import ROUNDING
from toprank.trees.forest import TopForest

_ROUNDINGS = 64


@dataclass(frozen=True)
class Decision:
    """Results of shape (n,): scores, and 1 for positives; the rule in words, and the threshold, if there is one."""

    score: str
    is_positive: str
    rule: str
    threshold: float | None


def decided(graph: Graph, model: Any, rows: Rows, response_method: str = "auto") -> Decision:
    """Scores and decisions of a fitted model."""
    if isinstance(model, FrozenEstimator):
        return decided(graph, model.estimator, rows, response_method)
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            rows = transformed(graph, step, rows)
        return decided(graph, model.steps[-1][1], rows, response_method)
    if hasattr(model, "best_estimator_"):
        return decided(graph, model.best_estimator_, rows, response_method)
    if isinstance(model, NeymanPearsonClassifier | AlertShareClassifier | TopKClassifier):
        if response_method == "predict_proba":
            raise TypeError(
                f"probabilities of {type(model).__name__} have no ONNX export here; use its decision_function"
            )
        return _by_rule(graph, model, rows)
    if isinstance(model, FixedThresholdClassifier | TunedThresholdClassifierCV):
        raise TypeError(
            f"{type(model).__name__} has no ONNX export here; use NeymanPearsonClassifier, or export its estimator_, "
            "and compare the scores with its threshold"
        )
    method = method_of(model, response_method)
    if isinstance(model, TopBlend):
        return _above(graph, _blended(graph, model, rows), 0.0)
    return _above(graph, scored(graph, model, rows, method), 0.5 if method == "predict_proba" else 0.0)


def _above(graph: Graph, score: str, threshold: float) -> Decision:
    above = graph.add("Cast", graph.add("Greater", score, np.float64(threshold)), to=graph.onnx.TensorProto.INT64)
    return Decision(score, above, f"score > {threshold:g}", threshold)


def _by_rule(graph: Graph, model: Any, rows: Rows) -> Decision:
    """Decisions by the scores of other models: their best, or the smallest score minus threshold."""
    is_vote = isinstance(model, NeymanPearsonClassifier)
    models = model.estimators_ if is_vote else [model.estimator_]
    if not isinstance(model, TopKClassifier) and any(isinstance(scorer_of(one), TopBlend) for one in models):
        raise TypeError(
            f"{type(model).__name__} around a TopBlend has no ONNX export here: its threshold is the score of a row, "
            "and a steep scale of false alarms may put that row above it; export the TopBlend, and compare its scores "
            "with the threshold"
        )
    scores = [decided(graph, one, rows, model.response_method).score for one in models]
    if isinstance(model, TopKClassifier):
        return _best(graph, scores[0], model)
    thresholds = model.thresholds_ if is_vote else [model.threshold_]
    raised = [_raised(threshold, one) for threshold, one in zip(thresholds, models, strict=True)]
    margins = [graph.add("Sub", one, np.float64(threshold)) for one, threshold in zip(scores, raised, strict=True)]
    return _above(graph, margins[0] if len(margins) == 1 else graph.add("Min", *margins), 0.0)


def _blended(graph: Graph, model: TopBlend, rows: Rows) -> str:
    """The scores of the models on the scales of their false alarms, in a weighted sum, minus the threshold."""
    levels = [
        graph.add("Mul", _on_scale(graph, decided(graph, one, rows).score, *scale), np.float64(weight))
        for one, scale, weight in zip(model.estimators_, model.scales_, model.weights_, strict=True)
    ]
    total = levels[0]
    for level in levels[1:]:
        total = graph.add("Add", total, level)
    return graph.add("Sub", total, np.float64(model.threshold_))


def _on_scale(graph: Graph, score: str, knots: Floats, values: Floats) -> str:
    """z(s) by lines between the knots, which go on beyond them: of each score the last knot that is not above it."""
    if len(knots) == 1:
        return graph.add("Add", graph.add("Mul", score, np.float64(0)), np.float64(values[0]))
    column = graph.add("Unsqueeze", score, np.array([1]))
    reached = graph.add("Cast", graph.add("GreaterOrEqual", column, knots[None]), to=graph.onnx.TensorProto.INT64)
    place = graph.add("Sub", graph.add("ReduceSum", reached, np.array([1]), keepdims=0), np.int64(1))
    place = graph.add("Min", graph.add("Max", place, np.int64(0)), np.int64(len(knots) - 2))
    beyond = graph.add("Sub", score, graph.add("Gather", knots, place))
    slope = graph.add("Gather", np.diff(values) / np.diff(knots), place)
    return graph.add("Add", graph.add("Gather", values, place), graph.add("Mul", slope, beyond))


def _raised(threshold: float, model: Any) -> float:
    """A threshold raised by what the sum of a score may differ in another order of its terms.

    It is the score of a row, so that without it this row, and those that equal it, might come out above.
    """
    scorer = scorer_of(model)
    terms = [getattr(scorer, name, 0.0) for name in ("coef_", "dual_coef_", "intercept_")]
    size = sum(float(abs(term).sum()) for term in terms if not isinstance(term, float))
    if isinstance(scorer, TopForest):  # the largest sum of one leaf a tree
        starts = np.cumsum(scorer.n_leaves_) - scorer.n_leaves_
        size += float(np.maximum.reduceat(abs(scorer.leaf_values_), starts).sum())
    return float(threshold + _ROUNDINGS * np.finfo(np.float64).eps * max(size, abs(threshold)))


def _best(graph: Graph, score: str, model: TopKClassifier) -> Decision:
    """The best rows of a batch; of equal ones TopK takes those that come first, as the model does."""
    types = graph.onnx.TensorProto
    n = graph.add("Shape", score)
    if model.share is None:
        k, rule = graph.add("Min", n, np.array([model.k], dtype=np.int64)), f"the {model.k} largest scores of a batch"
    else:
        share = graph.add("Mul", graph.add("Cast", n, to=types.DOUBLE), np.float64(model.share))
        k = graph.add("Cast", graph.add("Floor", graph.add("Mul", share, np.float64(1 + ROUNDING))), to=types.INT64)
        rule = f"the largest scores of a batch, a share of {model.share:g}"
    places = graph.add("TopK", score, k)
    nobody, chosen = graph.add("Expand", np.array([0]), n), graph.add("Expand", np.array([1]), k)
    return Decision(score, graph.add("ScatterElements", nobody, places, chosen), rule, None)
