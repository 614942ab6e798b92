"""A grove: ensembles of trees, grown here or frozen, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, gen_batches

from toprank.arrays import Floats, Mask
from toprank.exceptions import InputError
from toprank.log import tell
from toprank.matrices.leaves import LeafMatrix
from toprank.trees.growing import grown
from toprank.trees.sources import TreeSource, check_has_trees, source_of

# Who hears how far the growing is.
Say = Callable[[str], object]
# Rows whose leaves are found at a time, to score them.
_BLOCK_ROWS = 100_000
# Bins of a histogram at most, and rows by which it is seen at once that a column fills them.
_MOST_BINS, _FIRST_ROWS = 255, 1000


@dataclass(frozen=True)
class Part:
    """A fitted ensemble of a grove."""

    source: TreeSource
    is_frozen: bool
    """Whether it was fitted before, to other rows."""
    gets_values: bool = True
    """Whether its leaves get values of their own from the head of a `TopForest`."""
    is_prior: bool = True
    """Whether its own score is a column of that head."""

    @property
    def has_unseen(self) -> bool:
        """Whether a training row has trees that it has not helped to grow."""
        return self.is_frozen or self.source.is_bagged

    def unseen(self, n_rows: int) -> Mask | None:
        """Which trees each training row has not helped to grow; None: all of a frozen ensemble, none of boosting."""
        return ~self.source.seen(n_rows) if self.source.is_bagged and not self.is_frozen else None


@dataclass(frozen=True)
class Grove:
    """Fitted ensembles, whose trees stand one after the other."""

    parts: tuple[Part, ...]

    @classmethod
    def of(
        cls, ensembles: Sequence[Any], X: Any, y: Any, sample_weight: ArrayLike | None, n_jobs: int | None,
        random: np.random.RandomState, *, keep_nodes: bool = True, say: Say = tell,
    ) -> Grove:  # fmt: skip
        """The frozen ensembles as they are, and clones of the others, fitted; those without a seed get one.

        Without `keep_nodes`, what the models have of their trees is freed as soon as it is read: they are of no use
        outside of the grove. `say` hears which ensemble is growing, and how many trees there are.
        """

        def part(ensemble: Any, place: str) -> Part:
            is_frozen = isinstance(ensemble, FrozenEstimator)
            if is_frozen:
                model = ensemble.estimator
            else:
                model = _unfitted(ensemble, n_jobs, random)
                grown(model, _without_empty_columns(X), y, sample_weight, said_with(say, place))
            source = source_of(model)
            _check_features(model, X)
            if not keep_nodes:
                source.forget_nodes()
            return Part(source, is_frozen)

        places = [f", ensemble {number} of {len(ensembles)}" for number in range(1, len(ensembles) + 1)]
        return cls(tuple(map(part, ensembles, places if len(ensembles) > 1 else [""])))

    @classmethod
    def of_fitted(cls, models: Sequence[Any]) -> Grove:
        """Fitted ensembles, to find leaves in."""
        return cls(tuple(Part(source_of(model), is_frozen=True) for model in models))

    def regrown(self, X: Any, y: Any, sample_weight: ArrayLike | None, say: Say = tell) -> Grove:
        """The same with ensembles of which all trees have seen all rows fitted to these rows in place of theirs."""
        rows = _without_empty_columns(X)

        def again(part: Part) -> Part:
            return replace(part, source=source_of(grown(clone(part.source.model), rows, y, sample_weight, say)))

        return Grove(tuple(part if part.has_unseen else again(part) for part in self.parts))

    @property
    def models(self) -> list[Any]:
        """The fitted ensembles."""
        return [part.source.model for part in self.parts]

    @property
    def n_leaves(self) -> NDArray[np.int64]:
        """Number of leaves of each tree."""
        return np.concatenate([part.source.n_leaves for part in self.parts])

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """The leaves of rows in all trees, numbered within each tree."""
        found = [part.source.leaf_numbers(X) for part in self.parts]
        return found[0] if len(found) == 1 else np.hstack(found)

    def scores(self, X: Any, leaf_values: Floats) -> Floats:
        """The sum of the values of the leaves that each row falls into."""
        n_leaves = self.n_leaves
        scores = [
            LeafMatrix.of(self.leaf_numbers(_safe_indexing(X, rows)), n_leaves).sums(leaf_values)
            for rows in gen_batches(X.shape[0], _BLOCK_ROWS)
        ]
        return np.concatenate(scores) if scores else np.zeros(0)

    def forget_steps(self) -> None:
        """Free what only walks down the trees read, until the next one."""
        for part in self.parts:
            if part.source.trees is not None:
                part.source.trees.forget_steps()

    def unseen(self, n_rows: int) -> Mask | None:
        """Which trees each training row has not helped to grow, and those of ensembles where all count; None: all."""
        masks = [part.unseen(n_rows) for part in self.parts]
        if len(masks) == 1 or all(mask is None for mask in masks):
            return masks[0]
        sizes = [len(part.source.n_leaves) for part in self.parts]
        filled = [np.ones((n_rows, n), bool) if mask is None else mask for mask, n in zip(masks, sizes, strict=True)]
        return np.hstack(filled)

    def check_honest(self) -> None:
        """Refuse leaves of ensembles of which all trees have seen all rows."""
        for part in self.parts:
            if part.gets_values and not part.has_unseen:
                raise InputError.saying(
                    "{honest=True} needs trees that have not seen each row, but all trees of {model} have; use a "
                    "forest with bootstrap=True, or {honest=False}",
                    model=type(part.source.model).__name__,
                )


def default_ensembles(
    n_estimators: int, min_samples_leaf: int, max_features: Any, n_bins: int = _MOST_BINS
) -> list[Any]:
    """The forest whose leaves get values in a `TopForest`; the forest and the boosted trees that are its priors.

    `n_bins` is for the histograms of the boosted trees; see `bins_needed`.
    """
    forests = [
        ExtraTreesClassifier(n_estimators, min_samples_leaf=size, max_features=max_features, bootstrap=True)
        for size in (min_samples_leaf, 1)
    ]
    steps = max(n_estimators // 2, 1)
    boosted = HistGradientBoostingClassifier(
        max_iter=steps, learning_rate=min(7.5 / steps, 0.3), max_leaf_nodes=15, min_samples_leaf=10,
        max_features=0.3, early_stopping=False, max_bins=n_bins,
    )  # fmt: skip
    return [*forests, boosted]


def bins_needed(X: NDArray[Any]) -> int:
    """So many bins that no column has more values, or the most there can be.

    With fewer bins than that the trees would be others, with more they are the same, but each node has a histogram of
    all bins of all columns: with a thousand columns of 0 and 1 most of the time goes there.
    """
    most = 2
    for column in X.T:
        for values in (column[:_FIRST_ROWS], column):
            most = max(most, len(np.unique(values)))
            if most >= _MOST_BINS:
                return _MOST_BINS
    return most


def said_with(say: Say, place: str) -> Say:
    """Who hears the same with a place after it."""
    return lambda text: say(f"{text}{place}")


def as_list(trees: Any) -> list[Any]:
    """One ensemble or several."""
    given = list(trees) if isinstance(trees, Sequence) and not isinstance(trees, str) else [trees]
    if not given:
        raise InputError.of("trees", trees, "must have an ensemble at least", "use {trees=None}")
    return given


def _unfitted(ensemble: Any, n_jobs: int | None, random: np.random.RandomState) -> Any:
    """A clone of an ensemble, with a seed and jobs where it has none of its own."""
    if isinstance(ensemble, type):
        raise InputError.of(
            "trees", ensemble, "must be an ensemble, not its class", "use {name}()", name=ensemble.__name__
        )
    check_has_trees(ensemble)
    if not hasattr(ensemble, "get_params"):
        raise InputError.of(
            "trees", ensemble, "must be models that can be fitted, or frozen", "use FrozenEstimator of it"
        )
    model = clone(ensemble)
    parameters = model.get_params(deep=False)
    if "random_state" in parameters and parameters["random_state"] is None:
        model.set_params(random_state=random.randint(2**31 - 1))
    if "n_jobs" in parameters and parameters["n_jobs"] is None and n_jobs is not None:
        model.set_params(n_jobs=n_jobs)
    return model


def _without_empty_columns(X: Any) -> Any:
    """Rows of an array with 0 in columns without any value, which histograms cannot read; no tree splits by either."""
    if not (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
        return X
    empty = np.isnan(X).all(axis=0)
    return np.where(empty, np.zeros((), X.dtype), X) if empty.any() else X


def _check_features(model: Any, X: Any) -> None:
    """Refuse rows of another number of features than a frozen ensemble was fitted to."""
    fitted, shape = _n_features(model), tuple(getattr(X, "shape", ()))
    if fitted is not None and len(shape) == 2 and shape[1] != fitted:
        raise InputError.saying(
            "X has {found} features, but the trees of {model} were fitted to {fitted} features; pass the columns that "
            "they know",
            found=shape[1],
            model=type(model).__name__,
            fitted=fitted,
        )


def _n_features(model: Any) -> int | None:
    """The number of features of a fitted ensemble, or of a booster."""
    if hasattr(model, "n_features_in_"):
        return int(model.n_features_in_)
    of_booster = getattr(model, "num_features", getattr(model, "num_feature", None))
    return None if of_booster is None else int(of_booster())
