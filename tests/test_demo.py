"""The demonstration writes its data, prints its table, draws its figure, and says what it cannot do."""

import re

import numpy as np
import pytest

from terminal_lines import run_terminal_lines
from toprank import demo


@pytest.fixture
def known_scores(monkeypatch):
    """Scores that need no fit, for what does not depend on them."""

    def scores(train, test):
        random = np.random.default_rng(0).normal(size=len(test))
        return {"logistic regression": random, demo.OURS: random + 2 * test["fraud"].to_numpy(), demo.BEST: random}

    monkeypatch.setattr(demo, "scores_by_model", scores)


def test_demo_writes_data_table_and_figure_and_the_readme_goes_on_from_there(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "new" / "folder"
    assert demo.main([str(folder)]) == 0
    printed = capsys.readouterr().out
    names = ["alerts.png", "payments-scores.csv", "payments-test.csv", "payments-train.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    head = (folder / "payments-scores.csv").read_text().splitlines()[0]
    assert head.startswith("payment,time,fraud,logistic_regression,lightgbm,patmatnp_linear,patmatnp_gaussian,")
    assert (folder / "alerts.png").read_bytes().startswith(b"\x89PNG")
    found = {}
    for name in (*demo.models(), demo.BEST):
        days, together = re.search(rf"{re.escape(name)} +([\d ]+?) +(\d+) of 321", printed).groups()
        assert sum(map(int, days.split())) == int(together)
        found[name] = int(together)
    # what README and docs say, up to the last bits of other machines
    for name, number in (("logistic regression", 170), ("LightGBM", 226), (demo.OURS, 234), (demo.BEST, 241)):
        assert abs(found[name] - number) <= 3
    monkeypatch.chdir(folder)
    run_terminal_lines("README.md")


def test_lists_are_the_best_of_each_day():
    scores, day = np.array([3.0, 5, 1, 4, 2, 6]), np.array([1, 1, 1, 2, 2, 2])
    assert [rows.tolist() for rows in demo.daily_lists(scores, day, 2)] == [[1, 0], [5, 3]]


def test_demo_without_lightgbm(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == "lightgbm" else name)
    assert "LightGBM" not in demo.models()
    monkeypatch.setattr(demo, "models", lambda: {})
    monkeypatch.setattr(demo, "draw", lambda *arguments: None)
    assert demo.main([str(tmp_path)]) == 0
    assert "without LightGBM" in capsys.readouterr().out


@pytest.mark.usefixtures("known_scores")
def test_demo_says_what_it_cannot_do(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    assert demo.main([str(tmp_path / "file" / "folder")]) == 1
    assert "cannot be written" in capsys.readouterr().out
    assert demo.main([str(tmp_path / "file")]) == 1
    assert "cannot be written" in capsys.readouterr().out
    (tmp_path / "folder" / "alerts.png").mkdir(parents=True)
    assert demo.main([str(tmp_path / "folder")]) == 1
    assert "cannot be written" in capsys.readouterr().out
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    assert demo.main([str(tmp_path)]) == 1
    assert "polars and matplotlib" in capsys.readouterr().out
