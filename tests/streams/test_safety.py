"""What must not be lost: the data, Ctrl-C, the line of an error."""

import os
import signal

import pytest

from toprank.online import CBR
from toprank.persistence.model_file import read_tree
from toprank.streams import stream
from toprank.streams.checkpoint import Checkpoint

ROWS = "x,y\n" + "1.5,1\n0.5,0\n" * 20


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


@pytest.mark.parametrize("how", ["same", "relative", "symbolic link", "hard link"])
def test_the_data_are_not_overwritten(rows, tmp_path, how, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = {"same": rows, "relative": "./rows.csv"}.get(how, tmp_path / "link")
    if how == "symbolic link":
        os.symlink(rows, checkpoint)
    elif how == "hard link":
        os.link(rows, checkpoint)
    for resume in (True, False):
        with pytest.raises(ValueError, match="is the file of the rows and would replace it; name another"):
            stream(rows, CBR(), target="y", checkpoint=checkpoint, resume=resume)
    assert rows.read_text() == ROWS


def test_an_ignored_ctrl_c_stays_ignored(rows):
    class Interrupted(CBR):
        def partial_fit(self, X, y, classes=None):
            signal.raise_signal(signal.SIGINT)
            return super().partial_fit(X, y, classes)

    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert stream(rows, Interrupted(), target="y", batch=10).n_rows == 40
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    except KeyboardInterrupt:  # it would end all tests
        pytest.fail("Ctrl-C was not ignored")
    finally:
        signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_during_the_last_save(rows, tmp_path, monkeypatch):
    write = Checkpoint.write

    def interrupted(self, state, *arguments):
        if state.n_rows == 40:
            signal.raise_signal(signal.SIGINT)
        write(self, state, *arguments)

    options = {"target": "y", "checkpoint": tmp_path / "run"}
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream(rows, CBR(), **options)
    assert stream(rows, CBR(), **options).resumed_at == 40  # the save was finished


@pytest.mark.parametrize("on_bad_line", ["stop", "skip"])
def test_an_error_of_the_model_names_the_lines(rows, tmp_path, on_bad_line):
    rows.write_text(ROWS + "1e60,1\n")
    options = {"target": "y", "batch": 15, "every": 15, "checkpoint": tmp_path / "run", "on_bad_line": on_bad_line}
    with pytest.raises(ValueError, match="squares of such numbers overflow") as caught:
        stream(rows, CBR(), **options)
    assert caught.value.__notes__ == [f"this happened in lines 32 to 42 of {str(rows)!r}"]
    assert read_tree(tmp_path / "run", kind="checkpoint")["n_rows"] == 30
    rows.write_text(ROWS)
    resumed, whole = stream(rows, CBR(), **options), stream(rows, CBR(), **options, resume=False)
    assert (resumed.resumed_at, resumed.n_rows) == (30, 40)
    assert resumed.model.coef_ == whole.model.coef_


def test_a_positive_label_that_never_occurs_is_told(rows):
    with pytest.warns(UserWarning, match=r"none of the 40 rows of .* is positive, with 'fraud' as the positive label"):
        stream(rows, CBR(), target="y", positive="fraud")
