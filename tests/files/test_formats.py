"""The same table in several formats."""

import zipfile

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file

from toprank.files import TableError, open_table
from toprank.files.source import NUMBER, TEXT


@pytest.fixture
def frame():
    return pl.DataFrame(
        {
            "amount": [1.5, None, -3.0, 1e9],
            "count": [1, 2, 3, 4],
            "country": ["DE", None, "FR", "DE"],
            "abroad": [True, False, None, True],
        }
    )


def written(frame, folder, ending):
    path = folder / f"data{ending}"
    if ending == ".csv":
        frame.write_csv(path)
    elif ending == ".parquet":
        frame.write_parquet(path)
    else:
        amounts = frame.select("amount", "count").cast(pl.Float64).to_numpy()
        texts = {name: np.array(frame[name].cast(pl.String).fill_null("").to_list()) for name in ("country", "abroad")}
        saver = np.savez if ending == ".npz" else np.savez_compressed
        saver(path.with_suffix(".npz"), amount=amounts[:, 0], count=amounts[:, 1], **texts)
        path = path.with_suffix(".npz")
    return str(path)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ".compressed"])
def test_all_formats_give_the_same_rows(tmp_path, frame, ending):
    source = open_table(written(frame, tmp_path, ending))
    assert sorted(source.names) == sorted(frame.columns)
    kinds = source.kinds()
    assert kinds == {"amount": NUMBER, "count": NUMBER, "country": TEXT, "abroad": TEXT}
    (batch,) = source.batches({name: kinds[name] for name in frame.columns})
    np.testing.assert_array_equal(batch.frame["amount"].to_numpy(), [1.5, np.nan, -3.0, 1e9])
    assert batch.frame["count"].to_list() == [1.0, 2.0, 3.0, 4.0]
    assert batch.frame["country"].to_list() == ["DE", None, "FR", "DE"]
    assert batch.frame["abroad"].to_list() == ["true", "false", None, "true"]
    assert (batch.first_row, batch.position) == (0, source.size if ending != ".csv" else batch.position)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<f2", "<i8", "|u1"])
def test_npy_in_parts(tmp_path, monkeypatch, order, dtype):
    monkeypatch.setattr("toprank.files.numpy_file.BLOCK_VALUES", 9)
    array = np.asarray(np.arange(30).reshape(10, 3), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", array)
    source = open_table(str(tmp_path / "a.npy"))
    batches = list(source.batches({"2": NUMBER, "0": NUMBER}))
    assert len(batches) == 4
    np.testing.assert_array_equal(np.vstack([batch.frame.to_numpy() for batch in batches]), array[:, [2, 0]])


def test_structured_npy_has_the_names_of_its_fields(tmp_path):
    np.save(tmp_path / "a.npy", np.array([(1.5, b"x"), (2.5, b"y")], dtype=[("amount", "f8"), ("kind", "S3")]))
    source = open_table(str(tmp_path / "a.npy"))
    assert source.kinds() == {"amount": NUMBER, "kind": TEXT}
    (batch,) = source.batches(source.kinds())
    assert batch.frame.rows() == [(1.5, "x"), (2.5, "y")]


def test_numpy_files_that_are_no_tables(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    np.savez(tmp_path / "lengths.npz", a=np.zeros(2), b=np.zeros(3))
    np.savez(tmp_path / "empty.npz")
    for name, message in [("objects.npy", "objects"), ("cube.npy", "no table"), ("lengths.npz", "a: 2, b: 3"),
                          ("empty.npz", "there is none")]:  # fmt: skip
        with pytest.raises(TableError, match=message):
            open_table(str(tmp_path / name))


def test_truncated_npy(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((100, 2)))
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content[:-5])
    with pytest.raises(TableError, match=r"truncated or altered: an array of shape \(100, 2\).* 1728 bytes of 1723"):
        open_table(str(tmp_path / "a.npy"))


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((2, 10**12), "<f8", "1000000000000 columns, and the limit is 1000000; use svmlight"),
        ((10**12, 2), "<f8", "needs 16000000000128 bytes of 128"),
        ((10**12,), "<f8", "needs 8000000000128 bytes of 128"),
        ((0, 10**12), "<f8", "1000000000000 columns"),
        ((10**12, 0), "<f8", "no table"),
        ((10**12,), "<U0", "no table"),
        ((-1, 2), "<f8", "no table"),
        ((1,), "<U400000000", "needs 1600000128 bytes of 128"),
    ],
)
def test_a_small_npy_that_claims_to_be_large(shape, dtype, message, tmp_path):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    (tmp_path / "a.npy").write_bytes(content)
    assert len(content) == 128
    with pytest.raises(TableError, match=message):
        open_table(str(tmp_path / "a.npy"))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(TableError, match=message):
        open_table(str(tmp_path / "a.npz"))


def test_an_archive_that_unpacks_to_much(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((50_000, 4)), y=np.zeros(50_000))
    assert open_table(str(tmp_path / "a.npz")).size == 50_000  # what is not large may be all zeros
    monkeypatch.setattr("toprank.files.numpy_file._LARGE", 1_000_000)
    size = (tmp_path / "a.npz").stat().st_size
    with pytest.raises(TableError, match=f"its {size} bytes unpack to 2000256, and the limit is 1000000"):
        open_table(str(tmp_path / "a.npz"))


def test_an_archive_of_many_arrays_is_opened_once(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", **{f"x{i}": np.arange(3.0) for i in range(50)})
    opened = []
    monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", counted(zipfile.ZipFile._RealGetContents, opened))
    source = open_table(str(tmp_path / "a.npz"))
    assert len(opened) == 1  # each time, all names are read
    (batch,) = source.batches({"x7": NUMBER})
    assert len(batch.frame) == 3


def counted(function, calls):
    def counting(*arguments):
        calls.append(1)
        return function(*arguments)

    return counting


def test_a_large_index_in_a_small_svmlight_file(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:0.5 200000000:1\n0 2:1\n")
    with pytest.raises(ValueError, match=r"has the index 200000000 and 3 entries.*the limit is 16777216 features"):
        list(open_table(str(path)).batches())
    (batch,) = open_table(str(path)).batches(n_features=200_000_000)  # the rows themselves are small
    assert (batch.X.shape, batch.X.nnz) == ((2, 200_000_000), 3)


def test_parquet_types(tmp_path, monkeypatch):
    monkeypatch.setattr("toprank.files.parquet_file.BLOCK_VALUES", 4)
    frame = pl.DataFrame({"when": ["2026-01-01"] * 5, "list": [[1]] * 5, "kind": list("abcab"), "x": range(5)})
    frame = frame.with_columns(pl.col("when").str.to_date(), pl.col("kind").cast(pl.Categorical))
    frame.write_parquet(tmp_path / "a.pq")
    source = open_table(str(tmp_path / "a.pq"))
    kinds = source.kinds()
    assert (kinds["when"], kinds["kind"], kinds["x"]) == ("date", TEXT, NUMBER)
    assert kinds["list"] not in (NUMBER, TEXT, "date")
    batches = list(source.batches({"kind": TEXT, "x": NUMBER}))
    assert [len(batch.frame) for batch in batches] == [2, 2, 1]
    assert pl.concat([batch.frame for batch in batches]).rows() == [*zip("abcab", map(float, range(5)), strict=True)]
    strays = [batch.strays["kind"].told() for batch in source.batches({"kind": NUMBER})]
    assert strays == ["'a' (2, first in row 1), 'b' (1), 'c' (1)", "'b' (1, in row 5)"]


@pytest.mark.parametrize("zero_based", [False, True])
def test_svmlight(tmp_path, zero_based):
    X, y = np.array([[0.0, 2.5, 0.0], [1.0, 0.0, -3.0]]), np.array([1, -1])
    path = str(tmp_path / "a.svm")
    dump_svmlight_file(X, y, path, zero_based=zero_based)
    (batch,) = open_table(path, zero_based=zero_based).batches()
    np.testing.assert_array_equal(batch.X.toarray(), X)
    assert batch.y.tolist() == [1, 0]
    with pytest.raises(TableError, match="line 1"):
        list(open_table(path, zero_based=zero_based).batches(n_features=1))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("absent.csv", {}, "there is no file"),
        (".", {}, "not a plain file"),
        ("a.xyz", {}, "does not follow from its name"),
        ("a.xyz", {"format": "excel"}, "must be one of"),
        ("a.npy", {"delimiter": ","}, "a delimiter is for CSV"),
    ],
)
def test_files_that_cannot_be_opened(tmp_path, name, options, message):
    for file in ("a.xyz", "a.npy"):
        (tmp_path / file).write_bytes(b"a,b\n1,2\n")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        open_table(str(tmp_path / name), **options)
