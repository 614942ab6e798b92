"""Numbers, lines and blocks of text files."""

import csv
import io
import struct

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from toprank.compiled import compiled
from toprank.files import text
from toprank.files._numbers import INFINITE, LEFT, MISSING, NO_NUMBER, NUMBER, parse_number
from toprank.files.csv_rows import CSVFile
from toprank.files.labels import labels_of, number_labels
from toprank.files.open import open_rows
from toprank.files.rows import Place, batches
from toprank.files.svmlight_file import SvmlightFile
from toprank.streams import BadLineError

LABELS = number_labels(None)


@compiled()
def parsed_within(content):
    return parse_number(content, 1, len(content) - 1)


def parsed(characters):
    return parsed_within(np.frombuffer(b"<" + characters.encode() + b">", np.uint8))


def bits(number):
    return struct.pack("d", number)


digits = st.integers(0, 10**20).map(str)
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(repr),
    st.builds(lambda a, e: f"{a}e{e}", digits, st.integers(-30, 30)),
    st.builds(lambda a, b: f"-{a}.{b}", digits, digits),
    # halfway between two doubles, where rounding is decided by the last digit
    st.builds(lambda a, s: f"{2 * a + 1}{s}", st.integers(2**53, 2**54), st.sampled_from(["", ".0", ".1", "0e-1"])),
    st.builds(lambda a, s: f"{a}.5{s}", st.integers(2**52, 2**53 - 1), st.sampled_from(["", "0", "1"])),
)


@given(numbers)
@example("18446744073709551615")
@example("9999999999999999999")
@example("-0")
@example("0e999")
@example("1.e5")
@example(".5")
@settings(max_examples=500)
def test_numbers_are_those_of_python(characters):
    value, status = parsed(characters)
    assert status in ((NUMBER, LEFT) if abs(float(characters)) < 1e308 else (INFINITE,))
    if status == NUMBER:
        assert bits(value) == bits(float(characters))


def test_usual_numbers_are_not_left_to_python(rng):
    for characters in [*map(repr, rng.normal(size=1000).tolist()), *map(repr, rng.random(1000).tolist())]:
        if "e" not in characters:
            assert parsed(characters)[1] == NUMBER


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["", "nan", "NaN", "NA", "null", "-nan", "N/A", "None", "?", "-", "--", ".", "#DIV/0!", "\\N"], MISSING),
        (["inf", "-Infinity", "+INF"], INFINITE),
        (
            ["x", "1x", "1e", "1e+", "+", "-none", "..", "1.2.3", "--1", "1_000", "0x1", "1 2", "e5", "nanx", "١"],
            NO_NUMBER,
        ),
    ],
)
def test_words(words, status):
    for word in words:
        assert parsed(word)[1] == status, word


def read(source, start=None):
    blocks = list(source.blocks(start or source.start()))
    rows = [block.rows for block in blocks]
    X = np.vstack([part.X.toarray() if hasattr(part.X, "toarray") else part.X for part in rows])
    return X, np.concatenate([part.y for part in rows]), [line for block in blocks for line in block.bad], blocks


@pytest.fixture(params=[1, 7, 64, 1 << 20], ids=lambda size: f"block{size}")
def block_size(request, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", request.param)
    return request.param


def csv_file(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    arguments = {"target": "y", "features": None, "delimiter": None, "fill_missing": None} | options
    return CSVFile(str(path), arguments.pop("labels", LABELS), **arguments)


def test_csv_as_polars_reads_it(tmp_path, rng, block_size):
    frame = pl.DataFrame(rng.normal(size=(50, 3)) * [1, 1e-9, 1e12], schema=["a", "b", "c"])
    frame = frame.with_columns(y=pl.Series(rng.integers(0, 2, 50)))
    X, y, bad, blocks = read(csv_file(tmp_path / "f.csv", frame.write_csv()))
    np.testing.assert_array_equal(X, frame.drop("y").to_numpy())
    np.testing.assert_array_equal(y, frame["y"].to_numpy())
    assert bad == []
    assert blocks[-1].end == Place((tmp_path / "f.csv").stat().st_size, 51)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_as_people_write_it(tmp_path, delimiter, end, block_size):
    lines = [
        '\ufeffname,"a ",y,b',
        '"Lee, Ann",1,+1,  2.5 ',
        "",
        '"say ""hi""",-3e0,0,4',
        'Bo,5,-1.0,"6"',
        "Cy, 7 ,1,8",
    ]
    content = end.join(line.replace(",", delimiter) for line in lines)
    source = csv_file(tmp_path / "f.csv", content, features=["b", "a"])
    X, y, bad, blocks = read(source)
    assert X.tolist() == [[2.5, 1], [4, -3], [6, 5], [8, 7]]
    assert y.tolist() == [1, 0, 0, 1]
    assert bad == []
    assert np.concatenate([block.rows.lines for block in blocks]).tolist() == [2, 4, 5, 6]
    assert source.feature_names == ["b", "a"]


def test_csv_missing_values_and_labels(tmp_path):
    content = "a,b,y\n1,,yes\nNA,2, yes \n3,nan,no\n4,5,\n"
    labels = labels_of("yes", numbers_only=False)
    X, y, bad, _ = read(csv_file(tmp_path / "f.csv", content, labels=labels, fill_missing=-1.0))
    assert X.tolist() == [[1, -1], [-1, 2], [3, -1]]
    assert y.tolist() == [1, 1, 0]
    assert bad == [(5, "the label is missing")]
    X, y, bad, _ = read(csv_file(tmp_path / "f.csv", "a,y\n1,3\n2,4\n3,5\n", labels=number_labels(4.0)))
    assert y.tolist() == [0, 1, 0]


def test_csv_bad_lines(tmp_path, block_size):
    content = (
        'a,b,y\n1,2,1\n1,2\nx,2,0,4,y\nx,2,1\n1,inf,0\n,2,0\n1,2,3\n"1,2,0\n"1"2,3,0\n'
        "3,4.0000000000000000000000001,0\n9,abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz,0"
    )
    X, _, bad, _ = read(csv_file(tmp_path / "f.csv", content))
    assert X.tolist() == [[1, 2], [3, 4]]
    assert [line.line for line in bad] == [3, 4, 5, 6, 7, 8, 9, 10, 12]
    reasons = [line.reason for line in bad]
    assert reasons[0] == "its number of fields is 2, and that of the first line is 3"
    assert reasons[1] == "its number of fields is 5, and that of the first line is 3"
    assert reasons[2].startswith("column 'a' has 'x', which is not a number; leave a column of text out by features=")
    assert reasons[3] == "column 'b' has 'inf', which is not finite"
    assert reasons[4].startswith("column 'a' has no value; pass fill_missing=")
    assert reasons[5].startswith("the label '3' is none of 1, 0 and -1; name the positive label by positive=")
    assert reasons[6] == reasons[7] == "a quoted field, column 'a', is not closed in its line"
    assert "'abcdefghijklmnopqrstuvwxyzabcdefghijk...'" in reasons[8]


@pytest.mark.parametrize("zero_based", [False, True])
def test_svmlight_as_scikit_learn_reads_it(tmp_path, rng, zero_based, block_size):
    X = np.where(rng.random((40, 6)) < 0.4, rng.normal(size=(40, 6)), 0)
    X[:, 5] = rng.normal(size=40) * 1e-300
    y = rng.integers(0, 2, 40) * 2 - 1
    buffer = io.BytesIO()
    dump_svmlight_file(X, y, buffer, zero_based=zero_based, comment="made up", query_id=np.arange(40))
    (tmp_path / "f.svm").write_bytes(buffer.getvalue())
    source = SvmlightFile(str(tmp_path / "f.svm"), LABELS, None, zero_based)
    mine, labels, bad, _ = read(source)
    theirs, _ = load_svmlight_file(io.BytesIO(buffer.getvalue()), n_features=6, zero_based=zero_based)
    assert source.n_features == 6
    np.testing.assert_array_equal(mine, theirs.toarray())
    np.testing.assert_array_equal(labels, y == 1)
    assert bad == []


def test_svmlight_bad_lines(tmp_path, block_size):
    content = (
        "# names\n+1 1:2 3:4\n\n0 2:x\n1 2:3 2:4\n0 0:1\n1 9:1\n2 1:1\n0 1:\n0 a:1\n-1 # none\n0 1:nan\n1 3:1e400 \n1 1"
    )
    (tmp_path / "f.svm").write_text(content)
    X, y, bad, _ = read(SvmlightFile(str(tmp_path / "f.svm"), LABELS, 3, False))
    assert X.tolist() == [[2, 0, 4], [0, 0, 0]]
    assert y.tolist() == [1, 0]
    assert [line.line for line in bad] == [4, 5, 6, 7, 8, 9, 10, 12, 13, 14]
    reasons = [line.reason for line in bad]
    assert "feature 2 has 'x', which is not a number" in reasons[0]
    assert reasons[1] == "'2:4' does not have a larger index than the one before"
    assert reasons[2] == "'0:1' has the index 0; pass zero_based=True if indices start at 0"
    assert reasons[3] == "'9:1' has the index 9, and there are 3 features; start a new model for more"
    assert "the label '2' is none of" in reasons[4]
    assert reasons[6] == "'a:1' is not of the form index:value"
    assert reasons[8] == "feature 3 has '1e400', which is not finite"
    assert reasons[9] == "'1' is not of the form index:value"


def test_reading_from_any_row_on(tmp_path, block_size):
    content = "a,y\n1,1\n\nbad\n2,0\n3,1\nworse\n4,0\n"
    source = csv_file(tmp_path / "f.csv", content)
    X, _, bad, blocks = read(source)
    rows = [(int(p), int(n)) for block in blocks for p, n in zip(block.rows.positions, block.rows.lines, strict=True)]
    for i, (position, line) in enumerate(rows[:-1]):
        rest, _, bad_rest, _ = read(source, Place(position, line))
        assert rest.tolist() == X[i + 1 :].tolist()
        assert bad_rest == [entry for entry in bad if entry.line > line]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_batches_hold_every_row_and_bad_line_once(tmp_path, size, block_size):
    lines = ["a,y"] + [("bad" if i % 4 == 1 else f"{i},{i % 2}") for i in range(30)] + ["bad"]
    source = csv_file(tmp_path / "f.csv", "\n".join(lines))
    parts = list(batches(source.blocks(source.start()), size))
    values = [value for part in parts if part.rows is not None for value in part.rows.X[:, 0]]
    assert values == [i for i in range(30) if i % 4 != 1]
    assert [len(part.rows) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert [line.line for part in parts for line in part.bad] == [i + 2 for i in range(30) if i % 4 == 1] + [32]
    for part in parts:
        assert all(line.line <= part.end.line for line in part.bad)
        assert part.end.position == sum(len(line) + 1 for line in lines[: part.end.line]) - (
            part.end.line == len(lines)
        )


def test_another_format_is_told_as_such(tmp_path):
    source = csv_file(tmp_path / "f.csv", "a,y\n" + "1;1\n" * 2000)
    with pytest.raises(BadLineError, match=r"line 2 of .* fields is 1, .* and so are the 1999 lines after it"):
        read(source)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,2\n", {}, "has no column 'y'; its columns are 'a', 'b'"),
        ("a,a,y\n1,2,3\n", {"features": ["a"]}, "has several columns 'a'"),
        ("a,y\n", {"features": ["b"]}, "has no column 'b'"),
        ("a,y\n", {"features": ["y"]}, "features must name columns other than the target 'y'"),
        ("y\n", {}, "features must name columns other"),
        ("", {}, "is empty; the first line of a CSV file holds the names"),
    ],
    ids=["no target", "twice", "no feature", "target", "nothing", "empty"],
)
def test_columns_that_are_not_there(tmp_path, content, options, message):
    with pytest.raises(ValueError, match=message):
        csv_file(tmp_path / "f.csv", content, **options)


def test_no_rows(tmp_path):
    source = csv_file(tmp_path / "f.csv", "a,y\n")
    assert list(source.blocks(source.start())) == []
    assert list(batches(source.blocks(source.start()), 3)) == []


OPEN = ["target", "positive", "features", "format", "delimiter", "n_features", "zero_based", "fill_missing"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("f.csv", {}, "target is needed for csv"),
        ("f.dat", {"target": "y"}, "pass format='csv', 'parquet', 'svmlight' or 'numpy'"),
        ("f.csv", {"format": "arff"}, "format must be one of 'csv', 'svmlight', 'parquet', 'numpy', got 'arff'"),
        ("f.svm", {"target": "y"}, "target='y' is for columns with names"),
        ("f.svm", {"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ("f.svm", {"positive": "a"}, "positive must be a finite number, got 'a'"),
        ("f.csv", {"target": "y", "features": "a"}, r"use features=\['a'\]"),
        ("f.csv", {"target": "y", "delimiter": ",,"}, "delimiter must be one character"),
        ("f.csv", {"target": "y", "positive": float("nan")}, "positive must be a finite number or a text"),
        ("f.csv", {"target": "y", "fill_missing": "0"}, "fill_missing must be a finite number or None, got '0'"),
    ],
)
def test_arguments_that_do_not_fit(tmp_path, name, options, message):
    (tmp_path / name).write_text("a,y\n1,1\n")
    with pytest.raises(ValueError, match=message):
        open_rows(str(tmp_path / name), *(options.get(key) for key in OPEN))


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        open_rows(str(tmp_path / "f.csv"), *[None] * len(OPEN))


tokens = st.sampled_from(
    ["0", "1", "-1", "2.5", " 3 ", "1e400", "inf", "", "NA", "x", '"4"', '"a,b"', '"a ""b"""', "9" * 30]
)


def naive_row(line):
    """The row of a line a,b,y by the standard library; None if it is bad."""
    fields = next(csv.reader([line]))
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        return None
    good = len(fields) == 3 and np.isfinite(numbers).all() and numbers[2] in (1, 0, -1)
    return (*numbers[:2], int(numbers[2] == 1)) if good else None


@given(st.lists(st.lists(tokens, min_size=1, max_size=4).map(",".join), max_size=12), st.sampled_from([1, 9, 4096]))
@settings(max_examples=200)
def test_csv_as_the_standard_library_reads_it(folder, lines, size):
    source = csv_file(folder / "f.csv", "\n".join(["a,b,y", *lines]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_BLOCK", size)
        blocks = list(source.blocks(source.start()))
    rows = [(*x, y) for block in blocks for x, y in zip(block.rows.X.tolist(), block.rows.y.tolist(), strict=True)]
    expected = [naive_row(line) for line in lines if line]
    assert rows == [row for row in expected if row is not None]
    numbers = [i + 2 for i, line in enumerate(lines) if line and naive_row(line) is None]
    assert [bad.line for block in blocks for bad in block.bad] == numbers


@given(
    st.lists(st.one_of(st.binary(max_size=20), st.text(':0123456789.e-#" ,1', max_size=20).map(str.encode)), max_size=8)
)
@settings(max_examples=300)
def test_any_bytes_are_rows_or_bad_lines(folder, lines):
    content = b"\n".join(lines)
    for source in (csv_file(folder / "f.csv", b"a,b,y\n" + content), svmlight_file(folder / "f.svm", content)):
        blocks = list(source.blocks(source.start()))
        n_rows, n_bad = sum(len(block.rows) for block in blocks), sum(len(block.bad) for block in blocks)
        assert n_rows + n_bad <= content.count(b"\n") + 1
        assert not blocks or blocks[-1].end.position == source.size
        assert all(np.isfinite(getattr(block.rows.X, "data", block.rows.X)).all() for block in blocks)


def svmlight_file(path, content):
    path.write_bytes(content)
    return SvmlightFile(str(path), LABELS, 5, False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lines")
