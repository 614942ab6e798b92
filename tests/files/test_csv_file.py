"""CSV tables: blocks, kinds, and what is said of bad rows."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.files import NotANumberError, TableError
from toprank.files.csv_file import CSVTable
from toprank.files.source import NUMBER, TEXT, VERBATIM, read_all


def table(tmp_path, content, **options):
    path = tmp_path / "data.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return CSVTable(str(path), **options)


def read(source, kinds):
    import polars as pl

    return pl.concat([batch.frame for batch in source.batches(kinds)])


texts = st.text(st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\r"), max_size=8)


@given(
    rows=st.lists(st.tuples(st.integers(-99, 99), texts, texts), min_size=1, max_size=20),
    block=st.integers(1, 60),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_rows_are_those_of_the_csv_module_whatever_the_blocks(
    tmp_path_factory, rows, block, delimiter, quoting, line_end
):
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=line_end)
    writer.writerow(["number", "first", "second"])
    writer.writerows(rows)
    source = table(tmp_path_factory.mktemp("csv"), stream.getvalue(), block=block)
    frame = read(source, {"second": VERBATIM, "number": NUMBER, "first": VERBATIM})
    assert frame.columns == ["second", "number", "first"]
    assert frame["number"].to_list() == [row[0] for row in rows]
    assert [text or "" for text in frame["first"]] == [row[1] for row in rows]
    assert [text or "" for text in frame["second"]] == [row[2] for row in rows]


@pytest.mark.parametrize("block", [5, 16, 1000])
def test_batches_count_rows_and_bytes(tmp_path, block):
    content = "a,b\n" + "".join(f"{i},{i}\n" for i in range(30))
    source = table(tmp_path, content, block=block)
    batches = list(source.batches({"a": NUMBER}))
    assert [batch.first_row for batch in batches] == [0, *np.cumsum([len(b.frame) for b in batches])[:-1].tolist()]
    assert batches[-1].position == source.size == len(content)
    assert read(source, {"a": NUMBER})["a"].to_list() == list(range(30))


def test_missing_words_spaces_and_kinds(tmp_path):
    source = table(
        tmp_path, "x, y ,when,t\n 1.5 ,DE,2026-01-02,true\nNA,na,2026-01-03,\nnull,,2026-02-01,false\n,FR,,NaN\n"
    )
    assert source.names == ["x", "y", "when", "t"]
    assert source.kinds() == {"x": NUMBER, "y": TEXT, "when": "date", "t": TEXT}
    assert source.kinds(as_text=["x"])["x"] == TEXT
    frame = read(source, {"x": NUMBER, "y": TEXT, "t": TEXT})
    np.testing.assert_array_equal(frame["x"].to_numpy(), [1.5, np.nan, np.nan, np.nan])
    assert frame["y"].to_list() == ["DE", None, None, "FR"]
    assert frame["t"].to_list() == ["true", None, "false", None]


def test_a_column_may_have_no_name(tmp_path):
    frame = read(table(tmp_path, ",y\n1,2\n"), {"": NUMBER, "y": NUMBER})
    assert frame.rows() == [(1.0, 2.0)]


def test_identifiers_stay_as_they_are(tmp_path):
    frame = read(table(tmp_path, "id,x\n007,1\n NA,2\n1e3,3\n"), {"id": VERBATIM})
    assert frame["id"].to_list() == ["007", " NA", "1e3"]


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""], ids=["bom", "plain"])
def test_byte_order_mark_and_blank_lines(tmp_path, mark):
    source = table(tmp_path, mark + b"a,b\n1,2\n\n3,4\n   \n\n")
    assert source.names == ["a", "b"]
    assert read(source, {"a": NUMBER, "b": NUMBER}).rows() == [(1.0, 2.0), (3.0, 4.0)]


def test_last_field_may_be_empty(tmp_path):
    assert read(table(tmp_path, "a,b\n1,\n2,\n"), {"a": NUMBER})["a"].to_list() == [1, 2]
    assert read(table(tmp_path, 'a,b\n"1",\n"2",\n'), {"a": NUMBER})["a"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\na,b\n", "starts with an empty line"),
        ("a,b\n", "no rows"),
        ("a,b\n\n\n", "no rows"),
        (b"a,\xff\n1,2\n", "line 1 has other bytes"),
        (b"a,b\n1,2\n3,\xff\n", "line 3 has other bytes"),
        ('a,"b\n1,2\n', "quotes are not closed"),
        ("a,b\n1,2\n3\n", "line 3 of .* has 1 fields, and the line of names has 2"),
        ("a,b\n1,2\n\n3,4,5\n", "line 4 of .* has 3 fields"),
        ('a,b\n"x\ny",2\n3\n', "line 4 of .* has 1 fields"),
        ('a,b\n1,"2\n', "line 2 of .* is no CSV"),
        ("a,b\r1,2\r", "no line of names"),
    ],
)
def test_errors(tmp_path, content, message):
    def read_whole():
        source = table(tmp_path, content)
        return read(source, source.kinds())

    with pytest.raises(TableError, match=message):
        read_whole()


@pytest.mark.parametrize("block", [8, 1000])
def test_what_is_not_a_number_is_named_with_its_line(tmp_path, block):
    source = table(tmp_path, 'a,b,c\n1,"x\ny",1\n\n2,z,oops\nbad,z,4\n', block=block)
    frame, tally = read_all(source, {"c": NUMBER, "a": NUMBER})
    assert frame.fill_nan(None).rows() == [(1, 1), (None, 2), (4, None)]
    assert {name: strays.told() for name, strays in tally.columns().items()} == {
        "c": "'oops' (1, in line 5)",
        "a": "'bad' (1, in line 6)",
    }
    with pytest.raises(NotANumberError, match=r"1 of the 3 values of the column 'c', .* 'oops'") as error:
        tally.refuse_too_many()
    assert error.value.columns == ["c", "a"]


def test_delimiter_must_be_one_character(tmp_path):
    with pytest.raises(TableError, match="one character"):
        table(tmp_path, "a,b\n1,2\n", delimiter="ab")


def test_a_row_without_end_is_refused_not_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("toprank.files.csv_file.LONGEST_ROW", 200)
    source = table(tmp_path, 'a,b\n1,2\n3,"' + "x,y\n" * 1000, block=50)
    with pytest.raises(TableError, match="perhaps a quote is not closed"):
        read(source, {"a": NUMBER})
