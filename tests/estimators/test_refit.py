"""A second fit leaves nothing of the first; a fit that fails leaves the first as it was."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from toprank import (
    CBR,
    OAM,
    OPAUC,
    AdaOAM,
    AlertShareClassifier,
    GrillNP,
    NeymanPearsonClassifier,
    PatMatNP,
    TauFPL,
    TopKClassifier,
    TopPush,
    TopPushK,
    TopSearchCV,
    UniExp,
    WMWRanker,
    to_onnx,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=120) > 0.8).astype(int)
LINEAR = {"kernel": "linear"}
RBF = {"kernel": "rbf"}
NYSTROEM = {"kernel": "rbf", "approximation": "nystroem", "n_components": 30}
FOURIER = {"kernel": "rbf", "approximation": "fourier", "n_components": 30}
EXACT = {"approximation": None}
LOGISTIC = LogisticRegression()
CHANGES = [
    (PatMatNP(), RBF, LINEAR),
    (PatMatNP(), LINEAR, RBF),
    (PatMatNP(random_state=0), NYSTROEM, LINEAR | EXACT),
    (PatMatNP(random_state=0), FOURIER, RBF | EXACT),
    (PatMatNP(random_state=0), RBF, NYSTROEM),
    (TauFPL(0.2), RBF, {"kernel": "linear", "solver": "low-rank"}),
    (TopPushK(5), LINEAR | {"solver": "apg"}, RBF | {"solver": "auto"}),
    (WMWRanker(), RBF, LINEAR),
    (WMWRanker(), LINEAR, RBF),
    (WMWRanker(), RBF | {"n_components": 20}, LINEAR | {"n_components": 500}),
    (CBR(random_state=0), {"covariance": "full"}, {"covariance": "diag"}),
    (OPAUC(random_state=0), {"rank": 2}, {"rank": None}),
    (OAM(random_state=0), {"update": "sequential"}, {"update": "gradient"}),
    (
        NeymanPearsonClassifier(LOGISTIC, max_fpr=0.2, confidence=0.8, random_state=0),
        {"cv": 0.5},
        {"cv": 2, "confidence": 0.7, "combine": "unanimous"},
    ),
    (TopKClassifier(LOGISTIC, k=5), {}, {"estimator": PatMatNP()}),
    (AlertShareClassifier(LOGISTIC, share=0.2, random_state=0), {}, {"share": 0.1}),
    (TopSearchCV(PatMatNP(), {"alpha": [0.1, 1.0]}, cv=2), {"refit": True}, {"refit": False}),
]
GUARDED = [PatMatNP(), TopPush(kernel="rbf"), GrillNP(random_state=0, max_iter=1), WMWRanker(), WMWRanker(kernel="rbf")]
GUARDED += [CBR(), OAM(), OPAUC(), AdaOAM(), UniExp(), TopKClassifier(LOGISTIC, k=5)]
GUARDED += [AlertShareClassifier(LOGISTIC, share=0.2, random_state=0)]
GUARDED += [NeymanPearsonClassifier(LOGISTIC, max_fpr=0.2, confidence=0.8, random_state=0)]
GUARDED += [TopSearchCV(PatMatNP(), {"alpha": [0.1, 1.0]}, cv=2)]


def fitted(model, params=None):
    return type(model)(**model.get_params(deep=False) | (params or {})).fit(X, Y)


def name(model):
    return type(model).__name__


@pytest.mark.filterwarnings("ignore")  # some do not converge or collapse: another subject
@pytest.mark.parametrize(("model", "first", "second"), CHANGES, ids=lambda item: name(item))
def test_a_second_fit_leaves_nothing_of_the_first(model, first, second):
    changed, new = fitted(model, first).set_params(**second).fit(X, Y), fitted(model, second)
    assert set(vars(changed)) == set(vars(new))
    if not hasattr(new, "refit") or new.refit:
        np.testing.assert_array_equal(changed.decision_function(X), new.decision_function(X))
    if not hasattr(new, "estimator"):
        assert to_onnx(changed).SerializeToString() == to_onnx(new).SerializeToString()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", GUARDED, ids=name)
def test_a_fit_that_fails_leaves_the_model_as_it_was(model):
    model = fitted(model)
    before, scores, predicted = dict(vars(model)), model.decision_function(X), model.predict(X)
    with_nan = np.where(np.arange(len(X))[:, None] == 7, np.nan, X[:, :2])
    for rows, labels in [(X[:, :2], np.full(len(X), "one")), (with_nan, np.array(["bad", "good"])[Y])]:
        with pytest.raises(ValueError, match=r"class|NaN"):
            model.fit(rows, labels)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[key] is value for key, value in before.items())
    np.testing.assert_array_equal(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X), predicted)


@pytest.mark.parametrize("model", [PatMatNP(), PatMatNP(kernel="rbf"), WMWRanker(), OAM(), OPAUC(), UniExp()], ids=name)
@pytest.mark.parametrize("column", [3, 10**6, -1])
def test_columns_outside_a_sparse_matrix_are_refused(column, model):
    """Compiled loops, and scipy's, would read and write there."""
    bad = csr_array(X)
    bad.indices[5] = column
    with pytest.raises(ValueError, match=r"no valid sparse matrix of shape \(120, 3\): .*; build it anew"):
        model.fit(bad, Y)
