"""Streams as a user meets them: what is learned and measured, bad lines, interruptions, and going on."""

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank.streams.progress as progress_module
from toprank.datasets import make_imbalanced
from toprank.metrics import tpr_at_fpr
from toprank.online import CBR
from toprank.persistence import ModelFileError, load, save
from toprank.persistence.model_file import read_tree
from toprank.streams import BadLineError, stream, stream_table
from toprank.streams.checkpoint import Checkpoint


class Sums(BaseEstimator):
    """Learns the sums of the rows of each class, and remembers the sizes of its batches."""

    def __init__(self, breaks_at=None):
        self.breaks_at = breaks_at

    def partial_fit(self, X, y, classes=None):
        X = X.toarray() if hasattr(X, "toarray") else X
        if not hasattr(self, "sums_"):
            self.classes_, self.sums_, self.sizes_ = classes, np.zeros((2, X.shape[1])), []
        for row, label in zip(X, y, strict=True):
            self.sums_[label] += row
        self.sizes_.append(len(y))
        if self.breaks_at is not None and sum(self.sizes_) >= self.breaks_at:
            raise ArithmeticError("broken")
        return self

    def fit(self, X, y):
        return self.partial_fit(X, y, classes=np.array([0, 1]))

    def decision_function(self, X):
        return X @ (self.sums_[1] - self.sums_[0])


@pytest.fixture(scope="module")
def data():
    X, y, _ = make_imbalanced(1050, n_features=4, positive_share=0.2, separation=2.0, random_state=0)
    return X, y


def write_csv(path, X, y, names=None):
    frame = pl.DataFrame(X, schema=names or [f"x{i}" for i in range(X.shape[1])]).with_columns(y=pl.Series(y))
    frame.write_csv(path)
    return path


def write_svmlight(path, X, y):
    pairs = [" ".join(f"{i}:{value!r}" for i, value in enumerate(row, 1)) for row in X.tolist()]
    path.write_text("".join(f"{label} {row}\n" for label, row in zip(y, pairs, strict=True)))


@pytest.fixture
def clicks(data, tmp_path):
    return write_csv(tmp_path / "clicks.csv", *data)


def same(a, b, other=frozenset()):
    assert a.n_rows == b.n_rows
    assert a.n_bad_lines == b.n_bad_lines
    assert a.bad_lines == b.bad_lines
    assert list(a.history) == list(b.history)
    for name in a.history:
        np.testing.assert_array_equal(a.history[name], b.history[name])
    assert sorted(vars(a.model).keys() - other) == sorted(vars(b.model).keys() - other)
    for name in vars(a.model).keys() - other:
        np.testing.assert_array_equal(vars(a.model)[name], vars(b.model)[name])


def test_every_row_is_tested_and_then_learned(clicks, data):
    X, y = data
    model = Sums()
    result = stream(clicks, model, target="y", batch=100, window=250, max_fpr=0.1)
    assert not hasattr(model, "sums_")  # it works on a copy
    reference, scores = Sums(), np.full(len(y), np.nan)
    for start in range(0, len(y), 100):
        rows = slice(start, start + 100)
        if start:
            scores[rows] = reference.decision_function(X[rows])
        reference.partial_fit(X[rows], y[rows], classes=np.array([0, 1]))
    np.testing.assert_array_equal(result.model.sums_, reference.sums_)
    ends = [350, 600, 850, 1050]
    assert result.history["rows"].tolist() == ends
    for i, (start, end) in enumerate(zip([100, *ends], ends, strict=False)):
        part = slice(start, end)
        assert result.history["auc"][i] == pytest.approx(roc_auc_score(y[part], scores[part]), abs=1e-12)
        assert result.history["tpr_at_fpr"][i] == tpr_at_fpr(y[part], scores[part], max_fpr=0.1)
        assert result.history["positives"][i] == y[part].sum()
    assert (result.n_rows, result.n_bad_lines, result.bad_lines, result.resumed_at) == (1050, 0, [], 0)


def test_formats_agree(clicks, data, tmp_path):
    X, y = data
    write_svmlight(tmp_path / "clicks.svm", X, 2 * y - 1)
    frame = pl.read_csv(clicks)
    frame.write_parquet(tmp_path / "clicks.parquet", row_group_size=100)
    frame.write_csv(tmp_path / "clicks.txt", separator=";")
    results = [
        stream(clicks, CBR(random_state=0), target="y"),
        stream(tmp_path / "clicks.svm", CBR(random_state=0)),
        stream(tmp_path / "clicks.parquet", CBR(random_state=0), target="y"),
        stream(tmp_path / "clicks.txt", CBR(random_state=0), target="y", format="csv"),
    ]
    for result in results[1:]:
        same(results[0], result, other={"feature_names_in_"})  # columns of svmlight have no names


def test_columns_labels_and_missing_values_of_parquet(tmp_path):
    frame = pl.DataFrame(
        {
            "id": ["a", "b", "c", "d", "e"],
            "x": [1.0, None, 3.0, float("inf"), 5.0],
            "flag": [True, False, True, True, False],
            "y": ["no", "fraud", None, "no", "fraud"],
        }
    )
    frame.write_parquet(tmp_path / "f.parquet")
    options = {"target": "y", "positive": "fraud", "features": ["x", "flag"], "on_bad_line": "skip"}
    result = stream(tmp_path / "f.parquet", Sums(), **options)
    assert result.model.sums_.tolist() == [[1, 1], [5, 0]]
    assert [line.line for line in result.bad_lines] == [2, 3, 4]
    assert "column 'x' has no value" in result.bad_lines[0].reason
    assert result.bad_lines[1].reason == "the label is missing"
    assert "column 'x' has inf" in result.bad_lines[2].reason
    result = stream(tmp_path / "f.parquet", Sums(), fill_missing=-1.0, **options)
    assert result.model.sums_.tolist() == [[1, 1], [4, 0]]
    with pytest.raises(ValueError, match=r"the column 'id' .* has the type text, and a stream takes numbers"):
        stream(tmp_path / "f.parquet", Sums(), target="y", positive="fraud")
    with pytest.raises(ValueError, match="name the positive label by positive="):
        stream(tmp_path / "f.parquet", Sums(), target="y", features=["flag"])
    with pytest.raises(BadLineError, match="row 2 of"):
        stream(tmp_path / "f.parquet", Sums(), target="flag", features=["x"])
    (tmp_path / "g.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        stream(tmp_path / "g.parquet", Sums(), target="y")


def test_a_fitted_model_goes_on(clicks):
    first = stream(clicks, Sums(), target="y", window=500).model
    second = stream(clicks, first, target="y", window=500)
    np.testing.assert_allclose(second.model.sums_, 2 * first.sums_)
    assert second.history["rows"].tolist() == [500, 1000, 1050]  # scored from the first row on


def test_pipelines_scale_before_they_learn(clicks, data):
    X, y = data
    model = make_pipeline(StandardScaler().fit(X[:200]), Sums())
    result = stream(clicks, model, target="y")
    expected = Sums().partial_fit(model[0].transform(X), y, classes=np.array([0, 1]))
    np.testing.assert_allclose(result.model[-1].sums_, expected.sums_)
    plain = stream(clicks, make_pipeline("passthrough", Sums()), target="y")
    np.testing.assert_array_equal(plain.model[-1].sums_, stream(clicks, Sums(), target="y").model.sums_)
    with pytest.raises(NotFittedError, match=r"StandardScaler is not fitted, .* on a sample of the rows"):
        stream(clicks, make_pipeline(StandardScaler(), Sums()), target="y")


def test_models_that_cannot_learn_on_are_refused(clicks):
    with pytest.raises(TypeError, match=r"LogisticRegression has no partial_fit, .* such as CBR"):
        stream(clicks, LogisticRegression(), target="y")


def spoil(path, *numbers):
    lines = path.read_text().splitlines(keepends=True)
    for number in numbers:
        lines.insert(number - 1, "this is no row\n")
    path.write_text("".join(lines))


def test_bad_lines_are_counted_or_stop_the_run(clicks, tmp_path):
    clean = stream(clicks, Sums(), target="y", batch=100)
    spoil(clicks, 2, 333, 334, 1054)
    skipping = stream(clicks, Sums(), target="y", batch=100, on_bad_line="skip")
    assert (skipping.n_bad_lines, [line.line for line in skipping.bad_lines]) == (4, [2, 333, 334, 1054])
    np.testing.assert_array_equal(skipping.model.sums_, clean.model.sums_)
    with pytest.raises(BadLineError, match=r"line 2 of .*clicks.csv' is bad: .*leave such lines out by") as caught:
        stream(clicks, Sums(), target="y", batch=100)
    assert caught.value.line == pickle.loads(pickle.dumps(caught.value)).line == 2
    assert "its number of fields is 1, and that of the first line is 5" in caught.value.reason


def test_a_corrected_file_goes_on(clicks, tmp_path):
    options = {"target": "y", "batch": 100, "window": 300, "checkpoint": tmp_path / "run", "trusted": [Sums]}
    content = clicks.read_text()
    clean = stream(clicks, Sums(), **options, resume=False)
    spoil(clicks, 555)
    with pytest.raises(BadLineError, match="line 555"):
        stream(clicks, Sums(), **options, resume=False)
    clicks.write_text(content)
    result = stream(clicks, Sums(), **options)
    assert result.resumed_at == 500
    same(result, clean)


def test_a_hundred_bad_lines_are_kept(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("x,y\n" + "1,1\nbad\n1,0\n" * 300)
    result = stream(path, Sums(), target="y", on_bad_line="skip")
    assert (result.n_rows, result.n_bad_lines, len(result.bad_lines)) == (600, 300, 100)


@pytest.mark.parametrize(
    ("content", "notice"),
    [
        ("x,y\n", "f.csv' has no rows, so nothing was learned"),
        ("x,y\n1,1\n", "none of the 1 rows of .*f.csv' is negative, with 1 as the positive label"),
        ("x,y\n1,0\n", "none of the 1 rows of .*f.csv' is positive, .* check the labels and positive="),
    ],
    ids=["no rows", "a positive", "a negative"],
)
def test_short_files(tmp_path, content, notice):
    path = tmp_path / "f.csv"
    path.write_text(content)
    for _ in range(2):  # anew, and from the checkpoint
        with pytest.warns(UserWarning, match=notice):
            result = stream(path, Sums(), target="y", checkpoint=tmp_path / "run", trusted=[Sums])
    assert result.n_rows == content.count("\n") - 1
    assert all(len(column) == 0 for column in result.history.values())


class PowerCut(BaseException):
    """Nobody catches it."""


class Interrupting(Sums):
    """Gets Ctrl-C in the midst of a batch, once."""

    def partial_fit(self, X, y, classes=None):
        if len(getattr(self, "sizes_", ())) == 3 and not os.environ.pop("TOPRANK_TEST_INTERRUPTED", None):
            os.environ["TOPRANK_TEST_INTERRUPTED"] = "1"
            signal.raise_signal(signal.SIGINT)
        return super().partial_fit(X, y, classes)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_saves_and_the_next_call_goes_on(clicks, tmp_path, monkeypatch):
    monkeypatch.setenv("TOPRANK_TEST_INTERRUPTED", "1")
    options = {"target": "y", "batch": 100, "window": 300, "checkpoint": tmp_path / "run", "trusted": [Interrupting]}
    handler = signal.getsignal(signal.SIGINT)
    whole = stream(clicks, Interrupting(), **options, resume=False)
    with pytest.raises(KeyboardInterrupt):
        stream(clicks, Interrupting(), **options, resume=False)
    assert signal.getsignal(signal.SIGINT) is handler
    monkeypatch.setenv("TOPRANK_TEST_INTERRUPTED", "1")
    result = stream(clicks, Interrupting(), **options)
    assert result.resumed_at == 400
    same(result, whole)


def test_threads_need_no_signals(clicks):
    results = []
    thread = threading.Thread(target=lambda: results.append(stream(clicks, Sums(), target="y")))
    thread.start()
    thread.join()
    assert results[0].n_rows == 1050


def test_a_model_that_breaks_leaves_the_last_good_checkpoint(clicks, tmp_path):
    options = {"target": "y", "batch": 100, "every": 200, "checkpoint": tmp_path / "run", "trusted": [Sums]}
    with pytest.raises(ArithmeticError, match="broken"):
        stream(clicks, Sums(breaks_at=750), **options)
    with pytest.raises(ArithmeticError, match="broken"):
        stream(clicks, Sums(breaks_at=750), **options)
    content = read_tree(tmp_path / "run", kind="checkpoint", trusted=[Sums])
    assert content["n_rows"] == sum(content["model"].sizes_) == 600


@pytest.mark.covering(1)
@pytest.mark.parametrize("form", ["csv", "svm", "parquet"])
@pytest.mark.parametrize("every", [1, 130, 400])
def test_going_on_from_every_checkpoint(clicks, data, tmp_path, form, every, monkeypatch):
    """Stop after each checkpoint in turn, as a power cut would, and go on from there."""
    spoil(clicks, 10, 300, 301, 1054)
    path, options = clicks, {"target": "y"}
    if form == "svm":
        path, options = tmp_path / "clicks.svm", {"n_features": 4}
        write_svmlight(path, *data)
        spoil(path, 10, 300, 301, 1051)
    elif form == "parquet":
        path = tmp_path / "clicks.parquet"
        X, y = data
        frame = pl.DataFrame(X, schema=["a", "b", "c", "d"]).with_columns(y=pl.Series(y))
        frame[20, "a"] = None
        frame[400, "b"] = None
        frame.write_parquet(path)
    options |= {"batch": 70, "window": 110, "on_bad_line": "skip", "trusted": [Sums]}
    whole = stream(path, Sums(), **options)
    assert whole.n_bad_lines == (2 if form == "parquet" else 4)

    write, stops, run = Checkpoint.write, 0, tmp_path / "run"
    for _ in range(40):
        try:
            with monkeypatch.context() as patch:
                calls = []

                def second_time(self, *arguments, calls=calls):
                    write(self, *arguments)
                    calls.append(1)
                    if len(calls) == 2:
                        raise PowerCut

                patch.setattr(Checkpoint, "write", second_time)
                result = stream(path, Sums(), **options, checkpoint=run, every=every)
                break
        except PowerCut:
            stops += 1
    assert stops >= (2 if every == 400 else 7)
    result = stream(path, Sums(), **options, checkpoint=run, every=every)
    assert result.resumed_at == result.n_rows
    same(result, whole)


def test_a_file_that_grows_goes_on(clicks, tmp_path):
    content = clicks.read_bytes()
    lines = content.splitlines(keepends=True)
    options = {"target": "y", "batch": 100, "window": 300, "checkpoint": tmp_path / "run", "trusted": [Sums]}
    clicks.write_bytes(b"".join(lines[:701]))
    assert stream(clicks, Sums(), **options).n_rows == 700
    clicks.write_bytes(content)
    grown = stream(clicks, Sums(), **options)
    assert (grown.resumed_at, grown.n_rows) == (700, 1050)
    same(grown, stream(clicks, Sums(), **options, resume=False))
    # a last line without its end may be continued, and then it is another line
    clicks.write_bytes(content.rstrip(b"\n"))
    assert stream(clicks, Sums(), **options, resume=False).n_rows == 1049
    clicks.write_bytes(content)
    assert stream(clicks, Sums(), **options).n_rows == 1050
    clicks.write_bytes(content.rstrip(b"\n"))
    assert stream(clicks, Sums(), **options, resume=False, grows=False).n_rows == 1050
    clicks.write_bytes(content)
    assert stream(clicks, Sums(), **options).n_rows == 1050
    clicks.write_bytes(content.rstrip(b"\n"))
    stream(clicks, Sums(), **options, resume=False, grows=False)
    clicks.write_bytes(content.rstrip(b"\n") + b"5\n")
    with pytest.raises(ValueError, match="was changed in the part that was read"):
        stream(clicks, Sums(), **options)


def test_what_a_checkpoint_does_not_belong_to_is_refused(clicks, tmp_path, data):
    run = tmp_path / "run"
    options = {"target": "y", "window": 300, "checkpoint": run}
    whole = stream(clicks, CBR(), **options)
    with pytest.raises(ValueError, match=r"begun with window 300, and now window is 200; .* resume=False"):
        stream(clicks, CBR(), **options | {"window": 200})
    with pytest.raises(ValueError, match="begun with another model"):
        stream(clicks, CBR(C=0.5), **options)
    with pytest.raises(ValueError, match="begun with another model"):
        stream(clicks, whole.model, **options)
    other = write_csv(tmp_path / "other.csv", data[0] + 1, data[1])
    with pytest.raises(ValueError, match="begun with another file"):
        stream(other, CBR(), **options)
    with pytest.raises(ModelFileError, match="checkpoint, not a model"):
        load(run)
    again = stream(clicks, CBR(C=0.5), **options, resume=False)
    assert again.resumed_at == 0
    run.write_bytes(run.read_bytes()[:-10])
    with pytest.raises(ModelFileError, match="truncated or altered"):
        stream(clicks, CBR(C=0.5), **options)


def test_a_checkpoint_that_cannot_be_written_is_told_before_anything_is_learned(clicks, tmp_path):
    with pytest.raises(FileNotFoundError, match="use a path in an existing folder"):
        stream(clicks, Sums(breaks_at=1), target="y", checkpoint=tmp_path / "none" / "run", trusted=[Sums])
    with pytest.raises(ModelFileError, match=r"Sums, which is not one of those that toprank saves.*trusted="):
        stream(clicks, Sums(breaks_at=1), target="y", checkpoint=tmp_path / "run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_bad_line": "ignore"}, "on_bad_line must be 'stop' or 'skip', got 'ignore'"),
        ({"batch": 0}, "batch must be a whole number of at least 1, got 0"),
        ({"window": 2.5}, "window must be a whole number of at least 1, got 2.5"),
        ({"every": True}, "every must be a whole number of at least 1, got True"),
        ({"max_fpr": 2}, r"max_fpr must be in \[0, 1\], got 2"),
    ],
    ids=["on_bad_line", "batch", "window", "every", "max_fpr"],
)
@pytest.mark.parametrize("learn", [stream, stream_table])
def test_arguments(clicks, learn, options, message):
    with pytest.raises(ValueError, match=message):
        learn(str(clicks), CBR(), target="y", **options)


def test_progress(clicks, monkeypatch, caplog, capsys):
    pytest.importorskip("rich", reason="the bar needs rich")
    stream(clicks, Sums(), target="y", batch=100, window=300, verbose=1)
    captured = capsys.readouterr()
    assert "1,050 rows, AUC" in captured.err
    assert captured.out == ""
    monkeypatch.setattr(progress_module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(progress_module, "_SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO, logger="toprank"):
        stream(clicks, Sums(), target="y", batch=100, window=300, verbose=1)
    assert "1050 rows, 100 % of the file, AUC" in caplog.text


LONG = """
from toprank.online import CBR
from toprank.streams import stream

def learn(path, run):
    model = CBR(buffer="reservoir", random_state=0)
    return stream(path, model, target="y", batch=200, window=2000, checkpoint=run, every=800, verbose=0)
"""


def test_killed_and_resumed_is_bit_identical(tmp_path):
    X, y, _ = make_imbalanced(16_000, n_features=8, positive_share=0.1, random_state=1)
    path, run = write_csv(tmp_path / "clicks.csv", X, y), tmp_path / "run1"
    with subprocess.Popen([sys.executable, "-c", f"{LONG}\nimport sys; learn(*sys.argv[1:])", path, run]) as process:
        for wanted in range(3):  # the third checkpoint after the one at the start
            seen = run.stat().st_mtime_ns if wanted else None
            while process.poll() is None and (not run.exists() or run.stat().st_mtime_ns == seen):
                time.sleep(0.001)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    names = {}
    exec(LONG, names)
    whole, resumed = (names["learn"](path, tmp_path / name) for name in ("run0", "run1"))
    assert (whole.n_rows, whole.resumed_at, resumed.n_rows) == (16_000, 0, 16_000)
    assert 0 < resumed.resumed_at < 16_000
    assert whole.history["auc"].tolist() == resumed.history["auc"].tolist()
    for result, name in ((whole, "model0"), (resumed, "model1")):
        save(result.model, tmp_path / name)
    assert (tmp_path / "model0").read_bytes() == (tmp_path / "model1").read_bytes()
