"""Damaged and unusual files: an error of a table, whatever the reader below raises."""

import csv
import datetime
import io

import numpy as np
import polars as pl
import pytest

from cli.support import transactions
from toprank.files import TableError, open_table
from toprank.files.csv_file import CSVTable
from toprank.files.parquet_file import ParquetTable
from toprank.files.source import NUMBER, TEXT, VERBATIM


def read(table):
    """All rows of a table with all columns that can be used."""
    kinds = {name: kind for name, kind in table.kinds().items() if kind in (NUMBER, TEXT)}
    return pl.concat([batch.frame for batch in table.batches(kinds)])


def test_damaged_parquet(tmp_path):
    """Most damage is an error of polars; some is a panic, which is no Exception."""
    stream = io.BytesIO()
    transactions(60).write_parquet(stream)
    content, random = stream.getvalue(), np.random.default_rng(0)
    footer = len(content) - int.from_bytes(content[-8:-4], "little") - 8
    path, n_errors = tmp_path / "d.parquet", 0
    for _ in range(250):
        damaged = bytearray(content)
        for place in random.integers(random.choice([0, footer]), len(content), random.integers(1, 4)):
            damaged[place] = random.integers(256)
        path.write_bytes(damaged)
        try:
            table = ParquetTable(str(path))
            assert len(read(table)) == table.size
        except TableError:
            n_errors += 1
    assert n_errors > 50


def test_a_panic_is_an_error_of_the_table(tmp_path, monkeypatch):
    def panic(*args, **kwargs):
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    transactions(60).write_parquet(tmp_path / "d.parquet")
    table = ParquetTable(str(tmp_path / "d.parquet"))
    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(TableError, match=r"cannot be read as Parquet \(it is damaged\); give a Parquet file"):
        read(table)


@pytest.mark.parametrize(
    "values",
    [
        [b"\xff", b"a", None],
        [[1], [2, 3], None],
        [{"a": 1}, {"a": 2}, None],
        [datetime.time(1), None, None],
        [datetime.timedelta(1), None, None],
    ],
    ids=["binary", "list", "struct", "time", "duration"],
)
@pytest.mark.parametrize("kind", [VERBATIM, TEXT, NUMBER])
def test_columns_of_any_type_are_read_or_refused(tmp_path, values, kind):
    pl.DataFrame({"a": values}).write_parquet(tmp_path / "d.parquet")
    table = ParquetTable(str(tmp_path / "d.parquet"))
    try:
        (batch,) = table.batches({"a": kind})
    except TableError:
        return
    assert len(batch.frame) == 3


def test_an_archive_with_places_outside_of_it(tmp_path):
    """The archive asks for a place before the file, which is an error of the operating system."""
    stream = io.BytesIO()
    np.savez(stream, X=np.ones((5, 2)), y=np.ones(5))
    content = bytearray(stream.getvalue())
    directory = content.index(b"PK\x05\x06") + 16
    content[directory : directory + 4] = b"\xff\xff\xff\x7f"
    (tmp_path / "d.npz").write_bytes(content)
    with pytest.raises(TableError, match=r"write it again by numpy\.save"):
        open_table(str(tmp_path / "d.npz"))


def test_a_bad_line_of_svmlight_has_a_remedy(tmp_path):
    (tmp_path / "d.svm").write_text("1 1:2\n0 x\n")
    with pytest.raises(TableError, match=r"line 2 of .* is bad: .*; correct the line"):
        list(open_table(str(tmp_path / "d.svm")).batches(1))


@pytest.mark.parametrize("field", ["x", '"x"', '"', 'x"', '"x"y', '"x,"y', '"x"",y', 'x,"x"', "x,y", "x,,", "x\n\n,y"])
@pytest.mark.parametrize("place", [0, 3, 6])
@pytest.mark.parametrize("other", ["no", "", '""'])
def test_no_row_is_lost_or_misread(tmp_path, field, place, other):
    """Polars loses rows after a quote out of place, and takes too long lines if not all columns are read."""
    rows = [f"T{i},{i},a {i},no" for i in range(7)]
    rows[place] = f"T{place},{place},{field},no"
    rows[1] = f"T1,1,a 1,{other}"
    path = tmp_path / "d.csv"
    path.write_text("\n".join(["id,a,note,y", *rows]))
    expected = [*csv.reader(io.StringIO("\n".join(rows), newline=""))]
    for name, kind in {"id": VERBATIM, "a": NUMBER, "note": VERBATIM, "y": VERBATIM}.items():
        table = CSVTable(str(path))
        if [len(row) for row in expected] != [4] * 7:
            with pytest.raises(TableError, match=r"line \d of|check their quotes"):
                list(table.batches({name: kind}))
            continue
        try:
            values = pl.concat([batch.frame for batch in table.batches({name: kind})])[name]
        except TableError:
            assert field in ('"x"y', '"x,"y')  # what goes on after its quotes may be refused
            continue
        assert len(values) == 7
        if '"x' not in field and kind is VERBATIM:
            assert [value or "" for value in values] == [row[table.names.index(name)] for row in expected]


def test_short_and_long_lines_do_not_make_up_for_each_other(tmp_path):
    (tmp_path / "d.csv").write_text("a,b,c\n1,2,3\n1,2\n1,2,3,4\n")
    with pytest.raises(TableError, match=r"line 3 of .* has 2 fields"):
        list(CSVTable(str(tmp_path / "d.csv")).batches({"a": NUMBER}))


def test_fields_of_any_length(tmp_path):
    """The csv module has a limit of its own, and is asked where a row is wrong."""
    long = "x" * 200_000
    path = tmp_path / "d.csv"
    path.write_text(f'a,"{long}",b\n1,"{long},""",2\n\n3,"{long}\n",oops\n')
    table = CSVTable(str(path))
    assert table.names == ["a", long, "b"]
    assert table.kinds() == {"a": NUMBER, long: TEXT, "b": TEXT}
    (batch,) = table.batches({"a": NUMBER, long: VERBATIM, "b": TEXT})
    assert batch.frame.rows() == [(1.0, f'{long},"', "2"), (3.0, f"{long}\n", "oops")]
    (batch,) = table.batches({"b": NUMBER})
    assert batch.strays["b"].told() == "'oops' (1, in line 4)"
    path.write_text(f'a,b\n1,"{long}"\n2,"{long}",3\n')
    with pytest.raises(TableError, match=r"line 3 of .* has 3 fields"):
        list(CSVTable(str(path)).batches({"a": NUMBER}))
