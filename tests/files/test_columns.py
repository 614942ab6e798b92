"""Roles of columns, and labels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from toprank.files import TableError
from toprank.files.columns import choose_columns, prepared
from toprank.files.labels import positive_rows
from toprank.files.source import NUMBER, TEXT


def choose(categorical=(), **columns):
    frame = pl.DataFrame(columns)
    kinds = {name: NUMBER if frame[name].dtype == pl.Float64 else TEXT for name in frame.columns}
    return choose_columns(frame, kinds, categorical)


N = 50


def test_roles():
    numbers = np.linspace(0, 1, N)
    found = choose(
        amount=numbers,
        country=["DE", "FR"] * (N // 2),
        abroad=["true", "False"] * (N // 2),
        note=[f"text {i}" for i in range(N)],
        same=np.ones(N),
        same_or_missing=["a", None] * (N // 2),
        empty=pl.Series([None] * N, dtype=pl.String),
        nothing=np.full(N, np.nan),
    )
    assert found.used == {
        **{"amount": "number", "country": "category", "abroad": "truth", "same_or_missing": "category"},
    }
    assert found.left_out["note"] == "it is text with 50 different values in 50 rows"
    assert found.left_out["same"] == "it has the value '1.0' in every row"
    assert found.left_out["empty"] == found.left_out["nothing"] == "it has no values"
    assert found.notes == []


def test_columns_named_categorical_are_categories():
    found = choose(categorical=["code", "flag"], code=[f"{i}" for i in range(N)], flag=["true", "false"] * (N // 2))
    assert found.used == {"code": "category", "flag": "category"}


def test_a_number_of_rows_is_pointed_out():
    found = choose(number=np.arange(N, dtype=float), amount=np.linspace(0, 1, N))
    assert found.used == {"number": "number", "amount": "number"}
    assert "by id_column='number', or leave it out by ignore=['number']" in found.notes[0]


@pytest.mark.parametrize(("value", "word"), [(np.inf, "not finite"), (-1e200, "too large")])
def test_values_that_cannot_be_scaled(value, word):
    with pytest.raises(TableError, match=rf"column 'x' has the value .* in row 8, which is {word}"):
        choose(x=np.where(np.arange(N) == 7, value, np.arange(N)))


def test_numbers_too_small_to_be_scaled():
    with pytest.raises(TableError, match=r"column 'x' has no value larger than 4.9e-199, .* ignore=\['x'\]"):
        choose(x=np.arange(N) * 1e-200, z=np.arange(N) / 7)
    assert choose(x=np.arange(N) * 1e-149).used == {"x": "number"}


def test_dates_and_other_types_are_left_out_and_something_must_be_left():
    frame = pl.DataFrame({"x": np.arange(9.0) ** 2})
    found = choose_columns(frame, {"x": NUMBER, "when": "date", "list": "List(Int64)"})
    assert found.used == {"x": "number"}
    assert "dates are not used" in found.left_out["when"]
    assert "List(Int64)" in found.left_out["list"]
    with pytest.raises(TableError, match=r"no column to learn from .*'when': dates"):
        choose_columns(frame, {"when": "date"})


def test_prepared_frames():
    used = {"x": "number", "t": "truth", "c": "category"}
    frame = pl.DataFrame({"c": ["a", None, " b "], "more": [1, 2, 3], "t": ["TRUE", "0", None], "x": ["1", "", " 2.5"]})
    done = prepared(frame, used)
    assert done.columns == ["x", "t", "c"]
    np.testing.assert_array_equal(done["x"].to_numpy(), [1, np.nan, 2.5])
    np.testing.assert_array_equal(done["t"].to_numpy(), [1, 0, np.nan])
    assert done["c"].to_list() == ["a", "(missing)", "b"]
    other = prepared({"x": [1, 2, 3], "t": [True, False, True], "c": [1, 2, None]}, used)
    assert other["t"].to_list() == [1, 0, 1]
    assert other["c"].to_list() == ["1", "2", "(missing)"]


def test_frames_of_pandas():
    used = {**dict.fromkeys("xnh", "number"), "t": "truth", **dict.fromkeys("ckm", "category")}
    frame = pd.DataFrame(
        {
            "more": ["some", "text"],
            "x": [1.5, np.nan],
            "n": pd.array([7, None], dtype="Int64"),
            "h": np.array([0.5, -2], dtype=np.float16),
            "t": pd.array([None, True], dtype="boolean"),
            "c": ["a", None],
            "k": pd.Categorical(["u", np.nan]),
            "m": pd.Series([1, "two"], dtype=object),
        }
    ).set_index(pd.Index([5, 9]))
    done = prepared(frame, used)
    expected = prepared(
        pl.DataFrame(
            {
                **{"x": [1.5, None], "n": [7, None], "h": [0.5, -2.0], "t": [None, True]},
                **{"c": ["a", None], "k": ["u", None], "m": ["1", "two"]},
            }
        ),
        used,
    )
    assert done.equals(expected)
    assert prepared(frame.astype({"c": "string", "k": object}), used).equals(expected)
    with pytest.raises(TableError, match="has no column 'n'"):
        prepared(frame.drop(columns="n"), used)
    with pytest.raises(TableError, match="has 2 columns 'x'"):
        prepared(frame.rename(columns={"more": "x"}), used)
    with pytest.raises(TableError, match=r"1 of the 2 values of the column 'm', .* are none: 'two' \(1, in row 2\)"):
        prepared(frame, {"m": "number"})


@pytest.mark.parametrize(
    ("column", "message"),
    [({"t": ["maybe"]}, "1 of the 1 values of the column 't', .* 'maybe'"), ({}, "has no column 't'")],
)
def test_frames_that_do_not_fit(column, message):
    with pytest.raises(TableError, match=message):
        prepared(pl.DataFrame({"x": [1.0], **column}), {"x": "number", "t": "truth"})


@pytest.mark.parametrize(
    ("labels", "positive", "expected", "chosen"),
    [
        (["0", "1", "1.0"], None, [0, 1, 1], "1"),
        (["-1", "1", "-1.0"], None, [0, 1, 0], "1"),
        (["false", "TRUE", None], None, [0, 1, 0], "true"),
        (["no", "yes", "no"], "yes", [0, 1, 0], "yes"),
        (["3", "8", "5"], "8.0", [0, 1, 0], "8.0"),
        (["0.5", "0.25", ".5"], "0.50", [1, 0, 1], "0.50"),
        (["1234567", "1234568", "1.234567e6"], "1234567", [1, 0, 1], "1234567"),
        (["12345678901234567", "12345678901234568"], " 12345678901234568.0 ", [0, 1], " 12345678901234568.0 "),
        (["1" * 40, "1" * 39 + "2", "1" * 39 + "2.0"], "1" * 39 + "2", [0, 1, 1], "1" * 39 + "2"),
        (["1e30", "1" + "0" * 30, "1e-30"], "1E+30", [1, 1, 0], "1E+30"),
        (["-0.0", "0", "1"], None, [0, 0, 1], "1"),
        (["1_0", "10", "inf"], "10", [0, 1, 0], "10"),
    ],
    ids=[
        *("01", "signs", "truth", "words", "one-against-rest", "fractions", "seven-digits", "beyond-doubles"),
        *("beyond-decimals", "exponents", "zeros", "no-numbers"),
    ],
)
def test_labels(labels, positive, expected, chosen):
    y, known, found = positive_rows(pl.Series("y", labels), positive)
    assert y.tolist() == expected
    assert known.tolist() == [label is not None for label in labels]
    assert found == chosen


@pytest.mark.parametrize(
    ("labels", "positive", "message"),
    [
        (["a", "b"], None, "labels in 'y' are 'a', 'b'; .* positive='b'"),
        (["ok", "fraud", "ok"], None, "say which one is positive, for instance positive='fraud'"),
        (["a", "a"], None, "has one value only"),
        ([None, None], None, "has no values"),
        (["a", "b"], "c", "no row has the label 'c'"),
        (["No", "Yes"], "yes", "no row has the label 'yes'; .* are 'No', 'Yes'; did you mean positive='Yes'"),
        (["no", "yes", "Yes"], "yes", "positive='yes' would make rows with the label 'Yes' negative"),
        (["1", "2"], None, "positive='2'"),
    ],
)
def test_labels_that_are_not_clear(labels, positive, message):
    with pytest.raises(TableError, match=message):
        positive_rows(pl.Series("y", labels, dtype=pl.String), positive)
