"""The same little hostile files by the reader of tables and by that of streams: the same rows, labels and refusals."""

import numpy as np
import polars as pl
import pytest

from toprank.files import TableError, open_table
from toprank.files.open import open_rows
from toprank.files.source import read_all
from toprank.files.training import read_to_learn

OPTIONS = ["target", "positive", "features", "format", "delimiter", "n_features", "zero_based", "fill_missing"]
FILL = -99.0


def by_stream(path, **options):
    """Names, numbers with FILL for missing, labels and bad lines."""
    source = open_rows(str(path), **dict.fromkeys(OPTIONS) | {"target": "y", "fill_missing": FILL} | options)
    blocks = list(source.blocks(source.start()))
    X = np.vstack([block.rows.X for block in blocks])
    y = np.concatenate([block.rows.y for block in blocks])
    return source.feature_names, X, y, [bad for block in blocks for bad in block.bad]


def by_table(path, positive=None, delimiter=None, ignore=()):
    """The same by what fit, score, evaluate, compare and report read."""
    source = open_table(str(path), delimiter=delimiter)
    rows = read_to_learn(source, "y", positive=positive, ignore=ignore)
    X = rows.X.select(list(rows.columns.used))
    return X.columns, X.fill_nan(FILL).to_numpy(), rows.y, rows.notes


def same(path, **options):
    names, X, y, bad = by_stream(path, **options)
    if "features" in options:
        options = {key: value for key, value in options.items() if key != "features"}
    other_names, other_X, other_y, notes = by_table(path, **options)
    assert names == other_names
    np.testing.assert_array_equal(X, other_X)
    np.testing.assert_array_equal(y, other_y)
    return X, y, bad, notes


def write(folder, text, name="f.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


ROWS = "1,5,1\n2,,0\n3,7,1\n"
TEXTS = {
    "plain": "a,b,y\n" + ROWS,
    "byte order mark": "\ufeffa,b,y\n" + ROWS,
    "carriage returns": ("a,b,y\n" + ROWS).replace("\n", "\r\n"),
    "no last end": ("a,b,y\n" + ROWS)[:-1],
    "empty lines": "a,b,y\n\n1,5,1\n\n2,,0\n3,7,1\n\n",
    "lines of blanks": "a,b,y\n  \n1,5,1\n \t \n2,,0\n3,7,1\n   ",
    "semicolons": ("a,b,y\n" + ROWS).replace(",", ";"),
    "tabulators": ("a,b,y\n" + ROWS).replace(",", "\t"),
    "bars": ("a,b,y\n" + ROWS).replace(",", "|"),
    "quoted names": '"a"," b ", "y"\n' + ROWS,
    "quoted fields": 'a,b,y\n"1","5","1"\n2,"",0\n3,7,"1"\n',
    "blanks around quotes": 'a,b,y\n "1" ,"5" , "1"\n2, "" ,0\n3,7,1\n',
    "blanks around fields": "a , b, y \n 1 ,5 , 1\n2,  ,0\n3,\t7\t,1\n",
    "more missing words": "a,b,y\n1,5,1\n2,N/A,0\n3,7,1\n4,None,0\n5,?,1\n6,-,0\n7,#N/A,0\n8,.,1\n",
    "missing words": "a,b,y\n1,5,1\n2,NA,0\n3,7,1\n4,NaN,0\n5,null,1\n6,nan,0\n7,Null,0\n",
    "ways to write numbers": "a,b,y\n1.,+5,1\n.5,-5e-3,0\n1E3,0005,1\n-0.0,1e+2,0\n3,12345678901234567890,1\n",
    "ways to write labels": "a,b,y\n1,5,1.0\n2,6,0.0\n3,7,1e0\n4,8,-0\n5,9,+1\n",
    "minus one": "a,b,y\n1,5,-1\n2,6,1\n3,7,-1.0\n",
    "truth": "a,b,y\n1,5,true\n2,6,False\n3,7,TRUE\n",
    "columns of the same name": "a,c,b,c,y\n1,9,5,8,1\n2,9,6,7,0\n3,8,7,7,1\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_texts(tmp_path, text):
    X, y, bad, notes = same(write(tmp_path, text))
    assert bad == notes == []
    assert X.shape[1] == 2
    assert 0 < y.sum() < len(y)


LABELS = {
    "text": ("fraud", ["fraud", " fraud ", "no", '"fraud"', "frau", "x"], [1, 1, 0, 1, 0, 0]),
    "number": ("3", ["3", "3.0", "0.30e1", "spam", "30", "+3"], [1, 1, 1, 0, 0, 1]),
    "many digits": ("9007199254740993", ["9007199254740993", "9007199254740992", "9007199254740993.0"], [1, 0, 1]),
    "zero": ("0", ["0", "-0.00", "0e5", "1", "00.1", ".0"], [1, 1, 1, 0, 0, 1]),
    "small": ("-0.001", ["-1e-3", "1e-3", "-0.0010", "-.01", "-0.001e0"], [1, 0, 1, 0, 1]),
    "large": ("1e400", ["1e400", "10E399", "1e401", "inf", "0.001e403"], [1, 1, 0, 0, 1]),
    "truth": ("True", ["true", "TRUE", "false", "1", "yes"], [1, 1, 0, 0, 0]),
    "underscore": ("1_0", ["1_0", "10", "1_0"], [1, 0, 1]),
}


@pytest.mark.parametrize(("positive", "labels", "expected"), LABELS.values(), ids=LABELS.keys())
def test_labels(tmp_path, positive, labels, expected):
    path = write(tmp_path, "a,b,y\n" + "".join(f"{i},{i**2},{label}\n" for i, label in enumerate(labels)))
    _, y, bad, notes = same(path, positive=positive)
    assert y.tolist() == expected
    assert bad == notes == []
    frame = pl.DataFrame({"a": range(len(labels)), "b": [0.5 * i for i in range(len(labels))], "y": labels})
    frame.write_parquet(tmp_path / "f.parquet")
    _, y, _, _ = same(tmp_path / "f.parquet", positive=positive)
    assert y.tolist() == [int(one and '"' not in label) for one, label in zip(expected, labels, strict=True)]


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_a_row_without_a_label_is_no_row(tmp_path, name):
    labels = ["yes", "NA", "no", "", "null", "yes"]
    frame = pl.DataFrame({"a": range(6), "b": [i**2 for i in range(6)], "y": labels})
    frame.write_parquet(tmp_path / name) if name == "f.parquet" else frame.write_csv(tmp_path / name)
    X, y, bad, notes = same(tmp_path / name, positive="yes")
    assert X[:, 0].tolist() == [0, 2, 5]
    assert len(bad) == 3
    assert notes == ["3 rows without a label in 'y' are left out"]
    _, y, bad, notes = same(tmp_path / name, positive="NA")  # that very word is a label then
    assert y.tolist() == [0, 1, 0, 0]
    assert len(bad) == 2


REFUSED = {
    "empty": (b"", "is empty"),
    "no names": (b"\n1,2,1\n", "starts with an empty line"),
    "not UTF-8": ("a,größe,y\n1,2,1\n".encode("latin-1"), "not a text file in UTF-8: line 1"),
    "open quote": (b'a,"b,y\n1,2,1\n', "whose quotes are not closed"),
    "no target": (b"a,b,z\n1,2,1\n", "has no column 'y'"),
    "two targets": (b"a,y,y\n1,2,1\n", r"several columns 'y'|2 columns 'y'"),
    "no such column to ignore": (b"a,b,y\n1,2,1\n", "has no column 'c'"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(tmp_path, content, message):
    path = write(tmp_path, content)
    ignore = ["c"] if "'c'" in message else []
    for read in (by_stream, by_table):
        with pytest.raises(TableError, match=message):
            read(path, ignore=ignore)


@pytest.mark.parametrize("delimiter", [",,", "", '"', "\n", "é"])
def test_delimiters_that_are_none(tmp_path, delimiter):
    path = write(tmp_path, "a,b,y\n" + ROWS)
    for read in (by_stream, by_table):
        with pytest.raises(TableError, match="delimiter must be one character"):
            read(path, delimiter=delimiter)


@pytest.mark.parametrize(
    "line", ["1,2", "1,2,1,", "1,2,3,4", '1,"2,1', "1,x,1", "1,-na,1", "1,+,1", "1,1e,1", "1,0x1,1"]
)
def test_lines_that_are_no_rows(tmp_path, line):
    """The one counts them, the other stops or names what is not a number: never a number by guess."""
    path = write(tmp_path, f"a,b,y\n1,2,1\n2,3,0\n{line}\n3,5,1\n4,6,0\n")
    _, X, _, bad = by_stream(path)
    assert [one.line for one in bad] == [4]
    assert X[:, 0].tolist() == [1, 2, 3, 4]
    table = open_table(str(path))
    with pytest.raises(TableError, match=r"line 4|from line 2"):
        read_all(table, {"a": "number", "b": "number", "y": "number"})[1].refuse_too_many()


@pytest.mark.parametrize("name", ["f.npz", "f.npy", "f.parquet"])
def test_files_with_types(tmp_path, name):
    rng = np.random.default_rng(0)
    a, b, y = rng.normal(size=40), rng.integers(5, size=40), rng.integers(2, size=40)
    a[3] = np.nan
    path = tmp_path / name
    if name == "f.parquet":
        pl.DataFrame({"a": a, "b": b, "y": y}).write_parquet(path)
    elif name == "f.npz":
        np.savez(path, a=a, b=b, y=y)
    else:
        np.save(path, np.array(list(zip(a, b, y, strict=True)), dtype=[("a", float), ("b", int), ("y", int)]))
    X, labels, bad, _ = same(path)
    assert bad == []
    np.testing.assert_array_equal(X[:, 1], b)
    np.testing.assert_array_equal(labels, y)
    source = open_rows(str(path), **dict.fromkeys(OPTIONS) | {"target": "y", "fill_missing": FILL})
    rest = [block.rows.X for block in source.blocks(type(source.start())(17, 17))]
    np.testing.assert_array_equal(np.vstack(rest), X[17:])
