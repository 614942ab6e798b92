"""The tables of the papers: the pages are what the results say, cells run, and a run goes on where it stopped."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def importable():
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


@pytest.fixture
def papers():
    from benchmarks.tables import papers

    return papers


def test_the_pages_have_the_tables_of_the_results(papers):
    from benchmarks.tables.design import Figure
    from benchmarks.tables.pages import PAGES
    from benchmarks.tables.text import page_text

    for key, paper in papers.PAPERS.items():
        page = PAGES / f"{key}.md"
        assert page_text(paper) in page.read_text(encoding="utf-8"), (
            f"python -m benchmarks.tables {key} --no-run --write"
        )
        for part in paper.parts:
            if isinstance(part, Figure) and part.is_ready:
                assert (PAGES / f"{key}-figure-{part.number}.svg").stat().st_size > 1000


def run_tiny_cells(paper, experiments):
    from benchmarks.tables.design import Figure
    from benchmarks.tables.runner import compute

    for experiment in experiments:
        line = compute(experiment, experiment.tiny)
        tables = [part for part in paper.parts if part.experiment is experiment and not isinstance(part, Figure)]
        wanted = {measure.key for table in tables for measure in table.measures}
        assert wanted <= line.keys(), experiment.name
        assert all(np.isfinite(line[key]) for key in wanted), experiment.name


def test_a_tiny_cell_of_every_paper_runs(papers):
    assert {part.experiment.name for paper in papers.PAPERS.values() for part in paper.parts} == set(papers.EXPERIMENTS)
    for paper in papers.PAPERS.values():
        run_tiny_cells(paper, paper.experiments[:1])


@pytest.mark.slow
def test_tiny_cells_of_all_other_experiments_run(papers):
    for paper in papers.PAPERS.values():
        run_tiny_cells(paper, paper.experiments[1:])


@pytest.fixture
def counted(papers, monkeypatch, tmp_path):
    """An experiment of two sets and two methods that counts its runs."""
    from benchmarks.tables import design

    ran = []

    def run(cell):
        ran.append(cell)
        if cell.set == "absent":
            from toprank.datasets import DatasetError

            raise DatasetError("not there")
        return {"x": 0.5 + 0.01 * cell.trial}

    monkeypatch.setattr(design, "RESULTS", tmp_path)
    experiment = design.Experiment("counted", run, lambda name: ("a", "b"), ("one", "absent"), 5, None)
    return experiment, ran


def test_a_run_goes_on_where_it_stopped(counted):
    from benchmarks.tables.runner import fill

    experiment, ran = counted
    said = []
    fill(experiment, trials=1, say=said.append)
    assert [cell.method for cell in ran if cell.set == "one"] == ["a", "b"]
    assert any("absent is missing: not there" in line for line in said)
    del ran[:]
    fill(experiment, trials=3, methods=["a"], sets=["one"], say=said.append)
    assert [cell.trial for cell in ran] == [1, 2]
    assert experiment.results().values("one", "a", "x") == [0.5, 0.51, 0.52]
    assert "1 cells" not in said[-1]
    assert "0 s left" in said[-1]


def test_verdicts_and_text(counted):
    from benchmarks.tables.design import Measure, Published, Results, Table
    from benchmarks.tables.runner import fill
    from benchmarks.tables.text import not_run, notes_of, table_lines
    from benchmarks.tables.verdicts import verdict

    assert verdict([0.5, 0.52], Published(0.52, 0.03), 10, True) == "="
    assert verdict([0.5, 0.501], Published(0.52, 0.001), 10, True) == "▼"
    assert verdict([0.5, 0.501], Published(0.52, 0.001), 10, False) == "▲"
    assert verdict([2.0], Published(1.0), 1, None) == "≠"
    assert verdict([0.5], Published(0.6, 0.1), 1, True) == "="  # of one trial the published deviation is taken
    assert verdict([], Published(0.6, 0.1), 1, True) == ""
    experiment, _ = counted
    fill(experiment, trials=2, sets=["one"], say=lambda line: None)
    published = {("one", "a", "x"): Published(0.505, 0.01), ("one", "b", "x"): Published(0.9, 0.01)}
    table = Table("1", "title", experiment, (Measure("x", "x"),), published, 2)
    assert table_lines(table, experiment.results())[2] == (
        "| one | 2 | 0.505 ± 0.007 (0.505 ± 0.010) = | 0.505 ± 0.007 (0.900 ± 0.010) ▼ |"
    )
    assert not_run(table, experiment.results()) == "absent"
    assert not_run(replace(table, only=("a",)), Results([])) == "one; absent"
    fill(replace(experiment, name="part"), trials=1, sets=["one"], methods=["b"], say=lambda line: None)
    assert not_run(table, replace(experiment, name="part").results()) == "one by a; absent"
    apart = replace(table, apart={"b": "another task"})
    assert "(0.900 ± 0.010) ≁" in table_lines(apart, experiment.results())[2]
    assert notes_of(replace(table, apart={"a": "other", "one": "drawn", "b": "other"}))[-2:] == [
        "- ≁ a, b: other.",
        "- ≁ one: drawn.",
    ]
    ratio = replace(table, measures=(Measure("x", "x", None, ".2f", ratio_to="a"), Measure("x", "x")))
    assert "| one | b | 2 | 1.00 (1.78) |" in table_lines(ratio, experiment.results())[3]
