"""What puts rows at the top: how much each column moves them, and the reasons of each of the best rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from toprank.exceptions import InputError
from toprank.explanation.contributions import needs_background
from toprank.explanation.importance import TopImportance, importance_by_scores, spread
from toprank.explanation.reasons import Reason, reasons
from toprank.report.evaluation import Evaluation
from toprank.report.numbers_as_text import count, number
from toprank.report.top_rows import best_rows

N_REASONS = 3
MOST_SHOWN = 15
# Rows whose contributions are computed, at the top and of all; with very many columns fewer.
MOST_ROWS, MOST_NUMBERS = 100, 5_000_000
# Held-out rows whose mean stands for that of the training rows where this is not known.
MOST_BACKGROUND = 10_000


@dataclass(frozen=True)
class TopReasons:
    """Columns by how much they move the rows within the budget, the reasons of the best rows, and what was measured.

    `by_trees` says whether they are Shapley values of trees.
    """

    importance: TopImportance
    of_rows: list[list[Reason]]
    note: str
    by_trees: bool

    def bars(self) -> list[dict[str, Any]]:
        """The bars of the first columns on a width of 200: of the rows at the top, and of all rows."""
        found, shown = self.importance, slice(MOST_SHOWN)
        longest = float(max(found.at_the_top[shown].max(), found.of_all[shown].max())) or 1.0
        decimals = int(np.clip(2 - np.floor(np.log10(longest)), 0, 9))
        columns = zip(found.names[shown], found.at_the_top, found.of_all, found.raised, strict=False)
        return [
            {
                "name": name,
                "at_the_top": f"{at_the_top:,.{decimals}f}",
                "of_all": f"{of_all:,.{decimals}f}",
                "kind": "bar-up" if raised >= 0 else "bar-down",
                "width": round(200 * float(at_the_top) / longest, 2),
                "width_of_all": round(200 * float(of_all) / longest, 2),
            }
            for name, at_the_top, of_all, raised in columns
        ]


def top_reasons(evaluation: Evaluation, alerts: float, n_rows: int, background: Any) -> TopReasons | str | None:
    """What puts rows at the top, a sentence that says why this is not known, or None where there is no model."""
    fitted = evaluation.fitted
    if fitted is None:
        return None
    if is_classifier(fitted.model) and evaluation.pos_label == fitted.model.classes_[0]:
        return "The model was fitted to find the other class, so there are no reasons for this one."
    X = fitted.table.tocsr() if issparse(fitted.table) else fitted.table
    scores, n_top = evaluation.lists[0].scores, max(1, round(alerts))
    most = min(MOST_ROWS, max(1, MOST_NUMBERS // fitted.X.shape[1]))
    origin = "those given as background" if background is not None else "the training rows"
    if background is None and needs_background(fitted.given):
        background = _safe_indexing(X, spread(np.arange(len(scores)), MOST_BACKGROUND))
        origin = "held-out rows, as that of the training rows is not known"
    best = best_rows(scores, n_rows)
    try:
        found = importance_by_scores(fitted.given, X, scores, n_top, background, most)
        top = _safe_indexing(X, best)
        of_rows = reasons(fitted.given, top, N_REASONS, background=background) if n_rows else []
    except InputError:
        name = type(fitted.parts.parts[0].estimator).__name__
        return (
            f"The score of this {name} is not known as a sum over columns, so it has no reasons; linear models and a "
            "TopForest of its own trees or those of LightGBM or XGBoost have them."
        )
    by_trees = hasattr(fitted.parts.parts[0].estimator, "contributions")
    origin += " (Shapley values of the trees)" if by_trees else ""
    return TopReasons(found, of_rows, _note(found, min(most, n_top), min(most, len(scores)), origin), by_trees)


def _note(found: TopImportance, n_top: int, n_all: int, origin: str) -> str:
    """What the numbers mean."""
    all_of_them = f"the {count(n_top)} rows" if n_top > 1 else "the one row"
    within = f"{count(n_top)} of the {count(found.n_top)} rows" if n_top < found.n_top else all_of_them
    return (
        f"By how much a column moves the score of a row, up or down: the mean size over {within} within the budget "
        f"shown first, and over {count(n_all)} of all rows. It is measured from the mean of {origin}, in units of the "
        "score; "
        f"a row within the budget is on average {number(float(found.raised.sum()), 3)} above that mean. "
        "Columns that go together share what they say, and a reason is no cause."
    )
