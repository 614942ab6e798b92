"""The choice of a head: penalties, τ and honesty compared on rows that a head has not seen, with the trees as they are.

1. Each row has its honest leaves and its out-of-bag prior: what its own label has not shaped.
2. In each of a few folds, heads are fitted to the other rows along a falling penalty, each from the last one, and score
   the honest leaves of the rows of the fold.
3. The scores of all folds together are one list for each candidate, and the list of the prior alone is one more. The
   best share of positives found at false positive rates around the budget decides; of equals, the one nearest to the
   prior.

A head that has seen a row is no judge of it: with a small penalty its list of training rows is perfect, with honest
leaves too. That is why heads are fitted in folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from toprank.arrays import Floats, Mask, Rows
from toprank.exceptions import DegenerateSolutionWarning
from toprank.matrices.leaves import LeafMatrix
from toprank.metrics.roc import tpr_at_fpr

# Folds, the tolerance within them, and multiples of the budget whose false positive rates count.
_FOLDS, _TOLERANCE, _AROUND = 3, 1e-2, (0.2, 0.5, 1.0, 2.0, 5.0)
# Rows that decide, at most; of more rows all positives, up to a half, and random negatives.
_MOST_ROWS = 5000


@dataclass(frozen=True)
class Candidate:
    """A head: of the prior alone, or of prior and leaves with a penalty, a τ and honest or all leaves."""

    alpha: float
    tau: float | None
    honest: bool
    prior_alone: bool = False

    @property
    def parameters(self) -> dict[str, float]:
        """What to set in the head."""
        return {"alpha": self.alpha} | ({} if self.tau is None else {"tau": self.tau})


@dataclass(frozen=True)
class TrainingLeaves:
    """What heads are fitted to: honest leaves with the prior as last column, labels and weights."""

    honest: LeafMatrix
    positive: Mask
    weights: Floats

    def matrix(self, candidate: Candidate) -> Any:
        """The rows as a candidate sees them in training."""
        if candidate.prior_alone:
            return self.honest.extra
        return self.honest if candidate.honest else self.honest.masked(self.honest.mask[:, :0])

    def to_score(self, candidate: Candidate) -> Any:
        """The rows as a candidate scores them: honest always."""
        return self.honest.extra if candidate.prior_alone else self.honest

    def __getitem__(self, rows: Rows) -> TrainingLeaves:
        return TrainingLeaves(self.honest[rows], self.positive[rows], self.weights[rows])


@dataclass(frozen=True)
class Judged:
    """A candidate, the scores of the rows by heads that have not seen them, and what they are worth."""

    candidate: Candidate
    scores: Floats
    worth: float


@dataclass(frozen=True)
class Jury:
    """Rows, the folds in which heads are fitted to some of them and score the others, and the budget."""

    rows: TrainingLeaves
    folds: list[tuple[Rows, Rows]]
    budget: float

    @classmethod
    def of(cls, rows: TrainingLeaves, budget: float, random: np.random.RandomState, *, all_rows: bool = False) -> Jury:
        """All rows, or a part of many."""
        rows = rows if all_rows else _deciding(rows, random)
        fewest = int(min(rows.positive.sum(), (~rows.positive).sum()))
        if fewest < 2:
            raise ValueError("TopForest needs two rows of each class at least, so that some can judge what others say")
        folds = StratifiedKFold(min(_FOLDS, fewest), shuffle=True, random_state=random.randint(2**31 - 1))
        return cls(rows, list(folds.split(rows.weights, rows.positive)), budget)

    def judged(self, head: Any, candidates: Sequence[Candidate]) -> list[Judged]:
        """All candidates with what they are worth."""
        scores = {candidate: np.zeros(len(self.rows.weights)) for candidate in candidates}
        for train, test in self.folds:
            for candidate, model in _along_paths(head, candidates, self.rows[train]):
                scores[candidate][test] = model.decision_function(self.rows.to_score(candidate)[test])
        return [Judged(one, scores[one], self._worth(scores[one])) for one in candidates]

    def _worth(self, scores: Floats) -> float:
        """Mean share of the positives found at false positive rates around the budget."""
        positive, weights = self.rows.positive, self.rows.weights
        rates = [min(factor * self.budget, 1.0) for factor in _AROUND]
        return float(np.mean([tpr_at_fpr(positive, scores, max_fpr=rate, sample_weight=weights) for rate in rates]))


def chosen(candidates: Sequence[Judged]) -> Judged:
    """The best one; of equals the prior alone, then the largest penalty."""
    return max(candidates, key=lambda one: (one.worth, one.candidate.prior_alone, one.candidate.alpha))


def fitted(head: Any, candidate: Candidate, rows: TrainingLeaves) -> Any:
    """A head with the parameters of a candidate, fitted to all rows."""
    model = clone(head).set_params(**candidate.parameters)
    return model.fit(rows.matrix(candidate), rows.positive, sample_weight=rows.weights)


def _along_paths(head: Any, candidates: Sequence[Candidate], rows: TrainingLeaves) -> Iterator[tuple[Candidate, Any]]:
    """The heads of the candidates, of equal τ and honesty each from the one of the next larger penalty."""
    paths: dict[Any, Any] = {}
    for candidate in sorted(candidates, key=lambda one: -one.alpha):
        kind = (candidate.tau, candidate.honest, candidate.prior_alone)
        if kind not in paths:
            paths[kind] = clone(head).set_params(warm_start=True, tol=max(head.tol, _TOLERANCE), verbose=0)
        model = paths[kind].set_params(**candidate.parameters)
        with warnings.catch_warnings():  # what matters is what the scores are worth
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DegenerateSolutionWarning)
            model.fit(rows.matrix(candidate), rows.positive, sample_weight=rows.weights)
        yield candidate, model


def _deciding(rows: TrainingLeaves, random: np.random.RandomState) -> TrainingLeaves:
    """All rows, or of many rows the positives, up to a half, and random negatives: rates keep their meaning."""
    if len(rows.weights) <= _MOST_ROWS:
        return rows
    order = random.permutation(len(rows.weights))
    positives, negatives = order[rows.positive[order]], order[~rows.positive[order]]
    positives = positives[: max(_MOST_ROWS // 2, _MOST_ROWS - len(negatives))]
    return rows[np.sort(np.concatenate([positives, negatives[: _MOST_ROWS - len(positives)]]))]
