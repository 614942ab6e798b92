"""The pairwise logistic loss of a small network."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank.arrays import Floats, Mask
from toprank.checks import require_count, require_number, require_positive
from toprank.exceptions import Message
from toprank.log import logger, tell
from toprank.matrices.dense_or_sparse import without_offset
from toprank.pairwise.graph import Preferences
from toprank.pairwise.preference_ranker import FOUND_STATE, LEVELS_STATE, PreferenceRanker
from toprank.saved_state import Array, Known, Number, Schema

if TYPE_CHECKING:
    from toprank.pairwise.objective import PairLoss


@dataclass(frozen=True)
class Network:
    """A network of one hidden layer, or of none, as a function of one vector of all its weights."""

    n_features: int
    n_hidden: int

    def start(self, random_state: np.random.RandomState) -> Floats:
        """Zero without a hidden layer, else random weights of about unit scores."""
        if not self.n_hidden:
            return np.zeros(self.n_features)
        hidden = random_state.normal(0, self.n_features**-0.5, (self.n_hidden, self.n_features))
        outer = random_state.normal(0, self.n_hidden**-0.5, self.n_hidden)
        return np.concatenate([hidden.ravel(), np.zeros(self.n_hidden), outer])

    def parts(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights and offsets of the hidden layer, and those of the score."""
        size = self.n_hidden * self.n_features
        hidden = weights[:size].reshape(self.n_hidden, self.n_features)
        return hidden, weights[size : size + self.n_hidden], weights[size + self.n_hidden :]

    def is_penalised(self) -> Floats:
        """1 for weights, 0 for offsets."""
        if not self.n_hidden:
            return np.ones(self.n_features)
        size = self.n_hidden * self.n_features
        return np.concatenate([np.ones(size), np.zeros(self.n_hidden), np.ones(self.n_hidden)])

    def activity(self, X: Any, weights: Floats) -> Any:
        """What the score is linear in: the rows themselves, or the activity of the hidden layer."""
        if not self.n_hidden:
            return X
        hidden, offsets, _ = self.parts(weights)
        return np.tanh(np.asarray(X @ hidden.T) + offsets)

    def value_and_gradient(self, weights: Floats, X: Any, loss: PairLoss, alpha: float) -> tuple[float, Floats]:
        """The penalised loss, and its gradient by back propagation of the slopes of the scores."""
        active, penalised = self.activity(X, weights), self.is_penalised()
        outer = self.parts(weights)[2]
        point = loss(np.asarray(active @ outer))
        value = point.value + 0.5 * alpha * float(weights @ (penalised * weights))
        gradient = alpha * penalised * weights
        gradient[len(weights) - len(outer) :] += np.asarray(active.T @ point.gradient)
        if self.n_hidden:
            back = point.gradient[:, None] * outer * (1.0 - active**2)
            size = self.n_hidden * self.n_features
            gradient[:size] += np.asarray(X.T @ back).T.ravel()
            gradient[size : size + self.n_hidden] += back.sum(axis=0)
        return value, gradient


def _is_linear(known: Known) -> bool:
    return bool(known["hidden_units"] == 0)


def _is_network(known: Known) -> bool:
    return not _is_linear(known)


@dataclass(eq=False, repr=False, kw_only=True)
class RankNet(PreferenceRanker):
    r"""Rank by a small network, trained by the logistic loss over all preferred pairs.

    .. math:: \min_{V, b, u} \frac{\alpha}{2} (\|V\|^2 + \|u\|^2) - \frac1P \sum_{i \succ j} p_{ij}
              \log \sigma(s(x_i) - s(x_j)), \qquad s(x) = u^\top \tanh(V x + b)

    or a linear score :math:`s(x) = u^\top x`, of which the problem is that of `WMWRanker`. With a hidden layer it has
    many minima, and the one that is found depends on `random_state`. It is here for comparison with the literature.

    The gradient by the scores is exact and costs O(n), without a pair at hand; the rest is back propagation. Where the
    reference takes gradient steps of a given length, this is the L-BFGS method on all rows at once.

    Parameters
    ----------
    hidden_units : int, default=10
        Units of the hidden layer; with 0 the score is linear.
    alpha : float, default=0.001
        Weight of the penalty, against the mean loss over pairs.
    {graph}
    tol : float, default=1e-6
        Stop when an iteration lowers the objective by less than a share of `tol`.
    max_iter : int, default=1000
        Limit of iterations.
    random_state : int, RandomState or None, default=None
        Seed of the first weights of a hidden layer.
    verbose : int, default=0
        With 1, log the progress to the logger "toprank".
    {better_label}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The direction u of a linear score.
    hidden_coef_ : ndarray of shape (hidden_units, n_features)
        With a hidden layer: the weights V.
    hidden_intercept_ : ndarray of shape (hidden_units,)
        With a hidden layer: the offsets b.
    output_coef_ : ndarray of shape (hidden_units,)
        With a hidden layer: the weights u.
    objective_ : float
        The value that was minimised.
    gradient_norm_ : float
        Norm of its gradient.
    suboptimality_ : float
        For a linear score: ``gradient_norm_**2 / (2 * alpha)``, no model has an objective lower by more than this.
    n_iter_ : int
        Number of iterations.
    history_ : dict of ndarray
        One entry an iteration: ``iteration``, ``objective``.
    {levels}

    References
    ----------
    Burges, Shaked, Renshaw, Lazier, Deeds, Hamilton and Hullender, Learning to rank using gradient descent, ICML 2005.

    Examples
    --------
    >>> from toprank.baselines import RankNet
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> bool(RankNet(random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    saved_state: ClassVar[Schema] = Schema(
        {
            **LEVELS_STATE,
            "coef_": Array("f", (1, "n_features_in_"), when=_is_linear),
            "hidden_coef_": Array("f8", ("hidden_units", "n_features_in_"), when=_is_network),
            "hidden_intercept_": Array("f8", ("hidden_units",), when=_is_network),
            "output_coef_": Array("f8", ("hidden_units",), when=_is_network),
            **FOUND_STATE,
            "gradient_norm_": Number(0),
            "suboptimality_": Number(0, when=_is_linear),
        },
        fitted="objective_",
    )

    hidden_units: int = 10
    alpha: float = 1e-3
    tol: float = 1e-6
    max_iter: int = 1000
    random_state: Any = None

    def _check_parameters(self) -> None:
        require_count("hidden_units", self.hidden_units, 0)
        require_positive("alpha", self.alpha, "use a value such as 0.001")
        require_number("tol", self.tol, 0.0)
        require_count("max_iter", self.max_iter)

    def _fit_rows(self, X: Any, preferences: Preferences, kept: Mask) -> None:
        from toprank.pairwise.objective import PairLoss  # imports numba

        network = Network(X.shape[1], int(self.hidden_units))
        rows = X if network.n_hidden else without_offset(X)  # a constant does not change a linear ranking
        arguments = (rows, PairLoss(preferences), float(self.alpha))
        start = network.start(check_random_state(self.random_state))
        objectives = [network.value_and_gradient(start, *arguments)[0]]

        def record(intermediate_result: Any) -> None:
            objectives.append(float(intermediate_result.fun))
            tell(f"iteration {len(objectives) - 1}, objective {objectives[-1]:.6g}")
            if self.verbose:
                logger().info("iteration %d: objective %.6g", len(objectives) - 1, objectives[-1])

        options = {"ftol": float(self.tol), "gtol": 0.0, "maxiter": int(self.max_iter), "maxfun": 20 * self.max_iter}
        found = minimize(
            network.value_and_gradient, start, arguments, "L-BFGS-B", jac=True, callback=record, options=options
        )
        self._keep(network, found.x, X.dtype)
        self.objective_, self.n_iter_ = float(found.fun), int(found.nit)
        self.gradient_norm_ = float(np.linalg.norm(found.jac))
        if not network.n_hidden:
            self.suboptimality_ = self.gradient_norm_**2 / (2 * float(self.alpha))
        self.history_ = {"iteration": np.arange(len(objectives)), "objective": np.array(objectives)}
        if found.status == 1:
            message = Message(
                "{name} stopped after {n} iterations; increase {max_iter} or {tol}", name="RankNet", n=found.nit
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _keep(self, network: Network, weights: Floats, dtype: Any) -> None:
        if network.n_hidden:
            parts = (part.copy() for part in network.parts(weights))
            self.hidden_coef_, self.hidden_intercept_, self.output_coef_ = parts
        else:
            self.coef_ = weights.astype(dtype)[None, :]

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score rows: larger is better. Only differences of scores have a meaning.

        {rows_and_scores}
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if hasattr(self, "coef_"):
            return np.asarray(X @ self.coef_[0])
        active = np.tanh(np.asarray(X @ self.hidden_coef_.T) + self.hidden_intercept_)
        return np.asarray((active @ self.output_coef_).astype(X.dtype, copy=False))
