"""What the baselines with a certificate say of the minimum that they found."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from toprank.baselines.cutting_planes import Minimum
from toprank.exceptions import Message
from toprank.saved_state import HISTORY, Number, Rule, count
from toprank.solvers.problem import relative_gap

CERTIFICATE_TEXT = {
    "certificate": """\
objective_ : float
    The value that was minimised.
dual_objective_ : float
    A lower bound of the optimum.
dual_gap_ : float
    ``(objective_ - dual_objective_) / objective_``: no model has an objective lower by more than this share.
n_iter_ : int
    Number of iterations.
history_ : dict of ndarray
    One entry an iteration: ``iteration``, ``passes`` over the data, ``seconds``, ``primal``, ``dual``, ``gap``."""
}
CERTIFICATE_STATE: dict[str, Rule] = {
    "objective_": Number(),
    "dual_objective_": Number(),
    "dual_gap_": Number(low=0),
    "n_iter_": count(),
    "history_": HISTORY,
}


def keep_certificate(model: Any, found: Minimum) -> None:
    """Set the attributes of a certificate."""
    model.objective_, model.dual_objective_ = found.objective, found.bound
    model.dual_gap_ = relative_gap(found.objective, found.bound)
    model.n_iter_ = found.n_iter
    model.history_ = {name: np.asarray(values) for name, values in found.history.items()}


def warn_unless_converged(model: Any, found: Minimum, stacklevel: int = 5) -> None:
    """Warn where the gap is larger than `tol`."""
    if not found.converged:
        message = Message(
            "{name} stopped after {n} iterations at a relative gap of {gap:.1e}, {tol=:g}; increase {max_iter} or the "
            "tolerance, or standardise the features",
            name=type(model).__name__,
            n=found.n_iter,
            gap=model.dual_gap_,
            tol=model.tol,
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel)
