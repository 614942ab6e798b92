"""The work grows as the number of columns, not as its square."""

import time

import numpy as np
import polars as pl
import pytest

from cli.support import run
from toprank import PatMatNP
from toprank.files import TableModel
from toprank.files.csv_file import CSVTable
from toprank.files.estimators import table_pipeline
from toprank.files.scoring import score_rows
from toprank.files.training import read_to_learn, read_to_test


def write_wide(path, n_columns, n_rows=40):
    """Numbers, numbers with gaps, numbers with spaces around them, and categories, in turn; y comes last."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(n_columns, n_rows)).round(3)
    columns = {}
    for i, values in enumerate(numbers):
        texts = random.choice(list("abc"), n_rows) if i % 4 == 3 else values.astype(str)
        if i % 4 == 1:
            texts[i % n_rows] = "NA"
        columns[f"x{i}"] = [f" {text} " for text in texts] if i % 4 == 2 else texts
    pl.DataFrame({**columns, "y": np.arange(n_rows) % 2}).write_csv(path)


class Name(str):
    """A name that counts how often it is compared with others."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_names_are_looked_up_not_searched(tmp_path, monkeypatch):
    """A search for each name among all compares d² / 2 times, and a list of names for each makes d lists."""
    n_columns, listed = 400, []
    write_wide(tmp_path / "d.csv", n_columns)
    names_of = pl.DataFrame.columns.fget
    monkeypatch.setattr(pl.DataFrame, "columns", property(lambda frame: listed.append(1) or names_of(frame)))
    monkeypatch.setattr(Name, "compared", 0)
    table = CSVTable(str(tmp_path / "d.csv"))
    table.names = [Name(name) for name in table.names]
    rows = read_to_learn(table, "y", ignore=["x8"], categorical=["x4"])
    used = {str(name): kind for name, kind in rows.columns.used.items()}
    model = TableModel(table_pipeline(used, PatMatNP(tau=0.2)), used, target="y").fit(rows.X, rows.y)
    tested = read_to_test(table, model, all_columns=True)
    scores = np.concatenate([part.scores for part in score_rows(table, model)])
    np.testing.assert_allclose(scores, model.decision_function(tested.X), rtol=1e-9, atol=1e-9)
    assert len(used) == n_columns - 1
    assert Name.compared < 30 * n_columns
    assert len(listed) < n_columns // 4


@pytest.mark.slow
def test_four_times_the_columns_cost_four_times_the_time(tmp_path):
    commands = (
        ("fit", "d.csv", "-t", "y", "-m", "m", "-q"),
        ("score", "d.csv", "-m", "m", "-o", "s.csv", "-q"),
        ("evaluate", "d.csv", "-m", "m", "-q"),
        ("report", "d.csv", "-m", "m", "-o", "r.html", "-q"),
        ("info", "m"),
    )
    seconds = {}
    for n_columns in (100, 2000, 8000):  # the first loads what is needed
        folder = tmp_path / str(n_columns)
        folder.mkdir()
        write_wide(folder / "d.csv", n_columns)
        for command in commands:
            files = [folder / part if part in ("d.csv", "m", "s.csv", "r.html") else part for part in command]
            start = time.process_time()
            assert run(*files).exit_code == 0
            seconds[command[0], n_columns] = time.process_time() - start
    for command in commands:
        assert seconds[command[0], 8000] < 8 * seconds[command[0], 2000] + 0.5
