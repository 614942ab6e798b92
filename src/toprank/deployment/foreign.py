"""Steps and models that skl2onnx turns into graphs, in double precision and compared with the original."""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.deployment.graph import ML, Graph, onnx_package
from toprank.deployment.rows import Rows

_OPSETS = {"": 18, ML: 3}
_TOLERANCE = 1e-6
_N_ROWS = 64


def transformed_by_skl2onnx(graph: Graph, step: Any, rows: Rows) -> Rows:
    """Rows of numbers after a transformer that toprank has no graph of."""
    piece = _converted(step, rows.width, [{}])
    width = _compared(step, piece, rows.width, 0, lambda X: _dense(step.transform(X)))
    return Rows.of_matrix(graph, graph.join(piece, rows.matrix())[0], width)


def scored_by_skl2onnx(graph: Graph, model: Any, rows: Rows, method: str) -> str:
    """Scores of a classifier, of shape (n,): its decision function, or the probability of the second class."""
    raw = {"raw_scores": True} if method == "decision_function" else {}
    piece = _converted(model, rows.width, [{"zipmap": False, **raw}, raw])
    width = _compared(model, piece, rows.width, 1, lambda X: np.asarray(getattr(model, method)(X)))
    return graph.add("Gather", graph.join(piece, rows.matrix())[1], np.int64(width - 1), axis=1)


def _dense(values: Any) -> NDArray[Any]:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _converted(step: Any, width: int, attempts: list[dict[str, Any]]) -> Any:
    """The model of skl2onnx with the first options that it knows."""
    onnx_package()
    try:
        import skl2onnx
        from skl2onnx.common.data_types import DoubleTensorType
    except ImportError as error:
        raise ImportError(
            f"the ONNX export of {type(step).__name__} needs skl2onnx; install it by pip install 'toprank[onnx]'"
        ) from error
    rows = [("X", DoubleTensorType([None, width]))]
    reason: Exception | None = None
    for options in attempts:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return skl2onnx.to_onnx(step, initial_types=rows, options={id(step): options}, target_opset=_OPSETS)
        except NameError as error:  # an option that this step does not have
            reason = error
        except Exception as error:
            raise _refused(step, error) from error
    raise _refused(step, reason) from reason


def _refused(step: Any, reason: Any) -> TypeError:
    name = type(step).__name__
    said = " ".join(str(reason).split())
    return TypeError(
        f"{name} has no ONNX export here: skl2onnx {_version('skl2onnx')} with scikit-learn {_version('scikit-learn')} "
        f"cannot convert it ({type(reason).__name__}: {said[:160]}); take another step, or register a converter by "
        "skl2onnx.update_registered_converter"
    )


def _version(package: str) -> str:
    return importlib.metadata.version(package)


def _compared(
    step: Any, piece: Any, width: int, output: int, original: Callable[[NDArray[np.float64]], NDArray[Any]]
) -> int:
    """The number of columns of an output that, on some rows, is what scikit-learn computes; else an error."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f"the ONNX export of {type(step).__name__} is checked by onnxruntime; install it by "
            "pip install 'toprank[onnx]'"
        ) from error
    random = np.random.default_rng(0)
    for X in (random.normal(size=(_N_ROWS, width)), random.exponential(size=(_N_ROWS, width))):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = original(X)
            break
        except ValueError:  # a step that takes positive numbers only
            continue
    else:
        raise _refused(step, ValueError("it takes no rows of numbers to compare by"))
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # no warnings about shapes, which skl2onnx guesses
        content = piece.SerializeToString()
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        found = np.asarray(session.run(None, {"X": X})[output])
    except Exception as error:
        raise _refused(step, error) from error
    expected = expected.reshape(_N_ROWS, -1)
    largest = np.abs(found[:, -expected.shape[1] :] - expected).max()
    if found.dtype != np.float64 or not largest <= _TOLERANCE * max(1.0, np.abs(expected).max()):
        raise _refused(step, ValueError(f"its {found.dtype} values differ by {largest:.1g} from those of scikit-learn"))
    return int(found.shape[1])
