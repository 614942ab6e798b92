"""A blend in a graph: the scales of its models, also beyond their knots, and what has no graph."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from deployment.running import assert_same
from toprank import AlertShareClassifier, PatMatNP, to_onnx
from toprank.blending import TopBlend


def rows(n=400):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    return X, (X[:, 0] + random.normal(size=n) > 1.2).astype(int)


@pytest.fixture(scope="module")
def blend():
    models = [
        ("line", LogisticRegression()),
        ("trees", ExtraTreesClassifier(8, random_state=0)),
        ("stump", ExtraTreesClassifier(1, max_depth=1, random_state=1)),
        ("top", PatMatNP(tau=0.1)),
    ]
    return TopBlend(models, tau=0.1, alpha=10.0, cv=2, random_state=0).fit(*rows())


def test_scores_and_labels_are_those_of_the_blend(blend):
    X = rows()[0]
    X = np.vstack([X, 30 * X, 0.01 * X])  # beyond the knots of the held-out scores too
    assert_same(blend, X)


def test_models_of_a_blend_take_texts():
    X, y = rows(300)
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "card", "wire")})
    encoded = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    models = [("coded", make_pipeline(encoded, LogisticRegression())), ("again", make_pipeline(encoded, PatMatNP()))]
    assert_same(TopBlend(models, tau=0.1, alpha=10.0, cv=2, random_state=0).fit(frame, y), frame)


def test_a_threshold_on_a_blend_is_refused_with_advice():
    X, y = rows(300)
    models = [("line", LogisticRegression()), ("top", PatMatNP(tau=0.1))]
    model = AlertShareClassifier(TopBlend(models, tau=0.1, alpha=10.0, cv=2, random_state=0), share=0.1).fit(X, y)
    with pytest.raises(TypeError, match=r"AlertShareClassifier around a TopBlend .*; export the TopBlend"):
        to_onnx(model)
