"""Files that are still being written: a line counts when its end is there."""

import bz2
import gzip
import lzma

import numpy as np
import pytest

from toprank.online import CBR
from toprank.streams import stream

TEXTS = {
    "f.csv": "x,y\n" + "".join(f"{i % 7}.{i}25,{i % 2}\n" for i in range(8)),
    "crlf.csv": "y,x\r\n" + "".join(f'{i % 2},"{i % 7}.{i}25"\r\n' for i in range(8)),
    "f.svm": "".join(f"{i % 2} 1:{i}.5 2:{i % 3}25\n" for i in range(8)),
}
COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def options_of(name):
    return {"batch": 3, "window": 4} | ({"n_features": 2} if ".svm" in name else {"target": "y"})


def same(a, b):
    assert (a.n_rows, a.n_positives, a.n_bad_lines) == (b.n_rows, b.n_positives, b.n_bad_lines)
    np.testing.assert_array_equal(a.model.coef_, b.model.coef_)
    for name in a.history:
        np.testing.assert_array_equal(a.history[name], b.history[name])


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.filterwarnings("ignore:.* has no rows", "ignore:none of the .* rows")
def test_a_file_cut_anywhere_goes_on(tmp_path, name):
    """Bytes of the last line, of 14 at most, are not learned from before it ends, nor are they bad."""
    path, content = tmp_path / name, TEXTS[name].encode()
    path.write_bytes(content)
    whole = stream(path, CBR(), **options_of(name))
    header = content.index(b"\n") + 1 if "csv" in name else 0
    for cut in (header, *range(len(content) - 16, len(content) + 1)):
        run = tmp_path / f"run{cut}"
        path.write_bytes(content[:cut])
        first = stream(path, CBR(), **options_of(name), checkpoint=run)
        assert first.n_rows == content[header:cut].count(b"\n")
        assert first.last_line_waits == bool(content[:cut].rsplit(b"\n", 1)[-1].strip())
        path.write_bytes(content)
        grown = stream(path, CBR(), **options_of(name), checkpoint=run)
        assert (grown.resumed_at, grown.last_line_waits) == (first.n_rows, False)
        assert grown.n_rows == whole.n_rows
        # not the metrics: the first run ends with a shorter batch
        np.testing.assert_array_equal(grown.model.coef_, whole.model.coef_)


@pytest.mark.filterwarnings("ignore:.* has no rows")
def test_names_without_their_end_are_no_names_yet(tmp_path):
    path, run = tmp_path / "f.csv", tmp_path / "run"
    path.write_text("y,x")
    stream(path, CBR(), target="y", checkpoint=run)
    path.write_text("y,x1,x2\n1,2,3\n0,4,5\n")
    result = stream(path, CBR(), target="y", checkpoint=run)
    assert (result.n_rows, result.model.n_features_in_) == (2, 2)


@pytest.mark.parametrize("name", TEXTS)
def test_the_last_line_of_a_complete_file_needs_no_end(tmp_path, name, caplog):
    path, run = tmp_path / name, tmp_path / "run"
    path.write_bytes(TEXTS[name].rstrip().encode())
    taken = [
        stream(path, CBR(), **options_of(name)),
        stream(path, CBR(), **options_of(name), grows=False, checkpoint=run),
        stream(path, CBR(), **options_of(name), grows=False, checkpoint=run),  # nothing is new
    ]
    assert caplog.text == ""
    assert [(result.n_rows, result.last_line_waits) for result in taken] == [(8, False)] * 3
    left = stream(path, CBR(), **options_of(name), checkpoint=tmp_path / "run2")
    assert (left.n_rows, left.last_line_waits) == (7, True)
    assert "has no end, so it may be cut off, and is left for the next run" in caplog.text
    assert stream(path, CBR(), **options_of(name), grows=True).n_rows == 7
    path.write_bytes(TEXTS[name].encode())
    same(stream(path, CBR(), **options_of(name), checkpoint=tmp_path / "run2"), taken[0])


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("how", ["appended", "anew"])
def test_compressed_files_that_grow(tmp_path, name, ending, how):
    path, run, content = tmp_path / (name + ending), tmp_path / "run", TEXTS[name].encode()
    pack = COMPRESS[ending]
    path.write_bytes(pack(content))
    whole = stream(path, CBR(), **options_of(name))
    cut = len(content) - 20
    path.write_bytes(pack(content[:cut]))
    first = stream(path, CBR(), **options_of(name), checkpoint=run)
    assert first.n_rows < 8
    path.write_bytes(pack(content[:cut]) + pack(content[cut:]) if how == "appended" else pack(content))
    grown = stream(path, CBR(), **options_of(name), checkpoint=run)
    assert (grown.resumed_at, grown.n_rows) == (first.n_rows, 8)
    np.testing.assert_array_equal(grown.model.coef_, whole.model.coef_)
    # and the plain file is the same text
    plain = tmp_path / name
    plain.write_bytes(content)
    assert stream(plain, CBR(), **options_of(name), checkpoint=run).resumed_at == 8
    path.write_bytes(pack(content.replace(b"25", b"26")))
    with pytest.raises(ValueError, match="was changed in the part that was read"):
        stream(path, CBR(), **options_of(name), checkpoint=run)
