"""The transformer from rows to the leaves that they fall into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import TransformerMixin
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from toprank.arrays import is_dask
from toprank.base import Estimator, anew_or_unchanged
from toprank.checks import require_choice
from toprank.matrices.leaves import LeafMatrix
from toprank.saved_state import FEATURES, Array, Items, Part, Schema
from toprank.trees.forest_state import has_leaves_of
from toprank.trees.grove import Grove, as_list


@dataclass(eq=False, repr=False)
class LeafFeatures(TransformerMixin, Estimator, auto_wrap_output_keys=None):
    r"""The leaf that a row falls into, in each tree of one or several ensembles, as features of a linear model.

    .. math:: \phi(x) = \frac{1}{\sqrt T} (e_{\ell_1(x)}, \dots, e_{\ell_T(x)})

    The product of two rows is the share of the T trees in which they meet. A linear model on these features is an
    additive ensemble of the same trees with new values in their leaves; with an estimator of the top family the values
    are those that are best for the top, with a certificate.

    A row that helped to grow a tree lies in a leaf that its own label has shaped, so that a list of training rows looks
    better than one of new rows. With ``honest=True``, `fit_transform` gives of a training row only the leaves in the
    trees that did not draw it, times T over their number; `transform` gives those in all trees. So `fit_transform` is
    then not `fit` and `transform`, as with `TargetEncoder` of scikit-learn. A row that all trees drew has no leaves.

    Parameters
    ----------
    trees : estimator or list of estimators, optional
        Classifiers or regressors: ExtraTrees, RandomForest, GradientBoosting or HistGradientBoosting of scikit-learn,
        models of LightGBM, XGBoost or CatBoost. They are cloned and fitted, unless they come in a
        `sklearn.frozen.FrozenEstimator`. By default 300 extra trees on bootstrap samples, with at least 3 rows a leaf.
    honest : bool, default=False
        Whether `fit_transform` gives a training row only the trees that have not seen it. It needs forests with
        ``bootstrap=True``. Frozen trees are taken for trees that have not seen the rows.
    output : {"leaves", "csr"}, default="leaves"
        A `LeafMatrix`, one small integer a tree and row, which the linear estimators of toprank read as it is; or a CSR
        array for estimators of others, which has three to twelve times the size.
    n_jobs : int, optional
        Number of jobs that grow trees, for ensembles whose own `n_jobs` is None.
    random_state : int, RandomState instance or None, default=None
        Seed for ensembles whose own `random_state` is None.

    Attributes
    ----------
    trees_ : list of estimators
        The fitted ensembles.
    n_leaves_ : ndarray of shape (n_trees,)
        Number of leaves of each tree.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if they are text.

    References
    ----------
    Ren, Cao, Wei and Sun, Global refinement of random forest, CVPR 2015.
    He et al., Practical lessons from predicting clicks on ads at Facebook, ADKDD 2014.
    Scornet, Random forests and kernel methods, IEEE Transactions on Information Theory 62(3), 2016.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from toprank import LeafFeatures, PatMatNP
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> model = make_pipeline(LeafFeatures(honest=True, random_state=0), PatMatNP(tau=0.05)).fit(X, y)
    >>> bool(model[-1].dual_gap_ <= 1e-4)
    True
    >>> len(model[0].n_leaves_)
    300
    """

    saved_state: ClassVar[Schema] = Schema(
        {**FEATURES, "trees_": Items(Part(("predict",))), "n_leaves_": Array("i8", (None,), low=1)},
        fitted="trees_",
        relations={"the leaves of its trees": lambda known: has_leaves_of(known["trees_"], known["n_leaves_"])},
    )

    trees: Any = None
    honest: bool = False
    output: Literal["leaves", "csr"] = "leaves"
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows, as the ensembles take them.
        y : array-like of shape (n_samples,)
            Labels, as the ensembles take them.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, for the ensembles that are fitted.

        {fitted}
        """
        require_choice("output", self.output, ("leaves", "csr"))
        with anew_or_unchanged(self):
            self._grow(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Grow the trees, and give the leaves of the training rows, honest ones where that is asked.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows, as the ensembles take them.
        y : array-like of shape (n_samples,)
            Labels, as the ensembles take them.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, for the ensembles that are fitted.

        Returns
        -------
        LeafMatrix or csr_array of shape (n_samples, n_leaves)
            The leaves.
        """
        self.fit(X, y, sample_weight)
        numbers = self._grove_.leaf_numbers(X)
        return self._given(numbers, self._grove_.unseen(len(numbers)) if self.honest else None)

    def transform(self, X: Any) -> Any:
        """The leaves of rows in all trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, Dask array or dataframe} of shape (n_samples, n_features)
            Rows, as the ensembles take them.

        Returns
        -------
        LeafMatrix or csr_array of shape (n_samples, n_leaves)
            The leaves; of rows that Dask has a Dask array, whose blocks are in CSR.
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._in_blocks(X)
        _check_feature_names(self, X, reset=False)
        numbers = self._grove_.leaf_numbers(X)
        _check_n_features(self, X, reset=False)
        return self._given(numbers, None)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns, such as "tree0_leaf3".

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self)
        names = [f"tree{t}_leaf{k}" for t, count in enumerate(self.n_leaves_) for k in range(count)]
        return np.array(names, dtype=object)

    def _grow(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        if self.trees is None:
            ensembles = [ExtraTreesClassifier(300, min_samples_leaf=3, bootstrap=True)]
        else:
            ensembles = as_list(self.trees)
        grove = Grove.of(ensembles, X, y, sample_weight, self.n_jobs, check_random_state(self.random_state))
        _check_feature_names(self, X, reset=True)
        _check_n_features(self, X, reset=True)
        self.trees_, self.n_leaves_, self._grove_ = grove.models, grove.n_leaves, grove
        if self.honest:
            grove.check_honest()

    @cached_property
    def _grove_(self) -> Grove:
        return Grove.of_fitted(self.trees_)

    def _given(self, numbers: NDArray[Any], used: NDArray[np.bool_] | None) -> Any:
        leaves = LeafMatrix.of(numbers, self.n_leaves_, used)
        return leaves if self.output == "leaves" else leaves.tocsr()

    def _in_blocks(self, X: Any) -> Any:
        """A Dask array of the leaves, of which nothing is computed yet."""
        from dask import delayed

        from toprank.matrices.block_tasks import on_each
        from toprank.matrices.dask_columns import array_of, blocks_of, is_frame, lengths_of

        _check_feature_names(self, X._meta if is_frame(X) else X, reset=False)
        _check_n_features(self, X, reset=False)
        X = X if is_frame(X) or X.numblocks[1] == 1 else X.rechunk({1: -1})
        grove, blocks = delayed(self._grove_, pure=False), blocks_of(X)
        pieces = on_each(_leaves_of_block, [blocks, [grove] * len(blocks)], self.n_leaves_)
        return array_of(pieces, lengths_of(X), np.zeros((0, int(self.n_leaves_.sum()))))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        tags.non_deterministic = False
        return tags


def _leaves_of_block(rows: Any, grove: Grove, n_leaves: NDArray[np.int64]) -> csr_array:
    if not rows.shape[0]:
        return csr_array((0, int(n_leaves.sum())))
    return LeafMatrix.of(grove.leaf_numbers(rows), n_leaves, None).tocsr()
