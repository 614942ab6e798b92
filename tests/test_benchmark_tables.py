"""The tables of the documentation are what the files of results say."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wilcoxon

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "howto" / "worth-at-the-top.md"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import worth_tables

    yield worth_tables
    for name in ("worth_tables", "low_rates", "result_lines"):
        sys.modules.pop(name, None)


def test_the_page_has_the_tables_of_the_results(tables):
    found = tables.rendered(ROOT / "benchmarks" / "results" / "worth_at_the_top.jsonl")
    assert found in PAGE.read_text(encoding="utf-8")


def test_the_page_has_the_ablation_of_the_results(tables):
    import ablation_of_the_forest as ablation

    found = ablation.rendered(ROOT / "benchmarks" / "results" / "ablation_of_the_forest.jsonl")
    sys.modules.pop("ablation_of_the_forest")
    assert found in PAGE.read_text(encoding="utf-8")


def line(name, method, split, found):
    return {"set": name, "method": method, "split": split, "found": found, "tuning_seconds": 1.0, "fit_seconds": 2.0,
            "chosen": {}, "date": "2026-01-01 00:00"}  # fmt: skip


def test_ranks_duels_and_what_is_missing(tables, tmp_path):
    versions = {"versions": {"numpy": "1"}, "cores": 2, "date": "2026-01-01 00:00"}
    lines = [versions]
    for name, ours, theirs in (("a", 0.5, 0.25), ("b", 0.5, 0.5), ("c", 0.25, 0.75)):
        for split in (1, 2):
            lines.append(line(name, "TopForest", split, [0, 0, ours, 1, 1]))
            lines.append(line(name, "LightGBM", split, [0, 0, theirs, 1, 1]))
    lines.append(line("a", "unfinished", 1, [1.0] * 5))
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    results = tables.Results.of(path)
    assert sorted(results.complete()) == ["LightGBM", "TopForest"]
    assert results.ranks(["TopForest", "LightGBM"], "at 1 %") == {
        "TopForest": 1.5,
        "LightGBM": 1.5,
    }  # 1, 1.5, 2 and 2, 1.5, 1
    assert np.allclose(results.means(["TopForest"], "mean").ravel(), [0.5, 0.5, 0.45])
    text = tables.rendered(path)
    assert "| LightGBM | 1 : 1 : 1 | -0.083 |" in text
    assert "is ahead of tuned LightGBM on 1 of 3 sets" in text
    assert "| TopForest | 2 | 2 | 2 |\n| unfinished | 1 | 0 | 0 |" in text
    assert "### With" not in text


@pytest.mark.parametrize("seed", range(3))
def test_the_signed_rank_test_is_that_of_scipy(tables, seed):
    difference = np.random.default_rng(seed).integers(-3, 5, 9) / 8  # ties and zeros
    assert tables.signed_rank_p(difference) == pytest.approx(wilcoxon(difference).pvalue, abs=1e-12)
    assert tables.signed_rank_p(np.zeros(3)) == 1.0


def test_methods_of_fewer_splits_are_compared_on_those_that_all_share(tables, tmp_path):
    lines = [{"versions": {"numpy": "1"}, "cores": 2, "date": "2026-01-01 00:00"}]
    for name, n_slow, n_slower in (("a", 3, 3), ("b", 4, 1)):
        for split in range(1, 6):
            lines.append(line(name, "TopForest", split, [0.5 if split <= 3 else 0.0] * 5))
            lines.append(line(name, "LightGBM", split, [0.25] * 5))
        lines += [line(name, "slow one", split, [0.75] * 5) for split in range(1, n_slow + 1)]
        lines += [line(name, "slower one", split, [0.875] * 5) for split in range(1, n_slower + 1)]
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    all_splits, rest = tables.rendered(path).split("### With slow one: the splits that all were run on\n")
    on_both, on_one = rest.split("### With slower one: the splits that all were run on, without b\n")
    assert "| TopForest | **0.300** | **0.300** |" in all_splits
    assert "| slow one |" not in all_splits
    assert "| TopForest | 0.500 | 0.375 |" in on_both
    assert "| slow one | **0.750** | **0.750** |" in on_both
    assert "| splits | 3 | 4 |" in on_both
    assert "| slower one |" not in on_both
    assert "| TopForest | 0.500 | 0.500 | 3.00 | 3.00 |" in on_one
    assert "| slow one | 0.750 | 0.750 | 2.00 | 2.00 |" in on_one
    assert "| slower one | **0.875** | 0.875 | 1.00 | 1.00 |" in on_one
    assert "| TopForest | 5 | 5 |\n| slow one | 3 | 4 |\n| slower one | 3 | 1 |" in on_one
