"""Reports on scores without a model, and on several scores side by side."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from report.models import model_and_rows, ranked_rows
from toprank.metrics import precision_at_k, tpr_at_fpr, wmw_score
from toprank.ranking.paired import Budget, found_differences
from toprank.report import build_report, write_report


@pytest.fixture(scope="module")
def rows():
    y, ours = ranked_rows(600)
    theirs = ours + np.random.default_rng(1).normal(size=600)
    return y, {"ours": ours, "incumbent": theirs}


def text_of(page):
    return re.sub(r"<[^>]+>", "\n", page).replace("\xa0", " ")


def test_scores_alone_are_those_of_a_model(rows):
    """All numbers are the same; what only a model can tell is left out."""
    y, scores = rows
    page, with_model = (
        build_report(y_true=y, scores=scores["ours"], k=30),
        build_report(*model_and_rows(y, scores["ours"]), y, k=30),
    )
    metrics = r'data-metric="([^"]+)"'
    assert re.findall(metrics, page) == re.findall(metrics, with_model)
    for name in ("summary", "budget", "curves", "metrics", "rows", "card"):
        assert f'<section id="{name}"' in page
    for name in ("features", "certificate"):
        assert f'<section id="{name}"' not in page
        assert f'<section id="{name}"' in with_model
    assert "they raise 30 alerts" in text_of(page)
    assert 'id="own-threshold"' not in page


@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars"])
def test_several_scores_side_by_side(rows, kind):
    y, scores = rows
    given = {"mapping": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame}[kind](scores)
    page = build_report(y_true=y, scores=given, k=30)
    values = [float(value) for value in re.findall(r'data-metric="([^"]+)"', page)]
    assert len(values) % 2 == 0
    expected = [tpr_at_fpr(y, one, max_fpr=0.0) for one in scores.values()]
    assert values[:2] == pytest.approx(expected)
    assert values[-2:] == pytest.approx([wmw_score(y, one) for one in scores.values()])
    found = {name: round(30 * precision_at_k(y, one, k=30)) for name, one in scores.items()}
    said = text_of(page)
    title = f"Of {y.sum()} positives, 30 alerts find {found['ours']} by ours and {found['incumbent']} by incumbent"
    assert f"<h1>{title}</h1>" in page
    difference = found_differences(y == 1, *scores.values(), [Budget("k", 30)])[0]
    more = f"ours finds {found['ours'] - found['incumbent']} more than incumbent (95 % limits of the difference: "
    assert f"{more}{difference.lower:+.0f} to {difference.upper:+.0f})".replace("-", "−") in said
    assert page.count('class="curve list-1"') == 3 * 2  # the line and its key, in three figures
    assert "Rank by incumbent" in said


def test_a_model_against_other_scores(rows):
    y, scores = rows
    page = build_report(*model_and_rows(y, scores["ours"]), y, scores={"incumbent": scores["incumbent"]}, k=30)
    assert "FirstColumn − incumbent" in page
    assert '<section id="certificate"' in page
    with pytest.raises(ValueError, match="'FirstColumn', which is that of the model"):
        build_report(*model_and_rows(y, scores["ours"]), y, scores={"FirstColumn": scores["incumbent"]})


def test_same_scores_same_page(rows):
    y, scores = rows
    assert build_report(y_true=y, scores=scores) == build_report(y_true=y, scores=scores)


@pytest.mark.parametrize(
    ("label", "target", "title"),
    [
        ("fraud", "class", "30 alerts find {n} of {m} cases of fraud"),
        ("yes", "fraud", "30 alerts find {n} of {m} cases of fraud"),
        ("1", None, "30 alerts find {n} of {m} positives"),
    ],
)
def test_title_and_labels_are_those_of_the_user(rows, label, target, title):
    y, scores = rows
    labels = np.where(y == 1, label, "other")
    page = build_report(y_true=y, scores=scores["ours"], labels=labels, target_name=target, k=30)
    n = round(30 * precision_at_k(y, scores["ours"], k=30))
    assert f"<h1>{title.format(n=n, m=y.sum())}</h1>" in page
    assert f"that is labelled {label}" in text_of(page)
    assert f'class="hit">{label} ●' in page
    assert 'data-label="label">other</td>' in page


def test_title_of_a_rate_and_of_the_user(rows):
    y, scores = rows
    n = round(tpr_at_fpr(y, scores["ours"], max_fpr=0.05) * y.sum())
    page = text_of(build_report(y_true=y, scores=scores["ours"], max_fpr=0.05))
    assert f"{n} of {y.sum()} positives found with 5 % false alarms" in page
    assert "<h1>Mine</h1>" in build_report(y_true=y, scores=scores["ours"], title="Mine")


REFUSED = {
    "nothing": ({}, "a report needs a fitted model with rows X, or scores"),
    "no labels": ({"scores": [0.1, 0.2]}, "the labels are given as y or as y_true, but none is there"),
    "two labels": ({"y": [0, 1], "y_true": [0, 1], "scores": [0.1, 0.2]}, "both are there"),
    "rows without model": ({"X": [[0], [1]], "y": [0, 1], "scores": [0.1, 0.2]}, "X is for a model"),
    "model without rows": ({"model": object(), "y": [0, 1]}, "the model needs rows"),
    "short": ({"y": [0, 1], "scores": {"ours": [1.0]}}, "2 labels and 1 scores in 'ours'"),
    "missing": ({"y": [0, 1, 1], "scores": {"ours": [1.0, np.nan, 2.0]}}, r"'ours' has 1 values.*nan in row 1"),
    "no column": ({"y": [0, 1], "scores": {}}, "scores must have one to 6 columns"),
    "many": ({"y": [0, 1], "scores": {str(i): [0, 1] for i in range(7)}}, "scores must have one to 6 columns"),
    "labels": ({"y": [0, 1], "scores": [0.1, 0.2], "labels": ["a"]}, "y has 2 rows and labels has 1"),
    "texts": ({"y": [0, 1], "scores": ["a", "b"]}, "scores must be numeric"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_refused(tmp_path, case):
    given, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        write_report(tmp_path / "page.html", **given)
    assert list(tmp_path.iterdir()) == []
