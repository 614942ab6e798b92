"""Bad lines in great number: bounded memory, exact counts, and the same whatever the blocks."""

import tracemalloc

import numpy as np
import polars as pl
import pytest

from toprank.files import parquet_file as parquet
from toprank.files import text
from toprank.online import CBR
from toprank.streams import BadLineError, stream

MEGABYTE = 1 << 20
HEAD = {
    "f.csv": "x,y\n" + "1.5,1\n0.5,0\n" * 10,
    "f.svm": "1 1:1.5\n0 1:0.5\n" * 10,
}


def options_of(name):
    return {"n_features": 1} if name.endswith(".svm") else {"target": "y"}


def peak_of(call):
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", HEAD)
@pytest.mark.parametrize("on_bad_line", ["stop", "skip"])
def test_memory_does_not_grow_with_bad_lines(tmp_path, name, on_bad_line):
    path = tmp_path / name
    path.write_text(HEAD[name] + "b\n" * MEGABYTE)

    def run():
        try:
            return stream(path, CBR(), on_bad_line=on_bad_line, **options_of(name))
        except BadLineError as error:
            return error

    result, peak = peak_of(run)
    assert peak < 100 * MEGABYTE
    if on_bad_line == "stop":
        assert result.line == HEAD[name].count("\n") + 1
    else:
        assert (result.n_rows, result.n_bad_lines, len(result.bad_lines)) == (20, MEGABYTE, 100)


@pytest.mark.parametrize("name", HEAD)
def test_the_rest_of_a_block_is_not_read_after_the_line_that_stops(tmp_path, name, monkeypatch):
    path = tmp_path / name
    path.write_text(HEAD[name] + "b\n" * 1000 + HEAD[name])
    parsed = []
    block = text.TextFile._block

    def noted(self, *arguments):
        parsed.append(block(self, *arguments))
        return parsed[-1]

    monkeypatch.setattr(text.TextFile, "_block", noted)
    with pytest.raises(BadLineError):
        stream(path, CBR(), **options_of(name))
    assert [(len(part.rows), part.n_bad) for part in parsed] == [(20, 1)]


def test_rows_of_parquet_in_great_number(tmp_path):
    path = tmp_path / "f.parquet"
    frame = pl.DataFrame({"x": [1.5, 0.5] * 10 + [None] * 200_000 + [2.5], "y": [1, 0] * 100_010 + [1]})
    frame.write_parquet(path)
    result, peak = peak_of(lambda: stream(path, CBR(), target="y", on_bad_line="skip", batch=7))
    assert peak < 30 * MEGABYTE
    assert (result.n_rows, result.n_bad_lines, len(result.bad_lines)) == (21, 200_000, 100)
    with pytest.raises(BadLineError, match="row 21 of"):
        stream(path, CBR(), target="y")


def mixed(name, rng):
    """Rows between few and many bad lines."""
    good, bad = ("1.25,1\n0.5,0\n", "b,\n") if name == "f.csv" else ("1 1:1.25\n0 1:0.5\n", "b\n")
    return "".join(good + bad * int(n) for n in rng.choice([0, 1, 2, 150, 1200], size=40))


@pytest.mark.covering(1)
@pytest.mark.parametrize("name", HEAD)
@pytest.mark.parametrize("block", [5, 64, 1000])
def test_counts_and_examples_do_not_depend_on_blocks(tmp_path, name, block, rng, monkeypatch):
    path = tmp_path / name
    path.write_text(HEAD[name] + mixed(name, rng) + "b\n" * 300)
    options = options_of(name) | {"on_bad_line": "skip", "batch": 7, "window": 10}
    whole = stream(path, CBR(), **options)
    monkeypatch.setattr(text, "_BLOCK", block)
    in_blocks = stream(path, CBR(), **options)
    bad_lines = [
        i + 1 for i, line in enumerate(path.read_text().splitlines()) if line.startswith("b") and "y" not in line
    ]
    for result in (whole, in_blocks):
        assert result.n_bad_lines == len(bad_lines)
        assert [line.line for line in result.bad_lines] == bad_lines[:100]
    np.testing.assert_array_equal(whole.model.coef_, in_blocks.model.coef_)


@pytest.mark.parametrize("block", [100, 4 * MEGABYTE])
def test_another_format_does_not_depend_on_blocks(tmp_path, block, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK", block)
    path = tmp_path / "f.csv"
    options = {"target": "y", "on_bad_line": "skip"}
    path.write_text("x,y\n" + "b\n" * 1000)
    with pytest.raises(BadLineError, match="and so are the 999 lines after it"):
        stream(path, CBR(), **options)
    path.write_text("x,y\n" + "b\n" * 1000 + "1,1\n0,0\n")
    assert stream(path, CBR(), **options).n_bad_lines == 1000
    monkeypatch.setattr(text, "_MUCH_TEXT", 1500)
    with pytest.raises(BadLineError, match=r"line 2 of .* and so are the \d+ lines after it"):
        stream(path, CBR(), **options)


def test_parquet_slices(tmp_path, monkeypatch):
    path = tmp_path / "f.parquet"
    x = [None if i % 3 else float(i) for i in range(100)]
    pl.DataFrame({"x": x, "y": [i % 2 for i in range(100)]}).write_parquet(path)
    options = {"target": "y", "on_bad_line": "skip", "batch": 4}
    whole = stream(path, CBR(), **options)
    monkeypatch.setattr(parquet, "BLOCK_VALUES", 10)
    sliced = stream(path, CBR(), **options)
    assert (whole.n_rows, whole.n_bad_lines, whole.bad_lines) == (
        sliced.n_rows,
        sliced.n_bad_lines,
        sliced.bad_lines,
    )
    assert whole.n_bad_lines == 66
