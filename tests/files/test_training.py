"""Rows to learn from and rows to test with."""

import numpy as np
import polars as pl
import pytest

from toprank import PatMatNP
from toprank.files import TableError, TableModel, open_table
from toprank.files.estimators import table_pipeline
from toprank.files.training import read_to_learn, read_to_test


def source_of(folder, content, name="data.csv", **options):
    (folder / name).write_text(content)
    return open_table(str(folder / name), **options)


def test_a_column_that_turns_out_to_be_text_is_text_from_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr("toprank.files.csv_file._GUESS", 20)
    lines = [f"{i % 4},{i % 3},{i % 2}" for i in range(40)]
    for i in (30, 33, 36):
        lines[i] = "0,x,1"
    source = source_of(tmp_path, "a,b,y\n" + "\n".join(lines))
    source._block = 50
    rows = read_to_learn(source, "y")
    assert rows.columns.used == {"a": "number", "b": "category"}
    assert rows.X["b"].to_list() == ["x" if i in (30, 33, 36) else str(i % 3) for i in range(40)]
    np.testing.assert_array_equal(rows.y, [1 if i in (30, 33, 36) else i % 2 for i in range(40)])


def test_columns_by_name(tmp_path):
    content = "id,code,x,x,z,when,y\n" + "".join(f"0{i},{i % 3},1,2,{i * i},2026-01-02,{i % 2}\n" for i in range(30))
    rows = read_to_learn(source_of(tmp_path, content), "y", id_column="id", categorical=["code"], ignore=["z"])
    assert rows.columns.used == {"code": "category"}
    assert sorted(rows.columns.left_out) == ["when", "x"]
    assert rows.columns.left_out["x"] == "several columns have this name"
    assert rows.ids.to_list()[:2] == ["00", "01"]
    assert (rows.positive, int(rows.y.sum())) == ("1", 15)
    part = rows.part(np.array([1, 3]))
    assert (part.ids.to_list(), part.y.tolist(), len(part.X)) == (["01", "03"], [1, 1], 2)


def test_rows_without_label_are_left_out(tmp_path):
    rows = read_to_learn(source_of(tmp_path, "a,y\n1,0\n2,\n3,1\n4,NA\n"), "y")
    assert (rows.X["a"].to_list(), rows.y.tolist()) == ([1.0, 3.0], [0, 1])
    assert rows.notes == ["2 rows without a label in 'y' are left out"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": None}, "target='fraud'"),
        ({"target": "z"}, "has no column 'z'"),
        ({"target": "y", "id_column": "y"}, "cannot be the identifier"),
        ({"target": "y", "ignore": ["y"]}, "or ignored"),
        ({"target": "y", "positive": "2"}, "no row has the label '2'"),
        ({"target": "a", "positive": "1"}, "all 2 labels in the column 'a' are positive"),
    ],
)
def test_errors(tmp_path, arguments, message):
    source = source_of(tmp_path, "a,b,y\n1,5,0\n1,6,1\n")
    with pytest.raises(TableError, match=message):
        read_to_learn(source, **arguments)


def test_columns_of_the_same_name_only(tmp_path):
    source = source_of(tmp_path, "a,a,y\n1,5,0\n2,6,1\n")
    with pytest.raises(TableError, match=r"no column to learn from .'a': several columns have this name"):
        read_to_learn(source, "y")


def test_svmlight_labels(tmp_path):
    content = "3 1:1\n5 1:2 2:4\n3 2:1\n"
    rows = read_to_learn(source_of(tmp_path, content, "a.svm"), None, positive="5")
    assert (rows.X.shape, rows.y.tolist(), rows.positive) == ((3, 2), [0, 1, 0], "5")
    for arguments, message in [
        ({"positive": "yes"}, "are numbers"),
        ({}, "line 1 .* is bad"),
        ({"positive": "9"}, "all 3"),
    ]:
        with pytest.raises(TableError, match=message):
            read_to_learn(source_of(tmp_path, content, "a.svm"), None, **arguments)
    with pytest.raises(TableError, match="target is for columns with names"):
        read_to_learn(source_of(tmp_path, content, "a.svm"), "y")


def test_a_model_knows_its_columns_and_labels(tmp_path):
    table = pl.DataFrame({"a": np.arange(30.0) ** 2, "k": ["u", "v", "w"] * 10})
    columns = {"a": "number", "k": "category"}
    model = TableModel(table_pipeline(columns, PatMatNP()), columns, target="y", positive="yes", id_column="id")
    model.fit(table, np.arange(30) > 20)
    content = "more,y,k,a,id\n" + "".join(f"?,{'yes' if i % 2 else 'no'},u,{i},r{i}\n" for i in range(6))
    rows = read_to_test(source_of(tmp_path, content), model)
    assert rows.X.columns == ["a", "k", "id"]
    assert (rows.y.tolist(), rows.ids.to_list()[-1]) == ([0, 1, 0, 1, 0, 1], "r5")
    assert "more" in read_to_test(source_of(tmp_path, content), model, all_columns=True).X.columns
    assert read_to_test(source_of(tmp_path, content), model, positive="no").y.tolist() == [1, 0, 1, 0, 1, 0]
    with pytest.raises(TableError, match="learned from the column 'k', so it cannot be the target"):
        read_to_test(source_of(tmp_path, content), model, target="k", positive="u")
    with pytest.raises(TableError, match="fitted to tables with named columns"):
        read_to_test(source_of(tmp_path, "1 1:1\n", "a.svm"), model)
    with pytest.raises(TableError, match="has no column 'k'"):
        read_to_test(source_of(tmp_path, "a,y\n1,yes\n"), model)
