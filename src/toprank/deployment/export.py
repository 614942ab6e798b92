"""A fitted model as a graph of ONNX with its inputs, outputs and metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from toprank.blending import TopBlend
from toprank.checks import require_choice
from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier
from toprank.deployment.decisions import Decision, decided
from toprank.deployment.graph import Graph, onnx_package
from toprank.deployment.rows import MISSING, Column, Rows
from toprank.deployment.transformers import text_places
from toprank.deployment.trees import text_places_of_forest
from toprank.inspection import Anatomy, Part, anatomy

_NUMBER, _TEXT = "number", "text"
_LONGEST_MIXED = 8


def to_onnx(model: Any, *, input_type: str = "float32") -> Any:
    """Export a fitted model to ONNX, with its preparation of the rows and its decisions.

    The graph has one input `X` of shape (n, n_features). If columns are text, or the model is a `TableModel`, which the
    command line makes, it has instead an input of shape (n, 1) for each column, by its name (``x0``, ``x1``, … without
    names): a missing number is nan, a missing text is empty. Outputs are `score` of shape (n,), the `decision_function`
    of the model or else its probability of the positive class, and `label`, what `predict` gives; a model without
    classes has no labels. A column of such a name makes them `toprank_score` and `toprank_label`. It computes in double
    precision, whatever the type of its input; where a model would refuse a row, as of an unknown category, the score
    is nan.

    Parameters
    ----------
    model : estimator
        A fitted linear or kernel model of toprank, online models included, but for precomputed and callable kernels; a
        `TopForest` with its categories and gaps, but not on trees of other libraries; a forest, boosted trees (of
        scikit-learn, or `LGBMClassifier`), or any classifier that skl2onnx converts in double precision; a `TopBlend`
        of such models. Around it `NeymanPearsonClassifier`, `AlertShareClassifier`, `TopKClassifier` (of which a batch
        is one group), searches, pipelines, `ColumnTransformer`, scalers, imputers, encoders, and what else skl2onnx
        converts; or a `TableModel`.
    input_type : {"float32", "float64"}, default="float32"
        Type of the numbers in the input. Rows that are rounded to single precision may be on the other side of a
        threshold.

    Returns
    -------
    onnx.ModelProto
        ``to_onnx(model).SerializeToString()`` are the bytes of an .onnx file. Its metadata has, as texts, `columns` (a
        list in JSON of names and kinds, in the order of X), `rule` (how decisions follow from scores), `threshold`
        (what scores are compared with, unless the rule is a number of rows), `classes` and `positive`.

    Raises
    ------
    TypeError
        If the model, or a step of the pipeline, has no export; the message names it and a remedy.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import PatMatNP, to_onnx
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, random_state=0)
    >>> model = make_pipeline(StandardScaler(), PatMatNP()).fit(X, y)
    >>> try:
    ...     names = [output.name for output in to_onnx(model).graph.output]
    ... except ImportError:  # needs pip install 'toprank[onnx]'
    ...     names = ["score", "label"]
    >>> names
    ['score', 'label']
    """
    require_choice("input_type", input_type, ("float32", "float64"))
    types = onnx_package().TensorProto
    check_is_fitted(model)
    inner = _inner(model)
    found = anatomy(inner)
    inputs = _inputs(model, found)
    graph = Graph(list(inputs.kinds), input_type)
    decision = decided(graph, inner, inputs.rows(graph))
    outputs = {inputs.output("score"): (decision.score, types.DOUBLE)}
    classes = _classes(model)
    if classes is not None:
        kind = {"i": types.INT64, "b": types.BOOL, "f": types.DOUBLE, "U": types.STRING}[classes.dtype.kind]
        outputs[inputs.output("label")] = (graph.add("Gather", classes, decision.is_positive), kind)
    return graph.model(outputs, _metadata(model, found, inputs, decision))


def _classes(model: Any) -> Any:
    """The two classes, the positive one last; None for a model that gives scores only."""
    if not is_classifier(model):
        return None
    classes = np.asarray(np.asarray(model.classes_).tolist())
    if len(classes) != 2:
        raise TypeError(f"{type(model).__name__} has {len(classes)} classes, and ONNX export here is for two")
    return classes


@dataclass(frozen=True)
class _Inputs:
    """Names and kinds of the columns, whether each is an input of its own, and which texts stand for others."""

    kinds: dict[str, str]
    one_by_one: bool
    spellings: Mapping[str, Any] = field(default_factory=lambda: {"": MISSING})

    def rows(self, graph: Graph) -> Rows:
        """The rows of the inputs."""
        if not self.one_by_one:
            return Rows.of_matrix(graph, graph.input("X", len(self.kinds)), len(self.kinds))
        columns = []
        for name, kind in self.kinds.items():
            is_text = kind not in (_NUMBER, "truth")
            result = graph.input(name, 1, is_text=is_text)
            columns.append(Column(result, is_text, self.spellings if is_text else {}))
        return Rows(graph, columns)

    def output(self, name: str) -> str:
        """The name of an output, which no input has."""
        while self.one_by_one and name in self.kinds:
            name = f"toprank_{name}"
        return name


def _inner(model: Any) -> Any:
    """The estimator of a model that knows its columns, or the model itself."""
    from toprank.files.model import TableModel

    return model.estimator_ if isinstance(model, TableModel) else model


def _inputs(model: Any, found: Anatomy) -> _Inputs:
    from toprank.files.columns import MISSING as MISSING_CATEGORY
    from toprank.files.spelling import Spelling

    columns = getattr(model, "columns", None) if found.levels[0] is not model else None
    if columns is not None:
        missing = Spelling.of_model(model.reading).missing
        words = {spelling for word in missing for spelling in _any_case(word)}
        return _Inputs(dict(columns), True, dict.fromkeys(sorted(words), MISSING_CATEGORY))
    steps = found.parts[0].steps
    told = [getattr(one, "n_features_in_", 0) for one in (model, *steps, found.parts[0].estimator)]
    n = next((width for width in told if width), 0)
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(n)])]
    texts = {place for part in found.parts for place in _text_places(part)}
    kinds = {name: _TEXT if j in texts else _NUMBER for j, name in enumerate(names)}
    if len(kinds) < n:
        raise TypeError("several columns have the same name, which has no ONNX export; rename them")
    return _Inputs(kinds, bool(texts))


def _text_places(part: Part) -> set[int]:
    from sklearn.pipeline import Pipeline

    if not part.steps and isinstance(part.estimator, TopBlend):
        inner = [each for one in part.estimator.estimators_ for each in anatomy(one).parts]
        return {place for each in inner for place in _text_places(each)}
    if not part.steps:
        return text_places_of_forest(part.estimator)
    return text_places(Pipeline([(str(number), step) for number, step in enumerate(part.steps)]))


def _any_case(word: str) -> set[str]:
    """A word in small and capital letters, mixed in all ways; a long one in the usual ways only."""
    if len(word) > _LONGEST_MIXED:
        return {word.lower(), word.upper(), word.capitalize()}
    return {"".join(letters) for letters in product(*({letter.lower(), letter.upper()} for letter in word))}


def _metadata(model: Any, found: Anatomy, inputs: _Inputs, decision: Decision) -> dict[str, str]:
    columns = [{"name": name, "kind": kind} for name, kind in inputs.kinds.items()]
    about: dict[str, Any] = {"columns": columns, "rule": decision.rule}
    if decision.threshold is not None:
        about["threshold"] = decision.threshold
    classes = _classes(model)
    if classes is not None:
        about |= {"classes": classes.tolist(), "positive": getattr(model, "positive", None) or classes.tolist()[1]}
    if getattr(model, "target", None) is not None:
        about["target"] = model.target
    guarantee, share = found.find(NeymanPearsonClassifier), found.find(AlertShareClassifier)
    if guarantee is not None:
        about |= {"max_fpr": guarantee.max_fpr, "confidence": guarantee.confidence}
        about["subtracted_thresholds"] = guarantee.thresholds_.tolist()
    elif share is not None:
        about |= {"share": share.share, "subtracted_thresholds": [share.threshold_]}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in about.items()
    }
