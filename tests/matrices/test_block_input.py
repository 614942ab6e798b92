"""Labels on their way to the rows of their block."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip("dask")

from dask.sizeof import sizeof

from toprank.base import is_positive
from toprank.matrices.block_input import _coded


@pytest.mark.parametrize("n", [0, 1, 8, 10_001])
def test_labels_of_two_classes_travel_as_bits(rng, n):
    labels = np.where(rng.random(n) < 0.3, "fraud", "good")
    coded = _coded(labels, partial(is_positive, classes=np.array(["good", "fraud"])))
    assert coded.length == n
    assert sizeof(coded) <= n / 8 + 1000
    codes = coded.codes()
    assert codes.dtype == np.bool_
    np.testing.assert_array_equal(codes, labels == "fraud")


@pytest.mark.parametrize("levels", [1, 5, 300])
def test_levels_travel_in_as_few_bytes_as_their_number_needs(rng, levels):
    labels = rng.integers(0, levels, 5000)
    coded = _coded(labels, partial(np.asarray, dtype=np.int64))
    assert sizeof(coded) <= 5000 * (1 if levels < 256 else 2) + 1000
    np.testing.assert_array_equal(coded.codes(), labels, strict=True)
    assert len(_coded(labels[:0], partial(np.asarray, dtype=np.int64)).codes()) == 0
