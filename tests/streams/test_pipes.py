"""Rows from standard input and from named pipes, which are read once."""

import gzip
import io
import os
import sys
import threading

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from cli.support import run
from toprank.datasets import make_imbalanced
from toprank.files import text
from toprank.online import CBR
from toprank.persistence import load
from toprank.streams import BadLineError, stream

OPTIONS = {"target": "y", "batch": 50, "window": 100}


@pytest.fixture
def rows(tmp_path):
    """A CSV file of some blocks, each as large as a pipe gives at once."""
    X, y, _ = make_imbalanced(3000, n_features=4, positive_share=0.3, separation=2.0, random_state=0)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,y", comments="")
    return path


class Piped:
    """A named pipe that a thread writes to, in parts."""

    def __init__(self, path, written):
        os.mkfifo(path)
        self.path = path
        self.thread = threading.Thread(target=self._write, args=(written,))

    def _write(self, written):
        try:
            with open(self.path, "wb", buffering=0) as pipe:
                for start in range(0, len(written), 30_000):
                    pipe.write(written[start : start + 30_000])
        except BrokenPipeError:
            pass

    def __enter__(self):
        self.thread.start()
        return self.path

    def __exit__(self, *error):
        self.thread.join(10)
        os.unlink(self.path)


def same(a, b):
    assert (a.n_rows, a.n_positives, a.n_bad_lines, a.bad_lines) == (
        b.n_rows,
        b.n_positives,
        b.n_bad_lines,
        b.bad_lines,
    )
    np.testing.assert_array_equal(a.model.coef_, b.model.coef_)
    np.testing.assert_array_equal(a.history["auc"], b.history["auc"])


def test_a_pipe_is_a_file(rows, tmp_path, monkeypatch):
    whole = stream(rows, CBR(), **OPTIONS)
    packed = gzip.compress(rows.read_bytes())
    for name, written in (("p.csv", rows.read_bytes()), ("p.csv.gz", packed), ("pipe", rows.read_bytes()[:-1])):
        with Piped(tmp_path / name, written) as path:
            same(stream(path, CBR(), **OPTIONS), whole)
    standard_input(monkeypatch, packed)
    same(stream("-", CBR(), **OPTIONS), whole)


def test_svmlight_needs_the_number_of_features(tmp_path, monkeypatch):
    written = b"\xef\xbb\xbf1 1:2\n0 2:3\n1 1:1\n"
    standard_input(monkeypatch, written)
    with pytest.raises(ValueError, match=r"'-' is read once, .* pass n_features= for svmlight"):
        stream("-", CBR())
    result = stream("-", CBR(), n_features=2)
    (tmp_path / "f.svm").write_bytes(written)
    same(result, stream(tmp_path / "f.svm", CBR()))


def standard_input(monkeypatch, written):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(written))))


def test_a_pipe_goes_on_when_it_is_given_again(rows, tmp_path, monkeypatch):
    whole = stream(rows, CBR(), **OPTIONS)
    lines = rows.read_bytes().splitlines(keepends=True)
    spoiled = b"".join([*lines[:1801], b"oops\n", *lines[1801:]])
    options = OPTIONS | {"checkpoint": tmp_path / "run", "every": 100}
    with Piped(tmp_path / "p.csv", spoiled) as path, pytest.raises(BadLineError, match="line 1802"):
        stream(path, CBR(), **options)
    for other in (b"".join([*lines[:1700], *lines[1701:]]), b"".join(lines[:1000])):
        standard_input(monkeypatch, other)
        with pytest.raises(ValueError, match="begun with another file, or '-' was changed in the part that was read"):
            stream("-", CBR(), **options)
    standard_input(monkeypatch, b"".join(lines[:2500]) + b"1.5,2.")
    assert (part := stream("-", CBR(), **options)).n_rows == 2499
    assert (part.resumed_at, part.last_line_waits) == (1800, True)
    standard_input(monkeypatch, b"".join(lines))
    again = stream("-", CBR(), **options)
    assert again.resumed_at == 2499
    np.testing.assert_array_equal(again.model.coef_, whole.model.coef_)
    assert stream(rows, CBR(), **options).resumed_at == 3000  # from the file it came from


def test_what_a_pipe_cannot_give(tmp_path, monkeypatch):
    standard_input(monkeypatch, b"PAR1")
    with pytest.raises(ValueError, match="parquet files are not read from a pipe such as '-'; save it in a file"):
        stream("-", CBR(), target="y", format="parquet")
    standard_input(monkeypatch, gzip.compress(b"x,y\n1,1\n0,0\n")[:-10])
    with pytest.raises(ValueError, match="'-' cannot be unpacked"):
        stream("-", CBR(), target="y")
    standard_input(monkeypatch, b"")
    with pytest.raises(ValueError, match="'-' is empty; the first line of a CSV file"):
        stream("-", CBR(), target="y")


def test_a_long_line_is_put_together_once(monkeypatch):
    """As often as a pipe gives a part of it, it must not be copied anew."""
    monkeypatch.setattr(text, "LONGEST_ROW", 20 << 20)
    standard_input(monkeypatch, b"x,y\n" + b"1" * (21 << 20))
    monkeypatch.setattr(text, "_BLOCK", 4096)
    with pytest.raises(ValueError, match="has a line of more than 20 MB at byte 4"):
        stream("-", CBR(), target="y")


def test_the_command_scales_by_the_first_rows_of_a_pipe(rows, tmp_path, monkeypatch):
    options = ("-t", "y", "-m", tmp_path / "m", "--id", "d", "--checkpoint", tmp_path / "run")
    assert run("stream", rows, *options, "--first-rows", 2000).exit_code == 0
    (tmp_path / "run").unlink()
    from_file = load(tmp_path / "m").estimator_

    def scaler(pipeline):
        return pipeline[0].named_transformers_["number"].named_steps["scale"]

    with Piped(tmp_path / "pipe", rows.read_bytes()) as path:
        result = run("stream", path, *options, "--first-rows", 2000)
    assert result.exit_code == 0, result.stderr
    from_pipe = load(tmp_path / "m").estimator_
    np.testing.assert_array_equal(scaler(from_pipe).mean_, scaler(from_file).mean_)
    np.testing.assert_array_equal(from_pipe[-1].coef_, from_file[-1].coef_)
    with Piped(tmp_path / "pipe", rows.read_bytes()) as path:
        assert "after 3,000 rows" in run("stream", path, *options, "--first-rows", 2000).stderr
    # no more than so much is kept of a pipe to scale by
    monkeypatch.setattr(text, "_MOST_PEEKED", 100_000)
    with Piped(tmp_path / "pipe", rows.read_bytes()) as path:
        assert run("stream", path, *options, "--no-resume").exit_code == 0
    table = np.loadtxt(rows, delimiter=",", skiprows=1)
    partly = load(tmp_path / "m").estimator_
    n_scaled = int(scaler(partly).n_samples_seen_)
    assert 0 < n_scaled < 3000
    expected = StandardScaler().fit(table[:n_scaled, :3])
    np.testing.assert_allclose(scaler(partly).mean_, expected.mean_, rtol=1e-12, atol=1e-15)
    learned = CBR(random_state=0).partial_fit(expected.transform(table[:, :3]), table[:, 4].astype(int), classes=[0, 1])
    np.testing.assert_allclose(partly[-1].coef_, learned.coef_, rtol=1e-9)


def test_the_command_reads_standard_input(rows, tmp_path):
    piped = run("stream", "-", "-t", "y", "-m", tmp_path / "m", input=rows.read_bytes())
    assert piped.exit_code == 0, piped.stderr
    assert piped.stdout.startswith("CBR learned from 3,000 rows of -")
    svmlight = run("stream", "-", "-m", tmp_path / "m", "--n-features", 2, input=b"1 1:2\n0 2:3\n")
    assert svmlight.exit_code == 0, svmlight.stderr
    refused = run("stream", "-", "-m", tmp_path / "m", input=b"1 1:2\n0 2:3\n")
    assert refused.stderr == (
        "error: '-' is read once, which does not tell the largest index in time; pass --n-features for svmlight\n"
    )
