"""Compressed files are read as what they hold."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from toprank.datasets import make_imbalanced
from toprank.files import open_table
from toprank.files.content import content_size, ending_of, open_content
from toprank.online import CBR
from toprank.streams import stream

COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def rows(tmp_path):
    """A CSV file, and the same as svmlight."""
    X, y, _ = make_imbalanced(600, n_features=4, positive_share=0.2, separation=2.0, random_state=0)
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d,y", comments="")
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    return tmp_path


def compressed(path, ending):
    target = path.with_name(path.name + ending)
    target.write_bytes(COMPRESS[ending](path.read_bytes()))
    return target


@pytest.mark.parametrize("ending", COMPRESS)
def test_content(tmp_path, ending):
    path = tmp_path / f"ROWS.Csv{ending}"
    path.write_bytes(COMPRESS[ending](b"abcdef"))
    with open_content(str(path)) as content:
        content.seek(2)
        assert content.read() == b"cdef"
    assert (ending_of(str(path)), content_size(str(path))) == (".csv", None)


@pytest.mark.parametrize(("name", "options"), [("rows.csv", {"target": "y"}), ("rows.svm", {})])
@pytest.mark.parametrize("ending", COMPRESS)
def test_streams_go_on_to_the_same_bits(rows, monkeypatch, name, options, ending):
    options = {**options, "batch": 50, "window": 200}
    whole = stream(rows / name, CBR(), **options)
    path = compressed(rows / name, ending)
    options |= {"checkpoint": rows / "run", "every": 100}
    learn = CBR.partial_fit
    with monkeypatch.context() as patch:
        patch.setattr(CBR, "partial_fit", _breaks_at(330, learn))
        with pytest.raises(ArithmeticError):
            stream(path, CBR(), **options)
    again = stream(path, CBR(), **options)
    assert (again.resumed_at, again.n_rows) == (300, 600)
    assert np.array_equal(again.model.coef_, whole.model.coef_)
    assert np.array_equal(again.history["auc"], whole.history["auc"])


def _breaks_at(n_rows, learn):
    def partial_fit(self, X, y, **options):
        learn(self, X, y, **options)
        if self.n_samples_seen_ >= n_rows:
            raise ArithmeticError
        return self

    return partial_fit


def test_another_compressed_file_is_refused(rows):
    path = compressed(rows / "rows.csv", ".gz")
    options = {"target": "y", "checkpoint": rows / "run"}
    stream(path, CBR(), **options)
    lines = (rows / "rows.csv").read_bytes().splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(ValueError, match="another file"):
        stream(path, CBR(), **options)


@pytest.mark.parametrize("name", ["rows.csv", "rows.svm"])
def test_tables(rows, name):
    def content(path):
        table = open_table(str(path))
        batches = table.batches(table.kinds()) if name == "rows.csv" else table.batches()
        return [batch.frame.to_numpy() if name == "rows.csv" else batch.X.toarray() for batch in batches]

    for plain, packed in zip(content(rows / name), content(compressed(rows / name, ".gz")), strict=True):
        assert np.array_equal(plain, packed)


@pytest.mark.parametrize("ending", COMPRESS)
def test_damaged_files(rows, ending):
    path = compressed(rows / "rows.csv", ending)
    packed = path.read_bytes()
    for content in (packed[: len(packed) // 2], b"x,y\n1,0\n", packed[:200] + bytes(100) + packed[300:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"rows.csv\.\w+' cannot be unpacked"):
            stream(path, CBR(), target="y")
        with pytest.raises(ValueError, match=r"rows.csv\.\w+' cannot be unpacked"):
            list(open_table(str(path)).batches({"a": "number"}))


def test_formats_that_are_not_text(tmp_path):
    path = tmp_path / "rows.parquet.gz"
    path.write_bytes(b"")
    for read in (lambda: stream(path, CBR(), target="y"), lambda: open_table(str(path))):
        with pytest.raises(ValueError, match="unpack this parquet file"):
            read()


def test_errors_of_the_system_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError), open_content(str(tmp_path / "none.gz")):
        pass
