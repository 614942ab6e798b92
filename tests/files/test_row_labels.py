"""Labels: which are positive, which are missing, and what cannot be read, in all formats alike."""

import polars as pl
import pytest

from toprank.files.open import open_rows

LABELS = ["fraud", " fraud ", "no", "NA", "nan", "", "Null", "FRAUD"]


def read(path, **options):
    """Labels of the rows, and numbers and reasons of the bad lines."""
    names = ["target", "positive", "features", "format", "delimiter", "n_features", "zero_based", "fill_missing"]
    source = open_rows(str(path), **dict.fromkeys(names) | options)
    blocks = list(source.blocks(source.start()))
    return [y for block in blocks for y in block.rows.y.tolist()], [tuple(bad) for block in blocks for bad in block.bad]


def write(path, labels, dtype=None):
    frame = pl.DataFrame({"x": range(len(labels)), "y": pl.Series(labels, dtype=dtype)})
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path)
    return path


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_labels_of_text(tmp_path, name):
    path = write(tmp_path / name, LABELS)
    header = name == "f.csv"
    y, bad = read(path, target="y", positive="fraud")
    assert y == [1, 1, 0]
    alike = "the label 'FRAUD' is 'fraud' but for capital letters; name it by positive='FRAUD', or write both alike"
    assert bad == [*((4 + i + header, "the label is missing") for i in range(4)), (8 + header, alike)]
    y, bad = read(path, target="y", positive="NA")  # that very text is a label then
    assert y == [0, 0, 0, 1, 0]
    assert [line for line, _ in bad] == [5 + header, 6 + header, 7 + header]


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_labels_of_numbers_in_text(tmp_path, name):
    path = write(tmp_path / name, ["0", "1", "junk", " 1 ", "NA", "-1", "inf"])
    header = name == "f.csv"
    reason = "the label {!r} is none of 1, 0 and -1; name the positive label by positive="
    assert read(path, target="y") == (
        [0, 1, 1, 0],
        [(3 + header, reason.format("junk")), (5 + header, "the label is missing"), (7 + header, reason.format("inf"))],
    )
    y, bad = read(path, target="y", positive=-1)
    assert y == [0, 0, 0, 1]
    assert bad[0][1] == "the label 'junk' is not a number; pass positive= as text if labels are text"


@pytest.mark.parametrize(
    "dtype", [pl.String, pl.Categorical, pl.Enum(["0", "1"])], ids=["String", "Categorical", "Enum"]
)
def test_types_of_labels_in_parquet(tmp_path, dtype):
    path = write(tmp_path / "f.parquet", ["0", "1", None, "1"], dtype)
    assert read(path, target="y") == ([0, 1, 1], [(3, "the label is missing")])
    assert read(path, target="y", positive="1") == ([0, 1, 1], [(3, "the label is missing")])
    assert read(path, target="y", positive=0)[0] == [1, 0, 0]


def test_labels_of_numbers_in_parquet(tmp_path):
    path = write(tmp_path / "f.parquet", [1.0, float("nan"), None, float("inf"), 3.0])
    assert read(path, target="y", positive=3)[0] == [0, 1]
    assert [line for line, _ in read(path, target="y", positive=3)[1]] == [2, 3, 4]
    assert read(path, target="y", positive="3.0") == (
        [0, 0, 1],
        [(2, "the label is missing"), (3, "the label is missing")],
    )
    path = write(tmp_path / "f.parquet", [True, False])
    assert read(path, target="y") == ([1, 0], [])
    path = write(tmp_path / "f.parquet", [[1], [0]])
    with pytest.raises(ValueError, match=r"target 'y' of .* has the type List\(Int64\)"):
        read(path, target="y")


def test_a_path_of_parquet_is_not_a_pattern(tmp_path):
    path = write(tmp_path / "t[1].parquet", [1, 0])
    assert read(path, target="y") == ([1, 0], [])


def test_quotes_in_labels(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text('x,y\n1,"a ""b"""\n2,a "b"\n3,"a b"\n4,"a ""b"\n5,"a ""b"" c"\n6,a ""b""\n')
    y, bad = read(path, target="y", positive='a "b"')
    assert bad == []
    assert y == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["f.csv", "f.svm"])
@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("1.00000000000000000000", 1),
        ("0.99999999999999999999999999", 1),
        ("-1.0000000000000000000000000", 0),
        ("0.00000000000000000000000000", 0),
        ("1.00000000000000100000000000", None),
        ("1.50000000000000000000000000", None),
        ("1e-30", None),
        ("1e-400", 0),
    ],
)
def test_labels_of_more_digits_than_a_double_has(tmp_path, name, label, expected):
    path = tmp_path / name
    path.write_text(f"x,y\n1,{label}\n" if name == "f.csv" else f"{label} 1:1\n")
    options = {"target": "y"} if name == "f.csv" else {"n_features": 1}
    y, bad = read(path, **options)
    assert y == ([] if expected is None else [expected])
    assert len(bad) == (expected is None)
    y, bad = read(path, **options, positive=float(label))
    assert (y, bad) == ([1], [])
    y, bad = read(path, **options, positive=7)
    assert (y, bad) == ([0], [])


def test_positive_numbers_written_with_many_digits(tmp_path):
    path = tmp_path / "f.csv"
    for number in (0.1, 0.3, 2.7, 1e5 / 3, -7e30, 1.1e-40):
        path.write_text(f"x,y\n1,{number:.60f}\n2,{number * (1 + 1e-14):.60f}\n")
        assert read(path, target="y", positive=number) == ([1, 0], [])
