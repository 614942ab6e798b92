"""Whether a graph and its model agree on the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.files.columns import CATEGORY, MISSING, prepared
from toprank.files.errors import TableError, no_rows
from toprank.files.open import open_for_model
from toprank.files.spelling import Spelling
from toprank.files.training import check_kind, needed_kinds

_ROWS = 100_000


@dataclass(frozen=True)
class Agreement:
    """Of how many rows, the largest difference of two scores, and how many decisions differ."""

    rows: int
    largest: float
    different: int


def agreement(path: str, model: Any, content: bytes) -> Agreement:
    """Compare a graph with its `TableModel` on the first rows of a file, some 100,000 of them."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError("a check needs onnxruntime; install it by pip install 'toprank[onnx]'") from error
    source = open_for_model(path, model)
    if check_kind(source, model):
        raise TableError(f"{path!r} is an svmlight file, whose rows are not checked here; leave it out")
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    rows, largest, different = 0, 0.0, 0
    for batch in source.batches(needed_kinds(source, model)):
        expected = model.decision_function(batch.frame)
        scores, labels = session.run(None, _given(batch.frame, model, session))
        apart = np.abs(scores - expected)
        largest = max(largest, float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0)))
        different += int(np.sum(labels != model.classes_[(expected > 0).astype(np.intp)]))
        rows += len(expected)
        if rows >= _ROWS:
            break
    if not rows:
        raise no_rows(path)
    return Agreement(rows, largest, different)


def _given(frame: Any, model: Any, session: Any) -> dict[str, NDArray[Any]]:
    """The inputs of a session: nan for a missing number, an empty text for a missing text."""
    ready = prepared(frame, model.columns, Spelling.of_model(model.reading))
    given = {}
    for one in session.get_inputs():
        values = ready[one.name].to_numpy()
        if model.columns[one.name] == CATEGORY:
            values = np.where(values == MISSING, "", values).astype(object)
        else:
            values = values.astype(np.float32 if one.type == "tensor(float)" else np.float64)
        given[one.name] = values.reshape(-1, 1)
    return given
