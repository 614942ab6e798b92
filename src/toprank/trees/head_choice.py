"""The choice of a head: penalties, τ and honesty compared on rows that a head has not seen, with the trees as they are.

1. Each row has its honest leaves and its prior out of bag or out of fold: what its own label has not shaped.
2. In each of a few folds, heads are fitted to the other rows along a falling penalty, each from the last one, and score
   the honest leaves of the rows of the fold.
3. The scores of all folds together are one list for each candidate, and the list of the prior alone is one more. The
   share of positives found at false positive rates around the budget decides: the best one is taken if it is clearly
   better than a usual one, and none that is behind the prior alone.

A head that has seen a row is no judge of it: with a small penalty its list of training rows is perfect, with honest
leaves too. That is why heads are fitted in folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank.arrays import Floats, Rows
from toprank.estimators._base import TopClassifier
from toprank.estimators.budget_threshold import smallest_threshold
from toprank.exceptions import DegenerateSolutionWarning
from toprank.matrices.leaves import LeafMatrix
from toprank.metrics.roc import tpr_at_fpr
from toprank.trees.training_leaves import TrainingLeaves, fold_numbers

# Folds, the tolerance within them, and multiples of the budget whose false positive rates count.
_FOLDS, _TOLERANCE, _AROUND = 3, 1e-2, (0.2, 0.5, 1.0, 2.0, 5.0)
# Penalties that are compared, one that is tried too where the last of them is the best, the one that others have to
# beat clearly, and the multiple of the budget that is tried as τ of the best one.
ALPHAS, _SMALLER_ALPHA, _USUAL_ALPHA, _WIDER = (1.0, 0.1, 0.01), 1e-3, 0.1, 5.0
# What the prior is multiplied by, where α is not above 1.
_FREEDOM = 5.0
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
    def freedom(self) -> float:
        """What the prior is multiplied by: its penalty is α over the square, and does not grow with α beyond 1.

        So the values of leaves vanish beside the prior as α grows.
        """
        return _FREEDOM * float(np.sqrt(max(self.alpha, 1.0)))

    @property
    def parameters(self) -> dict[str, float]:
        """What to set in the head."""
        return {"alpha": self.alpha} | ({} if self.tau is None else {"tau": self.tau})


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
        numbers = fold_numbers(rows.positive, _FOLDS, random) if rows.fold_of is None else rows.fold_of
        folds = [(np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in range(int(numbers.max()) + 1)]
        return cls(rows, folds, budget)

    def judged(self, head: Any, candidates: Sequence[Candidate]) -> list[Judged]:
        """All candidates with what they are worth."""
        scores = {candidate: np.zeros(len(self.rows.weights)) for candidate in candidates}
        for k, (train, test) in enumerate(self.folds):
            rows = self.rows.in_fold(k)
            there, here = rows[train], rows[test]
            for candidate, model in _along_paths(head, candidates, there):
                scores[candidate][test] = model.decision_function(to_score(here, candidate))
        return [Judged(one, scores[one], self._worth(scores[one])) for one in candidates]

    def _worth(self, scores: Floats) -> float:
        """Mean share of the positives found at false positive rates around the budget."""
        positive, weights = self.rows.positive, self.rows.weights
        rates = [min(factor * self.budget, 1.0) for factor in _AROUND]
        return float(np.mean([tpr_at_fpr(positive, scores, max_fpr=rate, sample_weight=weights) for rate in rates]))


@dataclass(frozen=True)
class Choice:
    """What is varied: the budget, the penalty and honesty unless they are given, and whether τ of the head is."""

    budget: float
    alpha: float | Literal["auto"]
    honest: bool | Literal["auto"]
    varies_tau: bool

    def candidates(self, honesty: Sequence[bool]) -> list[Candidate]:
        """What is compared; a parameter that is given is not varied."""
        alphas = ALPHAS if self.alpha == "auto" else (float(self.alpha),)
        honest = honesty if self.honest == "auto" else (self.honest,)
        heads = [Candidate(alpha, None, one) for alpha in alphas for one in honest]
        return [Candidate(1.0, None, honest=True, prior_alone=True), *heads] if self.alpha == "auto" else heads

    def best(
        self, head: Any, candidates: Sequence[Candidate], rows: TrainingLeaves, random: np.random.RandomState
    ) -> tuple[Judged, list[Judged]]:
        """The best candidate, with scores of the rows that decide, and all candidates.

        Where the smallest penalty is the best, a smaller one is tried; then a wider τ.
        """
        jury = Jury.of(rows, self.budget, random)
        found = jury.judged(head, candidates)
        n_positives = int(jury.rows.positive.sum())
        best = chosen(found, n_positives)
        if self.alpha != "auto" or best.candidate.prior_alone:
            return best, found
        if best.candidate.alpha == ALPHAS[-1]:
            found += jury.judged(head, [replace(best.candidate, alpha=_SMALLER_ALPHA)])
            best = max(best, found[-1], key=lambda one: one.worth)  # of equal ones the first
        if self.varies_tau:
            wider = replace(best.candidate, tau=min(_WIDER * self.budget, 0.5 * (1 + self.budget)))
            found += (judged := jury.judged(head, [wider]))
            best = judged[0] if is_clearly_better(judged[0], best, n_positives) else best
        return best, found

    def quantile(self, best: Judged, head: Any, rows: TrainingLeaves, random: np.random.RandomState) -> float:
        """The score of the best candidate above which is the budget, by heads that have not seen the rows."""
        if len(best.scores) < len(rows.weights):  # a head of fewer rows scores on another scale
            (best,) = Jury.of(rows, self.budget, random, all_rows=True).judged(head, [best.candidate])
        return smallest_threshold(best.scores[~rows.positive], rows.weights[~rows.positive], self.budget)


def chosen(candidates: Sequence[Judged], n_positives: int) -> Judged:
    """The best one if it is clearly better than the usual one, else the usual one; none that is behind the prior alone.

    The usual one has the usual penalty, and all leaves where there is a choice: with few positives the best of many is
    best by chance.
    """
    best = max(candidates, key=lambda one: (one.worth, one.candidate.prior_alone, one.candidate.alpha))
    heads = [one for one in candidates if one.candidate.alpha == _USUAL_ALPHA and not one.candidate.prior_alone]
    usual = min(heads, key=lambda one: one.candidate.honest, default=best)
    if is_clearly_better(best, usual, n_positives):
        return best
    return max([usual, *(one for one in candidates if one.candidate.prior_alone)], key=lambda one: one.worth)


def is_clearly_better(one: Judged, other: Judged, n_positives: int) -> bool:
    """Whether it found more by half a standard error of the share that the other one found."""
    return one.worth > other.worth + 0.5 * float(np.sqrt(other.worth * (1 - other.worth) / n_positives))


def told(taken: Judged, candidates: Sequence[Judged], tau: float | None) -> dict[str, Any]:
    """What was chosen, in numbers and words; `tau` is that of the head."""
    alone = [one.worth for one in candidates if one.candidate.prior_alone]
    table = [{**asdict(one.candidate), "worth": one.worth} for one in candidates]
    prior, most = alone[0] if alone else None, max(one.worth for one in candidates)
    more = "" if prior is None else f", the prior alone {prior:.3f}"
    if len(candidates) == 1:
        why = "no choice was left"
    elif taken.candidate.prior_alone:
        why = f"no head on the leaves found clearly more than the prior alone, {taken.worth:.3f}"
    elif taken.worth < most:
        why = f"it found {taken.worth:.3f} of the positives{more}; none found clearly more, the best {most:.3f}"
    else:
        why = f"the best of {len(candidates)} candidates: it found {taken.worth:.3f} of the positives{more}"
    found = {"worth": taken.worth, "worth_of_prior": prior, "why": why, "candidates": table}
    return {**asdict(taken.candidate), "tau": tau, **found}


def is_linear_and_convex(head: Any) -> bool:
    """Whether an estimator can be the head."""
    return (
        isinstance(head, TopClassifier) and getattr(head, "kernel", "linear") == "linear" and not head.false_positives
    )


def fitted(head: Any, candidate: Candidate, rows: TrainingLeaves) -> Any:
    """A head with the parameters of a candidate, fitted to all rows."""
    model = clone(head).set_params(**candidate.parameters)
    return model.fit(to_fit(rows, candidate), rows.positive, sample_weight=rows.weights)


def to_fit(rows: TrainingLeaves, candidate: Candidate) -> Any:
    """The rows as a candidate sees them in training."""
    return with_prior(rows.honest if candidate.honest else rows.whole, rows.prior, candidate)


def to_score(rows: TrainingLeaves, candidate: Candidate) -> Any:
    """The rows as a candidate scores them: honest always."""
    return with_prior(rows.honest, rows.prior, candidate)


def with_prior(leaves: LeafMatrix, prior: Floats, candidate: Candidate) -> Any:
    """Leaves and prior as a candidate sees them."""
    prior = candidate.freedom * prior
    return prior if candidate.prior_alone else leaves.with_extra(prior)


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
            model.fit(to_fit(rows, candidate), rows.positive, sample_weight=rows.weights)
        yield candidate, model


def _deciding(rows: TrainingLeaves, random: np.random.RandomState) -> TrainingLeaves:
    """All rows, or of many rows the positives, up to a half, and random negatives: rates keep their meaning."""
    if len(rows.weights) <= _MOST_ROWS:
        return rows
    order = random.permutation(len(rows.weights))
    positives, negatives = order[rows.positive[order]], order[~rows.positive[order]]
    positives = positives[: max(_MOST_ROWS // 2, _MOST_ROWS - len(negatives))]
    return rows[np.sort(np.concatenate([positives, negatives[: _MOST_ROWS - len(positives)]]))]
