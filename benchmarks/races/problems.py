"""The problems: data, a penalty, and the objective of any scores by plain NumPy, which no solver has a part in."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from benchmarks.ordinal_sets import read_ordinal
from benchmarks.tables.data import read_task, scaled, usual_scaling
from scipy.optimize import brentq
from scipy.sparse import issparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from toprank import PatMatNP, TopPush, TopPushK
from toprank.baselines import RankSVM
from toprank.pairwise import WMWRanker


class Point(NamedTuple):
    """What a contender found: the scores of all rows, ‖w‖², and what it says about itself."""

    scores: np.ndarray
    squared_norm: float
    gap: float | None = None
    passes: float | None = None
    n_iter: int | None = None


@dataclass(frozen=True)
class TopProblem:
    """The positives above a threshold made of the negatives: α/2 ‖w‖² + mean of (1 + t − s)₊² over the positives."""

    X: Any
    y: np.ndarray
    alpha: float
    formulation: str = "TopPush"
    is_kernel: bool = False

    @property
    def model(self):
        """The estimator of the problem."""
        made = {"TopPush": TopPush(), "TopPushK": TopPushK(k=5), "Pat&Mat": PatMatNP(tau=0.1, beta=1.0)}
        model = made[self.formulation].set_params(alpha=self.alpha)
        if self.formulation != "TopPush":
            model.set_params(threshold="trained")  # one fit, as the threshold of `predict` is no part of the race
        return model.set_params(kernel="rbf", gamma=self.gamma) if self.is_kernel else model

    @property
    def gamma(self) -> float:
        """The usual width of the Gaussian kernel."""
        return 1 / (self.X.shape[1] * self.X.var())

    @cached_property
    def kernel_matrix(self) -> np.ndarray:
        """All values of the kernel."""
        return rbf_kernel(self.X, gamma=self.gamma)

    def threshold(self, scores: np.ndarray) -> float:
        """The threshold t of the scores of the negatives."""
        if self.formulation == "TopPush":
            return scores.max()
        if self.formulation == "TopPushK":
            return np.sort(scores)[-5:].mean()
        return brentq(
            lambda t: np.mean(np.maximum(0.0, 1 + scores - t) ** 2) - 0.1, scores.min(), scores.max() + 1, xtol=1e-14
        )

    def objective(self, point: Point) -> float:
        """The value to be minimised."""
        margins = 1 + self.threshold(point.scores[~self.y]) - point.scores[self.y]
        return self.alpha / 2 * point.squared_norm + np.mean(np.maximum(0.0, margins) ** 2)

    def part(self, most: int = 200) -> "TopProblem":
        """A small problem of the same kind, to load what was compiled."""
        rows = np.concatenate([np.flatnonzero(self.y)[: most // 2], np.flatnonzero(~self.y)[: most // 2]])
        return TopProblem(self.X[rows], self.y[rows], self.alpha, self.formulation, self.is_kernel)


@dataclass(frozen=True)
class PairProblem:
    """All pairs of different levels in their order: α/2 ‖w‖² + mean of ℓ(s_better − s_worse)."""

    X: np.ndarray
    y: np.ndarray
    alpha: float
    loss: str

    @property
    def model(self):
        """The estimator of the problem."""
        if self.loss == "logistic":
            return WMWRanker(alpha=self.alpha)
        return RankSVM(alpha=self.alpha, loss=self.loss)

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The better and the worse row of each pair."""
        return np.nonzero(self.y[:, None] > self.y[None, :])

    @cached_property
    def differences(self) -> tuple[np.ndarray, np.ndarray]:
        """The pairs as rows of two classes, by turns with either sign, for solvers that know no pairs."""
        signs = np.where(np.arange(len(self.pairs[0])) % 2, 1.0, -1.0)
        return signs[:, None] * (self.X[self.pairs[0]] - self.X[self.pairs[1]]), signs

    def objective(self, point: Point) -> float:
        """The value to be minimised."""
        margins = point.scores[self.pairs[0]] - point.scores[self.pairs[1]]
        losses = {
            "logistic": lambda: np.logaddexp(0.0, -margins),
            "squared_hinge": lambda: np.maximum(0.0, 1 - margins) ** 2,
            "hinge": lambda: np.maximum(0.0, 1 - margins),
        }[self.loss]()
        return self.alpha / 2 * point.squared_norm + np.mean(losses)

    def part(self, most: int = 60) -> "PairProblem":
        """A small problem of the same kind, to load what was compiled."""
        rows = np.argsort(self.y, kind="stable")[:: max(1, len(self.y) // most)]
        return PairProblem(self.X[rows], self.y[rows], self.alpha, self.loss)


def top_problem(name: str, alpha: float, formulation: str = "TopPush", is_kernel: bool = False) -> TopProblem:
    """A task of the data folder, scaled as in the tables; for kernels alpha is 1 / (C m) with m positives and C."""
    X, y = read_task(name)
    (X,) = scaled(usual_scaling(name, X), X, np.arange(len(y)))
    if issparse(X):
        X.sort_indices()
    return TopProblem(X, y == 1, 1 / (alpha * np.count_nonzero(y)) if is_kernel else alpha, formulation, is_kernel)


def pair_problem(name: str, alpha: float, loss: str) -> PairProblem:
    """An ordinal set of the RankNCG paper, standardised."""
    X, y = read_ordinal(name)
    return PairProblem(StandardScaler().fit_transform(X), y, alpha, loss)


def _top(name: str, alpha: float) -> Callable[[], TopProblem]:
    return lambda: top_problem(name, alpha)


def _kernel(name: str, formulation: str) -> Callable[[], TopProblem]:
    return lambda: top_problem(name, 1.0, formulation, is_kernel=True)


def _pairs(name: str, loss: str) -> Callable[[], PairProblem]:
    return lambda: pair_problem(name, 1e-3, loss)


# Name of the race: how its problem is made. The last of each kind comes with scikit-learn or is drawn, for a test.
LINEAR = {
    **{f"spambase, λ = {alpha:g}": _top("spambase", alpha) for alpha in (1.0, 1e-2, 1e-4)},
    **{f"{name}, λ = 0.01": _top(name, 1e-2) for name in ("w8a", "20newsgroups")},
    "breast_cancer, λ = 1": _top("breast_cancer", 1.0),
}
KERNEL = {
    **{f"ionosphere, {name}": _kernel("ionosphere", name) for name in ("TopPush", "TopPushK", "Pat&Mat")},
    "spambase, TopPush": _kernel("spambase", "TopPush"),
    "breast_cancer, TopPush": _kernel("breast_cancer", "TopPush"),
}
PAIRWISE = {
    **{f"{name}, logistic": _pairs(name, "logistic") for name in ("Auto-MPG", "Airplane", "Abalone")},
    **{f"{name}, squared hinge": _pairs(name, "squared_hinge") for name in ("Auto-MPG", "Airplane")},
    **{f"{name}, hinge": _pairs(name, "hinge") for name in ("Auto-MPG", "Airplane")},
    "RandPoly-60, logistic": _pairs("RandPoly-60", "logistic"),
}
PROBLEMS = LINEAR | KERNEL | PAIRWISE
