"""Columns of text and categories as codes: the same by pandas, by polars, for few rows and for many."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from toprank import TopForest
from toprank.trees import table_columns
from toprank.trees.table_columns import TableColumns

WORDS = ["b", "a", None, "c", "b", "A", "a"] * 3
MIXED = [1, "1", 2.5, None, np.nan, "x", pd.NA, True] * 3


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(WORDS),
        pd.Series(WORDS, dtype=object),
        pd.Series(WORDS, dtype="category"),
        pd.Series([3, 1, 2, 3] * 3, dtype="category"),
        pd.Series(MIXED, dtype=object),
        pl.Series(WORDS),
        pl.Series(WORDS, dtype=pl.Categorical),
        pl.Series(WORDS, dtype=pl.Enum(["z", "c", "b", "a", "A"])),
        pl.Series([None, None], dtype=pl.Null),
        pl.Series(MIXED, dtype=pl.Object),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]}-{column.dtype}",
)
def test_many_rows_are_read_as_few_are(column, monkeypatch):
    frame = pd.DataFrame({"x": column}) if isinstance(column, pd.Series) else pl.DataFrame({"x": column})
    few = TableColumns.of(frame)
    monkeypatch.setattr(table_columns, "_MANY_ROWS", 1)
    many = TableColumns.of(frame)
    assert many.categories == few.categories
    assert [type(value) for value in many.categories[0]] == [type(value) for value in few.categories[0]]
    part = frame[1:3]
    by_many, codes_by_many = many.read(part), many.read(frame)
    monkeypatch.undo()
    np.testing.assert_array_equal(by_many, few.read(part))
    np.testing.assert_array_equal(codes_by_many, few.read(frame))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_lists_are_refused_with_advice(frame):
    with pytest.raises(ValueError, match=r"column 'x' holds lists .*; make numbers or words of them"):
        TopForest().fit(frame({"x": [[1], [2, 3], [4], [5]]}), [0, 1, 0, 1])
