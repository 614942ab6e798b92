"""Boosting of weak rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank.arrays import Floats, Mask
from toprank.checks import require_count
from toprank.log import logger, tell
from toprank.pairwise.graph import Preferences
from toprank.pairwise.preference_ranker import FOUND_STATE, LEVELS_STATE, PreferenceRanker
from toprank.saved_state import Array, Schema

# Digits of the advantage of a weak ranking that count: those behind are rounding errors, by which none is chosen.
_DIGITS = 12
# A ranking that has nearly all pairs on its side, or nearly none, would get an infinite weight.
_LARGEST_ADVANTAGE = 1 - 1e-10


class Cut(NamedTuple):
    """A weak ranking, 1 where a feature is above a threshold and 0 elsewhere, with its advantage r."""

    feature: int
    threshold: float
    advantage: float


class SortedColumns:
    """All entries of a matrix, column by column and the largest first; of a sparse one its zeros are one entry."""

    def __init__(self, X: Any) -> None:
        n_rows, n_columns = X.shape
        entries = csc_array(X) if issparse(X) else None
        if entries is None:
            columns, rows = np.repeat(np.arange(n_columns), n_rows), np.tile(np.arange(n_rows), n_columns)
            values = np.asarray(X, dtype=np.float64).T.ravel()
        else:
            entries.sum_duplicates()
            with_zeros = np.flatnonzero(np.diff(entries.indptr) < n_rows)
            columns = np.append(np.repeat(np.arange(n_columns), np.diff(entries.indptr)), with_zeros)
            rows = np.append(entries.indices, np.full(len(with_zeros), n_rows))
            values = np.append(entries.data.astype(np.float64), np.zeros(len(with_zeros)))
        order = np.lexsort((-values, columns))
        self.columns, self.rows, self.values = columns[order], rows[order], values[order]
        self.first = np.searchsorted(self.columns, np.arange(n_columns))
        # a threshold may be behind an entry that is larger than the next one of its column
        same_column = self.columns[1:] == self.columns[:-1]
        self.ends = np.flatnonzero(same_column & (self.values[1:] < self.values[:-1]))

    def best_cut(self, potentials: Floats) -> Cut | None:
        """The weak ranking of the largest |r|, of potentials of sum zero; None if there is none."""
        if not len(self.ends):
            return None
        terms = np.append(potentials, 0.0)[self.rows]
        is_zeros = self.rows == len(potentials)
        sums = np.bincount(self.columns, terms, len(self.first))
        terms[is_zeros] = -sums[self.columns[is_zeros]]  # what is left of zero
        reached = np.cumsum(terms)
        before = np.append(0.0, reached)[self.first][self.columns[self.ends]]
        advantages = reached[self.ends] - before
        chosen = int(np.argmax(np.round(np.abs(advantages), _DIGITS)))
        end = self.ends[chosen]
        threshold = 0.5 * self.values[end] + 0.5 * self.values[end + 1]
        return Cut(int(self.columns[end]), float(threshold), float(advantages[chosen]))


class PairWeights:
    """The distribution of boosting over the preferred pairs, by what it is of single rows.

    The weight of a pair of rows i ≻ j is p exp(H(j) − H(i)), a product of a factor of each: sums over the pairs of two
    levels are products of sums over their rows. Explicit pairs are added one by one.
    """

    def __init__(self, preferences: Preferences) -> None:
        self.preferences = preferences

    def at(self, H: Floats) -> tuple[Floats, float]:
        """For each row the weight of its pairs as the better one minus that as the worse; the mean exp(H(j) − H(i)).

        The former are shares of all pairs. The exponents are shifted by the range of H, so that none overflows.
        """
        given, low, high = self.preferences, float(H.min()), float(H.max())
        as_better, as_worse = given.weights * np.exp(low - H), given.weights * np.exp(H - high)
        n_levels = len(given.strengths)
        of_better, of_worse = (np.bincount(given.level, factor, n_levels) for factor in (as_better, as_worse))
        total = float(of_better @ given.strengths @ of_worse)
        potentials = as_better * (given.strengths @ of_worse)[given.level]
        potentials -= as_worse * (given.strengths.T @ of_better)[given.level]
        if len(given.pairs):
            better, worse = given.pairs.T
            by_pair = given.pair_weights * np.exp(H[worse] - H[better] + low - high)
            total += float(by_pair.sum())
            potentials += np.bincount(better, by_pair, len(H)) - np.bincount(worse, by_pair, len(H))
        if not total > 0:
            return np.zeros(len(H)), 0.0
        return potentials / total, float(total / given.total * np.exp(high - low))


@dataclass(eq=False, repr=False, kw_only=True)
class RankBoost(PreferenceRanker):
    r"""Boost weak rankings, each a threshold of one feature.

    .. math:: H(x) = \sum_{t=1}^T a_t\, [x_{f_t} > \theta_t], \qquad
              a_t = \frac12 \log \frac{1 + r_t}{1 - r_t}, \qquad
              r_t = \sum_{i \succ j} D_t(i, j) \left( [x_{i f_t} > \theta_t] - [x_{j f_t} > \theta_t] \right)

    where :math:`D_t(i, j) \propto p_{ij} \exp(H(x_j) - H(x_i))`, and feature and threshold have the largest
    :math:`|r_t|` of all. Each round lowers a bound of the share of pairs in the wrong order. It is here for comparison
    with the literature.

    The pairs of levels are never enumerated: their distribution is a product, and a round costs O(entries of X). For
    two levels this is the form of the reference for two classes. Explicit pairs, its general form, are taken one by
    one.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of rounds T, at most: it ends where no weak ranking is of use.
    {graph}
    verbose : int, default=0
        With 1, log the progress to the logger "toprank".
    {better_label}

    Attributes
    ----------
    features_ : ndarray of shape (n_rounds,)
        The feature of each weak ranking.
    thresholds_ : ndarray of shape (n_rounds,)
        Its threshold.
    heights_ : ndarray of shape (n_rounds,)
        Its weight in the score.
    objective_ : float
        The mean of exp(H(x_j) − H(x_i)) over the preferred pairs, at least the share of those in the wrong order.
    n_iter_ : int
        Number of rounds.
    history_ : dict of ndarray
        One entry a round, and one before: ``iteration``, ``objective``.
    {levels}

    References
    ----------
    Freund, Iyer, Schapire and Singer, An efficient boosting algorithm for combining preferences, JMLR 4, 2003.

    Examples
    --------
    >>> from toprank.baselines import RankBoost
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> model = RankBoost(n_estimators=50).fit(X, y)
    >>> bool(1 - model.score(X, y) <= model.objective_ < 0.5)
    True
    """

    saved_state: ClassVar[Schema] = Schema(
        {
            **LEVELS_STATE,
            "features_": Array("i8", ("n_rounds",), low=0, below="n_features_in_"),
            "thresholds_": Array("f8", ("n_rounds",)),
            "heights_": Array("f8", ("n_rounds",)),
            **FOUND_STATE,
        },
        fitted="objective_",
    )

    n_estimators: int = 100

    def _check_parameters(self) -> None:
        require_count("n_estimators", self.n_estimators)

    def _fit_rows(self, X: Any, preferences: Preferences, kept: Mask) -> None:
        columns, weights = SortedColumns(X), PairWeights(preferences)
        H = np.zeros(X.shape[0])
        cuts: list[Cut] = []
        heights: list[float] = []
        potentials, objective = weights.at(H)
        objectives = [objective]
        while len(cuts) < self.n_estimators:
            cut = columns.best_cut(potentials)
            if cut is None or abs(cut.advantage) < 10.0**-_DIGITS:
                break
            r = float(np.clip(cut.advantage, -_LARGEST_ADVANTAGE, _LARGEST_ADVANTAGE))
            cuts.append(cut)
            heights.append(0.5 * float(np.log1p(r) - np.log1p(-r)))
            H += heights[-1] * (_column(X, cut.feature) > cut.threshold)
            potentials, objective = weights.at(H)
            objectives.append(objective)
            tell(f"round {len(cuts)}, loss {objective:.1e}")
            if self.verbose:
                logger().info("round %d: feature %d, loss %.6g", len(cuts), cut.feature, objective)
        self.features_ = np.array([cut.feature for cut in cuts], dtype=np.int64)
        self.thresholds_ = np.array([cut.threshold for cut in cuts], dtype=np.float64)
        self.heights_ = np.array(heights, dtype=np.float64)
        self.objective_, self.n_iter_ = objectives[-1], len(cuts)
        self.history_ = {"iteration": np.arange(len(objectives)), "objective": np.array(objectives)}

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score rows: larger is better. Only differences of scores have a meaning.

        {rows_and_scores}
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        X = csc_array(X) if issparse(X) else X
        scores = np.zeros(X.shape[0])
        for feature in np.unique(self.features_):
            own = self.features_ == feature
            order = np.argsort(self.thresholds_[own], kind="stable")
            steps = np.append(0.0, np.cumsum(self.heights_[own][order]))
            scores += steps[np.searchsorted(self.thresholds_[own][order], _column(X, feature), side="left")]
        return scores


def _column(X: Any, feature: int) -> Floats:
    column = X[:, [feature]]
    return np.asarray(column.toarray() if issparse(column) else column, dtype=np.float64).ravel()
