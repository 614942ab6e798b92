"""A threshold above which a given share of all rows is expected."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from math import ceil, floor
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from toprank.base import clone_for_scores
from toprank.checks import require_flag, require_share
from toprank.decision._labels import coding_of
from toprank.decision._rows import PassesProbabilities, row_arguments, rows_with_weight
from toprank.decision._scores import RESPONSES, check_response_method, scores_of
from toprank.decision.order_statistics import raised_order_statistic
from toprank.exceptions import InputError
from toprank.positive_class import warn_of_sorted_scorer
from toprank.ranking.tie_runs import ROUNDING, score_column
from toprank.saved_state import Number, Part, Schema, count

Rows = NDArray[np.intp]


@dataclass(eq=False, repr=False)
class AlertShareClassifier(PassesProbabilities):
    r"""Set a threshold above which at most a given share of all rows is expected: 200 alerts a day on average.

    .. math:: \Pr(\text{a new row is an alert}) \le \text{share}

    A part of the rows is held out from training. With n of them the threshold is the order statistic with
    :math:`\lfloor \text{share} \, (n + 1) \rfloor - 1` scores above it, and a row is positive if its score is
    *strictly* above. The promise is that of split conformal prediction: it is exact for rows to come that are
    exchangeable with the held-out ones, whatever the scorer, with ties on the safe side, on average over the draws of
    the held-out rows. It says nothing of how many rows come: alerts a day are the share of the rows of that day.

    `TopKClassifier` takes the best rows of each batch instead, which needs the whole batch; here each row is decided
    alone, as it comes. For a bound on false alarms take `NeymanPearsonClassifier`.

    Parameters
    ----------
    estimator : estimator
        A classifier with `decision_function` or `predict_proba`, fitted to the rows that are not held out. A fitted one
        in a ``sklearn.frozen.FrozenEstimator`` is left as it is: then all rows given to `fit` are held-out rows, and it
        must not have seen them.
    share : float, default=0.01
        The share of the rows that may be alerts, strictly between 0 and 1.
    holdout : float, default=0.25
        The share of the rows that is held out.
    shuffle : bool, default=True
        Whether they are drawn at random. False, for rows in the order of time: the last ones, which are most like those
        to come.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Where scores come from; "auto" takes the first that there is.
    random_state : int, RandomState or None, default=None
        Seed of the choice of rows, with `shuffle`.
    {pos_label} An estimator inside that names one is enough.

    Attributes
    ----------
    threshold_ : float
        The threshold on the scores: the order statistic, raised by a few rounding errors so that a row equal to the one
        it came from stays below.
    estimator_ : estimator
        The fitted model; it was given 0 and 1 for labels other than 0 and 1, -1 and 1, False and True.
    n_calibration_ : int
        Number of held-out rows.
    rank_ : int
        The order statistic among them, 1 for the smallest score.
    expected_share_ : float
        The probability that a new row is an alert, at most `share`; exact for scores without ties.
    classes_ : ndarray of shape (2,)
        The labels; the second one is the positive class.
    n_features_in_ : int
        Number of features seen in `fit`, if the estimator says it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had names and the estimator keeps them.

    References
    ----------
    Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, Springer 2005.

    Examples
    --------
    >>> from toprank import AlertShareClassifier, PatMat
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(40_000, random_state=0)
    >>> model = AlertShareClassifier(PatMat(tau=0.02), share=0.02, random_state=0).fit(X[:20_000], y[:20_000])
    >>> bool(0.015 < model.predict(X[20_000:]).mean() < 0.025)
    True
    >>> model.n_calibration_, round(model.expected_share_, 4)
    (5000, 0.02)
    """

    saved_state: ClassVar[Schema] = PassesProbabilities._state(
        {
            "estimator_": Part(RESPONSES),
            "threshold_": Number(),
            "n_calibration_": count(1),
            "rank_": count(1, "n_calibration_"),
            "expected_share_": Number(0, 1),
        },
        fitted="estimator_",
    )

    estimator: Any
    share: float = 0.01
    _: KW_ONLY
    holdout: float = 0.25
    shuffle: bool = True
    response_method: str = "auto"
    random_state: Any = None

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the model and set its threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, Dask array or dataframe} of shape (n_samples, n_features)
            Rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.
        **params : dict
            Arguments of the estimator's `fit`, such as `sample_weight`; by metadata routing where that is enabled.
            Weights matter to training alone, but a weight of 0 removes a row altogether.

        {fitted}
        """
        self._check_parameters()
        return self._learn(X, y, self._routed(params))

    def _fit(self, X: Any, y: NDArray[Any], params: dict[str, Any], *of_splitter: dict[str, Any]) -> None:
        kept = np.flatnonzero(rows_with_weight(y, params))
        coding = coding_of(self, y)
        self.classes_ = np.asarray(coding.classes)
        train, held_out = self._split(kept, y)
        self._set_rank(len(held_out))
        self.estimator_ = coding.told(clone_for_scores(self.estimator))
        if not isinstance(self.estimator, FrozenEstimator):
            labels = coding.codes(y)[train]
            self.estimator_.fit(_safe_indexing(X, train), labels, **row_arguments(X, params, train))
        scores = score_column(scores_of(self.estimator_, _safe_indexing(X, held_out), self.response_method), "scores")
        self.threshold_ = raised_order_statistic(scores, self.rank_)

    def _fit_blocks(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        from toprank.decision._blocks import held_out_rows, labelled_blocks, scores_in_blocks

        rows = labelled_blocks(self, X, y, params)
        self.classes_ = np.asarray(rows.coding.classes)
        self.estimator_ = rows.coding.told(clone_for_scores(self.estimator))
        held_out = rows.kept
        if not isinstance(self.estimator, FrozenEstimator):
            held_out, _ = held_out_rows(rows.kept, self.holdout, self.shuffle, self.random_state)
            train = rows.kept & ~held_out
            if not (train & rows.positive).any() or not (train & ~rows.positive).any():
                raise self._one_class_left(int(np.count_nonzero(train)), int(np.count_nonzero(held_out)))
        self._set_rank(int(np.count_nonzero(held_out)))
        if not isinstance(self.estimator, FrozenEstimator):
            rows.fitted(self.estimator_, train)
        scores = scores_of(self.estimator_, rows.X, self.response_method)
        self.threshold_ = raised_order_statistic(scores_in_blocks(scores, held_out), self.rank_)

    def _set_rank(self, n: int) -> None:
        """Set which of n held-out scores is the threshold."""
        above = floor(self.share * (n + 1) * (1 + ROUNDING)) - 1
        if above < 0:
            raise InputError.saying(
                "{share=} needs at least {needed} held-out rows, got {n}; give more rows, or use a larger share",
                share=self.share,
                needed=ceil((1 - ROUNDING) / self.share) - 1,
                n=n,
            )
        self.n_calibration_ = n
        self.rank_ = n - above
        self.expected_share_ = (above + 1) / (n + 1)

    def _split(self, rows: Rows, y: NDArray[Any]) -> tuple[Rows, Rows]:
        """Rows to train on and rows held out."""
        if isinstance(self.estimator, FrozenEstimator):
            return rows[:0], rows
        order = check_random_state(self.random_state).permutation(rows) if self.shuffle else rows
        n_train = len(rows) - ceil(self.holdout * len(rows))
        train, held_out = np.sort(order[:n_train]), np.sort(order[n_train:])
        if len(np.unique(y[train])) < 2:
            raise self._one_class_left(n_train, len(held_out))
        return train, held_out

    def _one_class_left(self, n_train: int, n_held_out: int) -> InputError:
        return InputError.saying(
            "{holdout=} {leaves}; hold out fewer, or give more rows",
            elsewhere="setting {n} rows aside for the threshold {leaves}; give more rows",
            leaves=f"leaves only one class among the {n_train} rows to train on",
            holdout=self.holdout,
            n=n_held_out,
        )

    def _check_parameters(self) -> None:
        require_share("share", self.share)
        require_share("holdout", self.holdout)
        require_flag("shuffle", self.shuffle)
        check_response_method(self.response_method)
        if get_tags(self.estimator).input_tags.pairwise and not isinstance(self.estimator, FrozenEstimator):
            raise ValueError(
                "an estimator with kernel='precomputed' cannot be trained on a part of the rows; fit it first and "
                "wrap it in sklearn.frozen.FrozenEstimator"
            )

    def get_metadata_routing(self) -> MetadataRouter:
        """How arguments of `fit` reach the estimator.

        Returns
        -------
        MetadataRouter
            The routing of this object.
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def decision_function(self, X: Any) -> Any:
        """Score minus threshold: above zero means positive. Of rows that Dask has a Dask array.

        {rows_and_scores}
        """
        check_is_fitted(self)
        warn_of_sorted_scorer(self.classes_)
        # in double precision, as a threshold rounded to single precision could fall below a tie
        return scores_of(self.estimator_, X, self.response_method).astype(np.float64) - self.threshold_

    def _models(self) -> list[Any]:
        return [self.estimator_] if hasattr(self, "estimator_") else []
