"""A forest with leaf values for the top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from toprank.arrays import Floats, Mask, is_dask
from toprank.base import BinaryClassifier, anew_or_unchanged, is_positive, two_classes
from toprank.checks import require_count, require_moderate, require_share
from toprank.estimators.top import PatMatNP
from toprank.exceptions import InputError
from toprank.log import logger, tell
from toprank.saved_state import Schema
from toprank.trees.boosters import as_lightgbm, as_xgboost, contributions_by_library
from toprank.trees.forest_rows import (
    check_checkpoint,
    rows_as_they_are,
    rows_for_sources,
    rows_to_score,
    training_rows,
)
from toprank.trees.forest_state import FOREST_STATE
from toprank.trees.grove import Grove, as_list, bins_needed, default_ensembles
from toprank.trees.head_choice import Choice, fitted, is_linear_and_convex, told
from toprank.trees.plain_trees import PlainTrees
from toprank.trees.shapley import shapley_values
from toprank.trees.training_leaves import Prior, TrainingLeaves, new_leaf_values, training_leaves

if TYPE_CHECKING:
    from toprank.trees.forest_blocks import SampledBlocks


@dataclass(eq=False, repr=False)
class TopForest(BinaryClassifier):
    r"""Extra trees whose leaf values are those that are best for the top of the list.

    .. math:: s(x) = \sum_j v_j\, s_j(x) + \frac{1}{\sqrt T} \sum_{t=1}^T w_{\ell_t(x)}

    with :math:`\ell_t(x)` the leaf of x in tree t and the priors :math:`s_j`, here two: the share of positives by a
    second forest, of fully grown trees, and the score of gradient boosting. The values w and v minimise a convex
    objective of the top family, by default that of `PatMatNP`, with its certificate. The priors are nearly free of
    penalty: a large `alpha` leaves only a mixture of the two models, a small one gives new values to all leaves. All
    together is again a plain additive ensemble of trees.

    The prior of a training row is out of bag, that of boosting out of fold. Penalty, τ and honesty are chosen with
    these trees, by heads on parts of the rows that score the others by the trees that did not draw them; the priors
    alone are one of the candidates. `selection_` tells what was chosen and what each candidate was worth.

    Rows in blocks of Dask need not fit in memory: trees are grown on a sample of them, and the head is fitted to all of
    them, but for a part of the negatives, which sets the threshold.

    Rows may be arrays, with NaN for gaps, or frames of pandas or polars with numbers, text and categories. A category
    that was not in the training rows counts as missing.

    With `trees`, the leaves of other ensembles get the values, and their own scores are the priors, a column each. A
    model that is in production, frozen, keeps its trees: only its leaf values move, towards the budget on the rows of
    `fit`, which should be rows that it has not seen. Rows then go to the ensembles as they are.

    Parameters
    ----------
    tau : float, default=0.01
        The budget: the share of the negatives that may be above the threshold, strictly between 0 and 1.
    trees : estimator or list of estimators, optional
        Ensembles whose leaves get the values, as in `LeafFeatures`: ExtraTrees, RandomForest, GradientBoosting or
        HistGradientBoosting of scikit-learn, models of LightGBM, XGBoost or CatBoost. In a
        `sklearn.frozen.FrozenEstimator` they keep their trees; otherwise they are cloned and fitted, and those of which
        all trees have seen all rows once more for each of five folds. By default a forest of extra trees for the
        leaves, and for the priors another one and gradient boosting of half as many steps.
    head : estimator, optional
        A linear estimator of the top family with a convex objective, such as ``TauFPL(tau=0.01)``. By default
        `PatMatNP`, of which τ is chosen too.
    alpha : float or "auto", default="auto"
        The penalty of the head. By default it is chosen among 1, 0.1, 0.01 and, where that finds most, 0.001.
    honest : bool or "auto", default="auto"
        Whether the head learns from honest leaves, those of the trees that did not draw a row, or from all.
    n_estimators : int, default=300
        Number of trees of each of the two forests. It, `min_samples_leaf` and `max_features` are for the forests that
        are grown by default, not for `trees`.
    min_samples_leaf : int, default=3
        Number of rows that a leaf has at least, in the trees whose leaves get new values.
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        Number of features of which each split takes the best, as in `ExtraTreesClassifier` of scikit-learn.
    tol : float, default=1e-4
        Relative duality gap at which the head stops.
    n_jobs : int, optional
        Number of jobs that grow trees.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees and of the folds.
    verbose : int, default=0
        With 1 or more, the steps are logged, and the number of trees while they grow.
    sample_rows : int, default=200_000
        Of rows in blocks of Dask, the number that trees are grown on and the head is chosen by: all positives, up to a
        half of it, and random negatives. The head is then fitted to all rows. Rows in memory are all used for both.
    {pos_label}

    Attributes
    ----------
    selection_ : dict
        What was chosen ("prior_alone", "alpha", "tau", "honest"), its "worth" (the mean share of the positives found at
        false positive rates around the budget, on rows that the head has not seen), that of the prior alone
        ("worth_of_prior"), "why" in words, and all "candidates". Of rows in blocks also "rows": how many there are in
        "all", in the "sample", of the "head" and "held_out" for the threshold.
    trees_ : PlainTrees or None
        The trees of all ensembles as arrays, one after the other. None where one that was given reads rows in a way of
        its own: HistGradientBoosting, LightGBM, XGBoost and CatBoost.
    sources_ : list of estimators
        The ensembles of `trees` as they are fitted, in the order of their trees; empty for those grown by default.
    n_leaves_ : ndarray of shape (n_trees,)
        Number of leaves of each tree.
    leaf_values_ : ndarray of shape (n_leaves,)
        What each leaf adds to the score: the leaves of the first tree, of the second, and so on. Within a tree, leaves
        have the order of their nodes in scikit-learn and XGBoost, and the numbers of the library in LightGBM and
        CatBoost.
    threshold_ : float
        The score above which a row is positive: so that the share τ of the negatives is above it, on rows that the head
        has not seen, by the trees that did not draw them. With few trees these scores spread more than those of new
        rows by all trees, and fewer new negatives than τ are above it. Of rows in blocks it is set by all trees, on
        negatives that neither trees nor head have seen.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    objective_, dual_objective_, dual_gap_ : float
        Objective of the head, its lower bound, and their relative gap.
    n_iter_ : int
        Iterations of the head.
    classes_ : ndarray of shape (2,)
        The classes, of which the second is the positive one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if they are text.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63(1), 2006.
    Ren, Cao, Wei and Sun, Global refinement of random forest, CVPR 2015.

    Examples
    --------
    >>> from toprank import TopForest
    >>> from toprank.datasets import make_imbalanced
    >>> from toprank.metrics import tpr_at_fpr
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> model = TopForest(tau=0.05, n_estimators=50, random_state=0).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    >>> bool(model.selection_["worth"] >= model.selection_["worth_of_prior"])
    True
    """

    saved_state: ClassVar[Schema] = FOREST_STATE
    over: ClassVar[str] = "negatives"
    """What `tau` is a share of."""
    takes_tables: ClassVar[bool] = True
    """Rows are taken as a table has them: text, gaps, nothing scaled."""
    takes_blocks: ClassVar[bool] = True
    """Rows may be Dask arrays and dataframes."""

    tau: float = 0.01
    trees: Any = None
    head: Any = None
    alpha: float | Literal["auto"] = "auto"
    honest: bool | Literal["auto"] = "auto"
    n_estimators: int = 300
    min_samples_leaf: int = 3
    max_features: Any = "sqrt"
    tol: float = 1e-4
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    sample_rows: int = 200_000

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, checkpoint: Any = None) -> Self:
        """Grow the trees, choose a head and fit it.

        Parameters
        ----------
        X : {array-like, dataframe, Dask array or dataframe} of shape (n_samples, n_features)
            Rows; NaN and other missing values are allowed, and text or categories in frames.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a weight of 0 is a removed row.
        checkpoint : path, optional
            Only with Dask arrays or dataframes, and a whole number as `random_state`: a file that is written after each
            round of the head and removed when that is fitted. Where it is there, the head goes on from it, after the
            same trees were grown again.

        {fitted}
        """
        self._check_parameters()
        with anew_or_unchanged(self):
            self._fit(X, y, sample_weight, checkpoint)
        return self

    def _check_parameters(self) -> None:
        require_share("tau", self.tau)
        if self.alpha != "auto":
            require_moderate("alpha", self.alpha, "use {alpha='auto'}")
        if not isinstance(self.honest, bool) and self.honest != "auto":
            raise InputError.of("honest", self.honest, "must be True, False or 'auto'", "use {honest='auto'}")
        require_count("n_estimators", self.n_estimators)
        require_count("min_samples_leaf", self.min_samples_leaf)
        require_count("sample_rows", self.sample_rows, least=10)
        if self.head is not None and not is_linear_and_convex(self.head):
            raise InputError.of(
                "head", self.head, "must be a linear estimator of the top family with a convex objective",
                "use PatMatNP(), TauFPL() or another one",
            )  # fmt: skip

    def _fit(self, X: Any, y: Any, sample_weight: Any, checkpoint: Any) -> None:
        random = check_random_state(self.random_state)
        sampled: SampledBlocks | None = None
        if checkpoint is not None:
            check_checkpoint(checkpoint, X, self.random_state)
        if is_dask(X):
            X, y, sample_weight, sampled = self._sample(X, y, sample_weight, checkpoint, random)
        self._columns, X, y = training_rows(self, X, y) if self.trees is None else rows_for_sources(self, X, y)
        if not hasattr(self, "classes_"):  # those of blocks are known
            self.classes_ = two_classes(y, self, self.pos_label)
        positive = is_positive(y, self.classes_)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        kept = weights > 0
        if not kept.all():
            X, positive, weights = _safe_indexing(X, np.flatnonzero(kept)), positive[kept], weights[kept]
        if positive.all() or not positive.any():
            raise ValueError(
                f"TopForest needs rows of both classes with a weight; only one class is left: "
                f"{self.classes_.tolist()[int(positive.any())]!r}"
            )
        # equal weights are none for the trees: with weights, histograms take several times as long
        grove = self._grow(X, positive, weights if np.ptp(weights) else None, random)
        self._say("finding the leaves of the rows, and priors that have not seen them")
        rows, priors = training_leaves(grove, X, positive, weights, random, self._say)
        grove.forget_steps()
        if self.honest is True or (sampled is not None and self.honest == "auto"):
            grove.check_honest()
        threshold = self._fit_head(rows, grove, priors, sampled, random)
        del rows  # its memory is needed for the trees
        self._keep_trees(grove)
        self._set_threshold(threshold)
        if sampled is not None:
            self._set_threshold(threshold + sampled.quantile(self))

    def _sample(
        self, X: Any, y: Any, sample_weight: Any, checkpoint: Any, random: np.random.RandomState
    ) -> tuple[Any, Any, Any, SampledBlocks | None]:
        """Rows in blocks: a sample of rows, labels and weights, and where the others are; all rows if they are few."""
        from toprank.trees.forest_blocks import ForestBlocks

        blocks = ForestBlocks.of(self, X, y, sample_weight)
        sampled = blocks.drawn(self.sample_rows, self.tau, random, checkpoint)
        self._say(f"fetching {len(blocks) if sampled is None else self.sample_rows:,} of {len(blocks):,} rows")
        return *(blocks.everything() if sampled is None else blocks.rows(sampled.sample)), sampled

    def _grow(self, X: Any, positive: Mask, weights: Floats | None, random: np.random.RandomState) -> Grove:
        """The ensembles: those of `trees`, or a forest for the leaves, and a forest and boosted trees as priors."""
        y, n = positive.astype(np.int64), X.shape[0]
        if self.trees is not None:
            self._say(f"growing or reading the trees of the sources on {n:,} rows")
            return Grove.of(as_list(self.trees), X, y, weights, self.n_jobs, random, say=self._say)
        self._say(f"growing two forests of {self.n_estimators} trees and boosted ones on {n:,} rows")
        ensembles = default_ensembles(self.n_estimators, self.min_samples_leaf, self.max_features, bins_needed(X))
        grown = Grove.of(ensembles, X, y, weights, self.n_jobs, random, keep_nodes=False, say=self._say)
        leaves, *priors = grown.parts
        return Grove((replace(leaves, is_prior=False), *(replace(prior, gets_values=False) for prior in priors)))

    def _head(self) -> Any:
        head = PatMatNP(tau=self.tau) if self.head is None else clone(self.head)
        return head.set_params(tol=self.tol, threshold="trained")

    def _fit_head(
        self, rows: TrainingLeaves, grove: Grove, priors: Sequence[Prior], sampled: SampledBlocks | None,
        random: np.random.RandomState,
    ) -> float:  # fmt: skip
        """Choose a head, fit it to all rows, and keep its values; the threshold follows from the rows in memory."""
        choice = Choice(self.tau, self.alpha, self.honest, varies_tau=self.head is None)
        # beside rows that no tree has seen, those of the sample have to be honest
        candidates = choice.candidates(rows.honesty if sampled is None else rows.honesty[:1])
        self._say(f"comparing {len(candidates)} heads on rows that they have not seen")
        deciding = rows if sampled is None else replace(rows, weights=sampled.restored(rows))
        best, found = choice.best(self._head(), candidates, deciding, random)
        quantile = choice.quantile(best, self._head(), rows, random) if sampled is None else 0.0
        self._say("fitting the head")
        if sampled is None:
            head = fitted(self._head(), best.candidate, rows)
        else:
            head = sampled.fitted(self._head(), best.candidate, rows, grove, priors, self)
        self.leaf_values_, shift = new_leaf_values(grove, head.coef_[0], best.candidate.freedom, priors)
        self.n_leaves_ = grove.n_leaves
        for name in ("objective_", "dual_objective_", "dual_gap_", "n_iter_", "history_"):
            setattr(self, name, getattr(head, name))
        self.selection_ = told(best, found, getattr(head, "tau", None))
        if sampled is not None:
            self.selection_["rows"] = sampled.told()
        return quantile - float(head.intercept_[0]) + shift

    def _set_threshold(self, threshold: float) -> None:
        self.threshold_, self.intercept_ = threshold, np.array([-threshold])

    def _keep_trees(self, grove: Grove) -> None:
        """The trees as arrays where they are plain; the ensembles where they were given."""
        sources = [part.source for part in grove.parts]
        alike = [one.trees for one in sources if self.trees is None or one.reads_single_precision]
        plain = [trees for trees in alike if trees is not None]
        self.trees_: Any = PlainTrees.joined(plain) if len(plain) == len(sources) else None
        self.sources_ = [] if self.trees is None else grove.models
        # made here, so that scoring changes nothing
        _ = self._grove_ if self.trees_ is None else (self._node_values_, self.trees_.steps)

    @cached_property
    def _node_values_(self) -> Any:
        return self.trees_.node_values(self.leaf_values_)

    @cached_property
    def _grove_(self) -> Grove:
        return Grove.of_fitted(self.sources_)

    def decision_function(self, X: Any) -> Any:
        """Score minus threshold: above zero means "in the top". Of a Dask array it is one too, not yet computed.

        {rows_and_scores}
        """
        check_is_fitted(self)
        if is_dask(X):
            from toprank.trees.forest_blocks import lazy_scores

            return lazy_scores(self, X)
        if self.trees_ is None:
            scores = self._grove_.scores(rows_as_they_are(self, X, reset=False), self.leaf_values_)
        else:
            scores = self.trees_.scores(rows_to_score(self, X), self._node_values_)
        return np.asarray(scores + self.intercept_[0])

    def contributions(self, X: Any) -> tuple[Floats, float]:
        """The Shapley value of each feature in the score of each row, and the mean score of the training rows.

        A feature that is not known goes both ways at a split, by the shares of the training rows there. What the
        features add and the mean together are the decision function. `toprank.reasons` tells it in words. On trees of
        LightGBM or XGBoost the library computes it, by the rows that the trees were grown on; XGBoost in single
        precision.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_features)
            What each feature adds to the score of each row.
        base : float
            The mean of the scores.
        """
        check_is_fitted(self)
        if self.trees_ is None:
            return contributions_by_library(self, rows_as_they_are(self, X, reset=False))
        contributions, mean = shapley_values(self.trees_, self._node_values_, rows_to_score(self, X))
        return contributions, mean + float(self.intercept_[0])

    def to_lightgbm(self) -> Any:
        """The same forest as a booster of LightGBM, whose raw scores are the decision function.

        On trees of LightGBM it is a copy of that model with the new leaf values, which keeps its objective:
        ``predict(X, raw_score=True)`` is the decision function, and `predict` a link function of it, no probability.
        Other trees than those of LightGBM are written anew, if they are plain: own ones and forests of scikit-learn.

        Returns
        -------
        lightgbm.Booster
            Its `save_model` writes the file that LightGBM serves.
        """
        check_is_fitted(self)
        return as_lightgbm(self)

    def to_xgboost(self) -> Any:
        """The model of XGBoost that the trees came from, with the new leaf values.

        ``predict(xgboost.DMatrix(X), output_margin=True)`` is the decision function, in single precision.

        Returns
        -------
        xgboost.Booster
            Its `save_model` writes the file that XGBoost serves.
        """
        check_is_fitted(self)
        return as_xgboost(self)

    @property
    def categories_(self) -> dict[int, tuple[Any, ...]]:
        """The values of each column of text or categories in the training rows, by the number of the column."""
        return self._columns.categories

    def _say(self, text: str) -> None:
        tell(text)
        if self.verbose > 0:
            logger().info("TopForest: %s", text)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True  # the budget decides how many rows are positive, not their number
        return tags
