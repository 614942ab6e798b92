"""Which line is which: numbers after a file has grown, bad lines in great number, marks and line ends."""

import numpy as np
import pytest

from toprank.files import text
from toprank.files.open import open_rows
from toprank.files.rows import BadLine, Block, Place, Rows, batches
from toprank.online import CBR
from toprank.streams import BadLineError, stream


def source_of(path, **options):
    names = ["target", "positive", "features", "format", "delimiter", "n_features", "zero_based", "fill_missing"]
    return open_rows(str(path), **dict.fromkeys(names) | options)


@pytest.mark.parametrize(
    ("name", "content", "more", "line"),
    [
        ("f.csv", "x,y\n1,1\n2,0", "\n3,1\noops\n", 5),
        ("f.csv", "x,y\n1,1\n2,0\n", "3,1\noops\n", 5),
        ("f.csv", "x,y\r\n1,1\r\n2,0", "\r\n3,1\r\noops\r\n", 5),
        ("f.csv", "x,y\r\n1,1\r\n2,0\r", "\n3,1\r\noops\r\n", 5),
        ("f.csv", "x,y", "\n3,1\noops\n", 3),
        ("f.svm", "1 1:1\n0 1:2", "\n1 1:3\noops\n", 4),
        ("f.svm", "\ufeff1 1:1\n0 1:2", "\n1 1:3\noops\n", 4),
    ],
    ids=["csv", "whole lines", "crlf", "cr of crlf", "header only", "svmlight", "svmlight with a mark"],
)
@pytest.mark.filterwarnings("ignore:.* has no rows")
def test_numbers_of_lines_in_a_file_that_has_grown(tmp_path, name, content, more, line):
    path = tmp_path / name
    path.write_bytes(content.encode())
    options = {"checkpoint": tmp_path / "run"} | ({"target": "y"} if name == "f.csv" else {"n_features": 1})
    stream(path, CBR(), **options)
    path.write_bytes((content + more).encode())
    with pytest.raises(BadLineError, match=r"oops|fields") as caught:
        stream(path, CBR(), **options)
    assert caught.value.line == line


def test_many_bad_lines_in_the_middle_are_skipped(tmp_path):
    path = tmp_path / "f.csv"
    rows = [f"{i},{i % 2}\n" for i in range(10)]
    path.write_text("".join(["x,y\n", *rows]))
    options = {"target": "y", "on_bad_line": "skip", "batch": 10}
    stream(path, CBR(), **options, checkpoint=tmp_path / "run")
    path.write_text("".join(["x,y\n", *rows, *["bad\n"] * 1500]))
    whole = stream(path, CBR(), **options)
    resumed = stream(path, CBR(), **options, checkpoint=tmp_path / "run")
    assert (resumed.resumed_at, resumed.n_rows, resumed.n_bad_lines) == (10, 10, 1500)
    assert resumed.bad_lines == whole.bad_lines
    np.testing.assert_array_equal(resumed.model.coef_, whole.model.coef_)


def test_a_block_of_bad_lines_in_the_middle_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", 4096)
    path = tmp_path / "f.csv"
    path.write_text("x,y\n1,1\n2,0\n" + "b\n" * 8000 + "3,1\n")
    result = stream(path, CBR(), target="y", on_bad_line="skip")
    assert (result.n_rows, result.n_bad_lines) == (3, 8000)


class Counted(BadLine):
    """Counts how often its number is looked at."""

    looks = 0

    @property
    def line(self):
        Counted.looks += 1
        return self[0]


def test_every_bad_line_is_looked_at_a_fixed_number_of_times():
    n = 500
    numbers = np.arange(1, 2 * n, 2)
    rows = Rows(np.zeros((n, 1)), np.zeros(n, np.int64), numbers, numbers, (numbers > 1).astype(np.int64))
    block = Block(rows, [Counted(number, "bad") for number in range(2, 2 * n + 1, 2)], n, Place(2 * n, 2 * n))
    Counted.looks = 0
    parts = list(batches(iter([block]), 1))
    assert Counted.looks <= 2 * n
    assert [len(part.bad) for part in parts] == [part.n_bad for part in parts] == [0, *[1] * n]


def test_svmlight_after_a_byte_order_mark(tmp_path):
    path = tmp_path / "f.svm"
    path.write_bytes(b"\xef\xbb\xbf1 1:2\n0 2:3\n")
    source = source_of(path)
    (block,) = source.blocks(source.start())
    assert block.bad == []
    assert block.rows.X.toarray().tolist() == [[2, 0], [0, 3]]
    assert (block.rows.lines.tolist(), block.rows.positions.tolist()) == ([1, 2], [9, 15])


def test_lines_that_end_as_on_an_old_mac(tmp_path):
    path = tmp_path / "f.csv"
    path.write_bytes(b"x,y\r1,1\r2,0\r")
    with pytest.raises(ValueError, match=r"first line of .*f.csv' is no line of names .* must end with \\n or \\r\\n"):
        source_of(path, target="y")


def test_the_order_of_indices_is_told_though_none_is_known_to_be_too_large(tmp_path):
    path = tmp_path / "f.svm"
    path.write_text("1 1:1\n0 3:1 2:1\n0 5:1 5:2\n0 4:x\n")
    source = source_of(path)
    (block,) = source.blocks(source.start())
    assert source.n_features == 1
    assert [line.reason.partition(";")[0] for line in block.bad] == [
        "'2:1' does not have a larger index than the one before",
        "'5:2' does not have a larger index than the one before",
        "feature 4 has 'x', which is not a number",
    ]
    (block,) = source_of(path, n_features=2).blocks(source.start())
    assert [line.line for line in block.bad] == [2, 3, 4]


def test_a_column_too_many_is_told_once_for_a_row(tmp_path):
    path = tmp_path / "f.svm"
    path.write_text("1 1:1 3:0.12345678901234567890123 4:1\n0 1:2 2:3\n")
    source = source_of(path, n_features=2)
    (block,) = source.blocks(source.start())
    assert block.rows.X.toarray().tolist() == [[2, 3]]
    assert block.bad[0].reason.startswith("'3:0.12345678901234567890123' has the index 3, and there are 2 features")


def test_svmlight_without_a_value(tmp_path):
    path = tmp_path / "f.svm"
    path.write_text("1 1:nan\n")
    source = source_of(path, n_features=2)
    assert next(source.blocks(source.start())).bad == [(1, "feature 1 has no value; correct it, or leave the pair out")]
