"""Whatever the files and options are: one sentence, an exit code, and no part of an output file.

TOPRANK_FUZZ_EXAMPLES sets how many examples each test tries.
"""

import csv
import io
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.support import files_in, run

few = settings(
    max_examples=int(os.environ.get("TOPRANK_FUZZ_EXAMPLES", "15")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

fields = st.one_of(
    st.sampled_from(["", "1", "0", "-1", "2.5", "1e400", "1e300", "-1e200", "inf", "NaN", "NA", "null", "true", "yes"]),
    st.sampled_from(["DE", " 7 ", "1,5", 'a"b', "a\nb", "\x00", "é", "=cmd()", "2026-01-02", "9" * 40]),
    st.floats().map(str),
    st.text(max_size=5),
)
often = st.sampled_from
numbers = st.one_of(st.integers(-5, 5).map(str), st.floats(-1e3, 1e3).map(str), often(["", "NA", " 7 ", "NaN"]))
kinds = often(
    [numbers, numbers, often(["DE", "FR", "", "null", 'a"b', "a\nb", "1,5"]), often(["true", "False", ""]), fields]
)
labels = often([*"000111", ""])


@st.composite
def odd_tables(draw):
    """CSV as bytes: mostly regular, with some oddity."""
    others = draw(st.lists(often(["a", "b", "c", "id", "", "é", 'q"', "x,y"]), min_size=1, max_size=4))
    header = [*(others if draw(st.integers(0, 9)) == 0 else dict.fromkeys(others)), "y"]
    row = st.tuples(*(draw(kinds) for _ in header[1:]), draw(often([labels, labels, labels, fields])))
    rows = draw(st.lists(row, min_size=draw(often([0, 10, 30])), max_size=40))
    if draw(st.integers(0, 4)) == 0:
        rows.append(draw(st.lists(fields, max_size=len(header) + 2)))
    stream = io.StringIO()
    writer = csv.writer(
        stream,
        delimiter=draw(often(",;\t|")),
        lineterminator=draw(often(["\n", "\n", "\n", "\r\n", "\r\n", "\n\n", "\r"])),
        quoting=draw(often([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )
    writer.writerow(header)
    writer.writerows(rows)
    content = (draw(often(["", "", "", "", "\ufeff", "\n"])) + stream.getvalue()).encode("utf-8", "surrogatepass")
    return content[: len(content) - draw(often([0, 0, 0, 0, 1, 2, 3]))]


def check(result, folder, before, written):
    """No partial file: what is there was there before, or is the whole output of a success."""
    assert result.exit_code in (0, 1, 2), result.output
    expected = sorted([*before, *([written] if result.exit_code == 0 else [])])
    assert files_in(folder) == expected
    if result.exit_code == 1:
        lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 1
        assert lines[0].startswith("error: ")


def fit_and_score(content, ending, model, options=()):
    """Use the content as a table to fit to, and as one to score."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / f"data{ending}"
        data.write_bytes(content)
        target = () if ending == ".svm" else ("--target", "y")
        result = run("fit", data, *target, "--model", Path(folder) / "m", *options)
        check(result, folder, [data.name], "m")
        if result.exit_code == 0:
            again = run("score", data, "--model", Path(folder) / "m", "--output", Path(folder) / "out.csv")
            check(again, folder, [data.name, "m"], "out.csv")
            assert again.exit_code == 0, again.output  # what a model was fitted to it can score
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / f"data{ending}"
        data.write_bytes(content)
        check(
            run("score", data, "--model", model, "--output", Path(folder) / "out.csv"), folder, [data.name], "out.csv"
        )
        there = files_in(folder)  # scores do not need the labels, which may be what is damaged
        evaluated = run("evaluate", data, "--model", model, "--json")
        check(evaluated, folder, there, data.name) if evaluated.exit_code else None


@few
@given(content=odd_tables(), positive=st.sampled_from([(), ("--positive", "1"), ("--positive", "yes")]))
def test_odd_csv(fitted, content, positive):
    fit_and_score(content, ".csv", fitted / "model.toprank", positive)


@few
@given(content=st.binary(max_size=300), ending=st.sampled_from([".csv", ".parquet", ".npy", ".npz", ".svm"]))
def test_arbitrary_bytes(fitted, content, ending):
    fit_and_score(content, ending, fitted / "model.toprank")


def _as_npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.fixture(scope="module")
def contents(fitted):
    """A good file of each format."""
    import polars as pl

    table = pl.read_csv(fitted / "train.csv").head(60).with_columns(y=(pl.col("fraud") == "yes").cast(pl.Int8))
    parquet, npz = io.BytesIO(), io.BytesIO()
    table.write_parquet(parquet)
    numbers = table.select("amount", "y").to_numpy()
    np.savez(npz, X=numbers[:, :1], y=numbers[:, 1])
    svm = "\n".join(f"{int(y)} 1:{x}" for x, y in numbers)
    return {
        ".csv": table.write_csv().encode(),
        ".parquet": parquet.getvalue(),
        ".npy": _as_npy(numbers),
        ".npz": npz.getvalue(),
        ".svm": svm.encode(),
    }


@few
@given(data=st.data(), ending=st.sampled_from([".csv", ".parquet", ".npy", ".npz", ".svm"]))
def test_damaged_files(fitted, contents, data, ending):
    content = bytearray(contents[ending])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    fit_and_score(bytes(content[:cut] if data.draw(st.booleans()) else content), ending, fitted / "model.toprank")


option_values = st.one_of(
    st.sampled_from(["", "0", "-1", "1", "0.5", "2", "1e9", "nan", "inf", "a", "fraud", "amount", "--json", "TopPush"]),
    st.text(max_size=6),
)
option_names = st.sampled_from(
    [
        *("--target", "--positive", "--id", "--ignore", "--categorical", "--method", "--tau", "--k", "--alpha"),
        *("--kernel", "--surrogate", "--max-fpr", "--confidence", "--holdout", "--seed", "--jobs", "--format"),
        *("--delimiter", "--wrong"),
    ]
)


@few
@given(options=st.lists(st.tuples(option_names, option_values), min_size=1, max_size=3))
def test_odd_options(fitted, contents, options):
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        data.write_bytes(contents[".csv"])
        flat = [part.replace("\x00", "") for option in options for part in option]
        result = run("fit", data, "--target", "fraud", "--positive", "yes", "--model", Path(folder) / "m", *flat)
        assert result.exit_code in (0, 1, 2), result.output
        assert files_in(folder) == (
            ["data.csv", "m"] if result.exit_code == 0 and "--help" not in flat else ["data.csv"]
        )


@few
@given(content=st.binary(max_size=200), cut=st.integers(0, 5000))
def test_odd_models(fitted, content, cut):
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate((content, (fitted / "model.toprank").read_bytes()[:cut] + content)):
            path = Path(folder) / f"m{number}"
            path.write_bytes(model)
            for command in (("info", path), ("score", fitted / "new.csv", "-m", path, "-o", Path(folder) / "out.csv")):
                result = run(*command)
                assert result.exit_code == 1, result.output
                assert result.stderr.startswith("error: ")
        assert files_in(folder) == ["m0", "m1"]
