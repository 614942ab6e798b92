"""Leaves of Dask arrays: those of one array, and a head on all of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from toprank import LeafFeatures, TauFPL
from toprank.datasets import make_imbalanced

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


def test_a_head_on_the_leaves_of_all_rows():
    X, y, _ = make_imbalanced(300, 4, positive_share=0.3, separation=3.0, random_state=0)
    lengths, grown_on = (90, 0, 210), np.arange(300) < 60
    dX, dy = da.from_array(X, chunks=(lengths, 2)), da.from_array(y, chunks=(lengths,))
    trees = ExtraTreesClassifier(4, min_samples_leaf=8, random_state=0)
    leaves = LeafFeatures(trees).fit(X[grown_on], y[grown_on])
    with dask.config.set(scheduler="synchronous"):
        features = leaves.transform(dX)
        assert features.shape == (300, leaves.n_leaves_.sum())
        expected = leaves.transform(X)
        blocks = [block.compute() for block in features.to_delayed().ravel()]
        assert np.array_equal(np.vstack([block.toarray() for block in blocks]), expected.tocsr().toarray())
        model = TauFPL(tau=0.2, alpha=0.01, tol=1e-7, threshold="trained")
        head = model.fit(features, dy, sample_weight=~grown_on)
        assert head.dual_gap_ <= 1e-7
        found = head.coef_.copy()
    in_memory = model.fit(expected, y, sample_weight=(~grown_on).astype(float)).coef_
    assert found == pytest.approx(in_memory, abs=1e-4 * np.abs(in_memory).max())
    with pytest.raises(ValueError, match="3 features"):
        leaves.transform(dX[:, :3])
