"""Ctrl-C during `toprank fit`: the best model so far is saved, with its gap, or nothing is written."""

import json

import pytest

from cli.support import run, transactions
from toprank.persistence import load
from toprank.solvers.problem import Recorder


@pytest.fixture
def interrupted(monkeypatch):
    """A function after which Ctrl-C comes with the n-th row of the history."""

    def after(n):
        seen, add = [0], Recorder.add

        def interrupting(self, *known):
            add(self, *known)
            seen[0] += 1
            if seen[0] == n:
                raise KeyboardInterrupt

        monkeypatch.setattr(Recorder, "add", interrupting)

    return after


def fit(folder, *more):
    transactions(400).write_csv(folder / "train.csv")
    where = (folder / "train.csv", "-t", "fraud", "--positive", "yes", "-m", folder / "model.toprank")
    return run("fit", *where, "--tau", "0.05", *more)


def test_the_best_model_so_far_is_saved(tmp_path, interrupted):
    interrupted(3)
    result = fit(tmp_path)
    assert result.exit_code == 130
    assert "PatMatNP was interrupted after 2 iterations at a relative duality gap of" in result.stderr
    assert "stopped by the keyboard: the model that is saved is the best so far" in result.stderr
    assert "saved to" in result.stdout
    model = load(tmp_path / "model.toprank")
    assert model.estimator_[-1].interrupted_
    assert model.summary_["certificate"] > 1e-4
    assert model.summary_["held_out"]["rows"] == 80


def test_without_a_model_nothing_is_saved(tmp_path, interrupted):
    interrupted(1)  # at w = 0
    result = fit(tmp_path)
    assert (result.exit_code, result.stderr) == (130, "stopped by the keyboard\n")
    assert not (tmp_path / "model.toprank").exists()


def test_a_search_is_stopped_as_a_whole(tmp_path, interrupted):
    interrupted(3)
    result = fit(tmp_path, "--search")
    assert result.exit_code == 130
    assert not (tmp_path / "model.toprank").exists()


def test_machines_are_told_too(tmp_path, interrupted):
    assert json.loads(fit(tmp_path, "--json").stdout)["interrupted"] is False
    interrupted(3)
    result = fit(tmp_path, "--json", "--max-fpr", "0.1")
    assert result.exit_code == 130
    assert json.loads(result.stdout)["interrupted"] is True
