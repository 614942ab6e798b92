"""Numbers stay finite and covariances positive definite, for any scale, any C and any number of steps."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from toprank.online import CBR, OAM, OPAUC, AdaOAM, UniExp


def assert_positive_definite(model):
    """By the factors, which are the state; the product of the factors may round."""
    d = model.n_features_in_
    assert np.isfinite(model.factor_).all()
    np.testing.assert_array_equal(model.factor_, np.tril(model.factor_))
    np.testing.assert_array_equal(np.diag(model.factor_), 1.0)
    assert (model.variances_ > 0).all()
    covariance = model.covariance_
    np.testing.assert_array_equal(covariance, covariance.T)
    sizes = np.sqrt(np.diag(covariance))
    assert np.linalg.eigvalsh(covariance / np.outer(sizes, sizes)).min() > -1e-13 * d


def learn_for_long(model, n_rows, d, seed=0):
    """Rows with correlated features, one constant, one all zero, one that copies another, and noisy labels."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(d, d)) / np.sqrt(d)
    for _ in range(0, n_rows, 10000):
        X = rng.normal(size=(10000, d)) @ mix
        X[:, -1], X[:, -2], X[:, -3] = 1.0, 0.0, X[:, 0]
        y = (X[:, 0] + rng.normal(size=10000) > 0).astype(int)
        model.partial_fit(X, y, classes=[0, 1])
    return model


@pytest.mark.parametrize("kept", [1.0, 0.999])
@pytest.mark.parametrize("C", [0.01, 1e3])
def test_half_a_million_pairs(C, kept):
    model = learn_for_long(CBR(C=C, growing_penalty=True, forgetting=kept), 10000, 6)
    assert_positive_definite(model)
    assert np.isfinite(model.coef_).all()
    if kept == 1.0:
        assert np.linalg.eigvalsh(model.covariance_).max() <= 1 + 1e-9  # it only shrinks


@pytest.mark.slow
@pytest.mark.parametrize("kept", [1.0, 0.9999])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e6])
def test_ten_million_pairs(C, kept):
    model = learn_for_long(CBR(C=C, growing_penalty=True, forgetting=kept), 200000, 10)
    assert_positive_definite(model)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("scale", [1e-40, 1e-8, 1e8, 1e40])
@pytest.mark.parametrize("C", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_extreme_scales(covariance, C, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * np.array([1, scale, 1, scale, 1 / scale])
    y = (rng.normal(size=300) + X[:, 0] > 0).astype(int)
    model = CBR(covariance=covariance, C=C).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.covariance_).all()
    if covariance == "full":
        assert_positive_definite(model)
    else:
        assert (model.covariance_ > 0).all()


@pytest.mark.parametrize("scale", [1e-40, 1e8, 1e40])
@pytest.mark.parametrize("strength", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(
    "make",
    [
        lambda strength: OAM(C=strength, random_state=0),
        lambda strength: OAM(C=strength, update="gradient", random_state=0),
        lambda strength: OPAUC(learning_rate=strength),
        lambda strength: OPAUC(learning_rate=strength, rank=3, random_state=0),
        lambda strength: AdaOAM(learning_rate=strength),
        lambda strength: UniExp(learning_rate=strength),
    ],
    ids=["OAM", "OAM-gradient", "OPAUC", "OPAUC-rank", "AdaOAM", "UniExp"],
)
def test_extreme_scales_of_the_others(make, strength, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * np.array([1, scale, 1, scale, 1])
    y = (rng.normal(size=300) + X[:, 0] > 0).astype(int)
    model = make(strength).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.decision_function(X)).all()


def test_low_rank_products_do_not_drift():
    """After many rows the products that are kept in step agree with their definitions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20255, 6)) + 3.0
    y = (X[:, 0] + rng.normal(size=len(X)) > 3.5).astype(int)
    model = OPAUC(rank=8, random_state=0).fit(X, y)
    assert model.time_[0] % 256 == 31
    np.testing.assert_allclose(model.products_, model.basis_.T @ model.coef_[0], rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(model.gram_, model.basis_.T @ model.basis_, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e30])
@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_steps_too_small_to_count(covariance, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * scale
    y = (X[:, 0] > 0.5 * scale).astype(int)
    weights = np.ones(300)
    weights[:50] = 1e-310
    for model in (
        CBR(covariance=covariance).fit(X, y, sample_weight=weights),
        CBR(covariance=covariance, C=1e-300).fit(X, y),
    ):
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.covariance_).all()
    if scale == 1.0:
        late = CBR(covariance=covariance).fit(X, y, sample_weight=weights)
        assert late.coef_[0, 0] > 1  # what came first, with no weight to speak of, does not spoil what comes later


def test_a_diagonal_covariance_never_reaches_zero():
    rng = np.random.default_rng(0)
    model = CBR(covariance="diag", C=1e300).fit(rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000))
    assert (model.covariance_ > 0).all()
    assert (model.covariance_ < 1e-150).all()
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("alpha", [1.0, 1e6])
def test_low_rank_with_a_strong_penalty(alpha):
    rng = np.random.default_rng(0)
    rows, entries = 3000, 3
    X = csr_array(
        (rng.normal(size=rows * entries), rng.integers(0, 5000, rows * entries), np.arange(rows + 1) * entries),
        shape=(rows, 5000),
    )
    y = (rng.random(rows) < 0.3).astype(int)
    exact = OPAUC(rank=2, learning_rate=1.0, alpha=alpha, random_state=0).fit(X, y)
    assert np.isfinite(exact.coef_).all()
    assert exact.scale_[0] >= 1e-100


@pytest.mark.parametrize("weight", [1e-200, 1e50])
@pytest.mark.parametrize("model", [OPAUC(rank=3, random_state=0), OPAUC(), AdaOAM(), UniExp(), OAM(random_state=0)])
def test_extreme_weights(model, weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    y = (X[:, 0] > 0.5).astype(int)
    fitted = model.fit(X, y, sample_weight=np.full(100, weight))
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.threshold_)


@pytest.mark.parametrize("model", [CBR(), CBR(covariance="diag"), OAM(), OPAUC(), AdaOAM(), UniExp()], ids=repr)
@pytest.mark.parametrize("damage", ["column", "negative column", "start", "order"])
def test_sparse_rows_whose_indices_lead_out_of_them_are_refused(model, damage):
    good = csr_array(np.eye(6)[:, :3] + 1.0)
    labels = [1, 0, 1, 0, 1, 0]
    bad = good.copy()
    if damage == "start":
        bad.indptr[0] = 1
    elif damage == "order":
        bad.indptr[3] = 10_000_000
    else:
        bad.indices[4] = 10_000_000 if damage == "column" else -1
    model = clone(model)
    with pytest.raises(ValueError, match="no valid sparse matrix"):
        model.fit(bad, labels)
    model.fit(good, labels)
    for call in (model.decision_function, lambda X: model.partial_fit(X, labels)):
        with pytest.raises(ValueError, match="no valid sparse matrix"):
            call(bad)
