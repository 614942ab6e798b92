"""The objectives of the family inside gradient boosting of other packages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import toprank
from toprank.arrays import Floats
from toprank.checks import require_choice, require_positive
from toprank.exceptions import InputError
from toprank.formulations.formulation import Formulation

__all__ = ["TopObjective", "objective"]

_METHODS = [name for name, home in toprank.HOMES.items() if home == "estimators.top"]


def objective(method: str, *, max_step: float = 1.0, **parameters: Any) -> TopObjective:
    r"""An objective of the top for LightGBM and XGBoost.

    .. math:: F(s) = \sum_i a_i\, \ell(t(s) - s_i^+)

    of a convex method of the family, with the threshold t(s) of all scores. Boosting asks for a slope and a curvature
    of each row; the slopes are the gradient of F. F is no sum over rows, so that its diagonal would not do as
    curvature: rows at the threshold move it together. The curvatures d given here are such that moving all rows of a
    leaf by the same amount bends F by at most Σ d over the leaf:

    .. math:: d_i = c_i + h_i + p_i \sum_j (c_j + h_j), \qquad d_i \ge |g_i| / \text{max\_step}

    with :math:`c = a\, \ell''(t - s)`, p the gradient of t and h the weights of its own second derivative. All are
    multiplied by the weight of the positives, so that a positive row counts about as much as in the log loss. A
    call costs O(n), and a few times that for the thresholds of PatMat and PatMatNP.

    Parameters
    ----------
    method : str
        A convex one: "TopPush", "TopPushK", "TauFPL", "TopMeanK", "PatMat" or "PatMatNP".
    max_step : float, default=1.0
        No row asks for a step longer than this, before the learning rate.
    **parameters
        Parameters of the method that its objective depends on, such as ``tau``, ``k``, ``beta`` and ``surrogate``.

    Returns
    -------
    TopObjective
        For ``LGBMClassifier(objective=...)``, ``lightgbm.train({"objective": ...})``, ``XGBClassifier(objective=...)``
        or ``xgboost.train(..., obj=...)``. Rank by the raw scores: ``predict(X, raw_score=True)`` of LightGBM,
        ``predict(X, output_margin=True)`` of XGBoost. They are no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.boosting import objective
    >>> slopes, curvatures = objective("TauFPL", tau=0.5)(np.array([1, 0, 0]), np.array([0.5, 1.0, 0.0]))
    >>> slopes, curvatures
    (array([-3.,  3.,  0.]), array([3., 3., 0.]))
    """
    require_choice("method", method, _METHODS)
    require_positive("max_step", max_step, "use a value such as 1.0")
    estimator = getattr(toprank, method)()
    known = {"k", "tau", "beta", "surrogate"} & estimator.get_params().keys()
    for name, value in parameters.items():
        if name not in known:
            rule = "is no part of the objective of {method}"
            raise InputError.of(name, value, rule, "use {known}", method=method, known=", ".join(sorted(known)))
    estimator.set_params(**parameters)._check_parameters()
    formulation = estimator._formulation()
    if not formulation.is_convex:
        raise InputError.of("method", method, "has an objective that is not convex", "use PatMatNP or TauFPL")
    return TopObjective(formulation, float(max_step))


@dataclass(frozen=True)
class TopObjective:
    """A function of labels and scores, or of scores and a data set of LightGBM or XGBoost; made by `objective`.

    Examples
    --------
    >>> from toprank.boosting import objective
    >>> objective("TopPush")([1, 0], [0.0, 0.0])
    (array([-2.,  2.]), array([2., 2.]))
    """

    formulation: Formulation
    max_step: float = 1.0

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Slopes and curvatures of all rows.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels, larger than 0 for positives. The functions of LightGBM and XGBoost that train on their own kind of
            data set give the scores first and that data set second, which is found out.
        y_pred : array-like of shape (n_samples,)
            Raw scores.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        tuple of two ndarray
            Slopes and curvatures.
        """
        if hasattr(y_pred, "get_label"):
            y_true, y_pred, sample_weight = y_pred.get_label(), y_true, y_pred.get_weight()
        positive, scores = np.asarray(y_true) > 0, np.asarray(y_pred, dtype=np.float64)
        weights = np.ones(len(scores))
        if sample_weight is not None and np.size(sample_weight):
            weights = np.asarray(sample_weight, dtype=np.float64)
        if not (weights[positive].sum() > 0 and weights[~positive].sum() > 0):
            raise ValueError("the labels need positive and negative rows: larger than 0, and at most 0")
        total = float(weights[positive].sum())
        slopes = total * self.formulation.evaluate(scores, positive, weights)[1]
        curvatures = total * self.formulation.curvature_of_groups(scores, positive, weights)
        return slopes, np.maximum(curvatures, np.abs(slopes) / self.max_step)
