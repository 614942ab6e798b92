"""Graphs in onnxruntime, for the tests beside this file."""

import json

import numpy as np
import pytest

from toprank import to_onnx


def session_of(model, input_type="float64"):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    content = to_onnx(model, input_type=input_type).SerializeToString()
    return runtime.InferenceSession(content, providers=["CPUExecutionProvider"])


def inputs_of(session, X):
    """What a session takes of an array or a frame of pandas: nan and empty texts for missing values."""
    inputs = session.get_inputs()
    if [one.name for one in inputs] == ["X"]:
        return {"X": np.asarray(X, dtype={"tensor(float)": "float32"}.get(inputs[0].type, "float64"))}
    given = {}
    for one in inputs:
        column = X[one.name].tolist()
        if one.type == "tensor(string)":
            values = np.array(["" if value is None or value != value else value for value in column], dtype=object)
        else:
            values = np.array([np.nan if value is None else value for value in column], dtype=np.float64)
            values = values.astype({"tensor(float)": "float32"}.get(one.type, "float64"))
        given[one.name] = values.reshape(-1, 1)
    return given


def run(model, X, input_type="float64"):
    """Scores and labels of a graph; no labels for a model without classes."""
    session = session_of(model, input_type)
    outputs = session.run(None, inputs_of(session, X))
    return outputs if len(outputs) == 2 else (outputs[0], None)


def metadata_of(model):
    found = session_of(model).get_modelmeta().custom_metadata_map
    return {name: json.loads(text) if text[:1] in '[{"0123456789' else text for name, text in found.items()}


def assert_same(model, X, tolerance=1e-9):
    """Scores and labels of the graph are those of the model."""
    scores, labels = run(model, X)
    method = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
    expected = np.asarray(getattr(model, method)(X))
    expected = expected[:, 1] if expected.ndim == 2 else expected
    assert scores.shape == expected.shape
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))
    assert labels.tolist() == np.asarray(model.predict(X)).tolist()
