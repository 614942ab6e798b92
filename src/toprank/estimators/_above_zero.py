"""What all classifiers with a threshold share: the decision is the sign."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PredictsAboveZero(ABC):
    """Mixin: `predict` from `decision_function` and `classes_`."""

    classes_: NDArray[Any]

    @abstractmethod
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score minus threshold."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The positive class where the decision function is above zero.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of `classes_`.
        """
        above = self.decision_function(X) > 0
        return np.asarray(self.classes_[above.astype(np.intp)])
