"""Online AUC maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from toprank.checks import require_choice, require_positive
from toprank.online._base import require_factor, started_with
from toprank.online._pair_loop import Method, Options, room_for_pair
from toprank.online._pairs import STARTED_WITH, PairRanker
from toprank.online.buffers import POLICIES
from toprank.saved_state import Kind, Schema

UPDATES = ("sequential", "gradient")


@dataclass(eq=False, repr=False, kw_only=True)
class OAM(PairRanker):
    r"""Online AUC maximisation: first-order steps on pairs with a buffer.

    For a new row :math:`x_t` of class :math:`y = \pm 1` and the buffer B of the other class, of capacity M, of which n
    rows were seen, the loss is

    .. math:: C_t \sum_{x \in B} \max(0, 1 - y\, w^\top (x_t - x)), \qquad C_t = C \max(1, n / M).

    "sequential" takes a passive-aggressive step for each pair in turn, w ← w + y·τ·z with
    τ = min(C_t, loss / ‖z‖²) for z = x_t − x. "gradient" takes one step along the subgradient of the sum. Both cost as
    much as the rows have entries. A baseline for `CBR`; features should have the same scale.

    Parameters
    ----------
    update : {"sequential", "gradient"}, default="sequential"
        The step.
    buffer : {"reservoir", "fifo"}, default="reservoir"
        Which rows stand for those seen: a random sample of all, or the latest ones. A reservoir keeps each row seen
        with probability M / n.
    {buffers}
    C : float, default=1.0
        Weight of the loss. "gradient" needs a smaller one.
    {threshold}
    random_state : int, RandomState or None, default=None
        Seed of the reservoir.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    A sample weight multiplies C_t for the pairs that its row makes when it comes, and counts in n.

    References
    ----------
    Zhao, Hoi, Jin and Yang, Online AUC maximization, ICML 2011.

    Examples
    --------
    >>> from toprank import OAM
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, separation=4.0, random_state=0)
    >>> model = OAM(C=0.01, random_state=0).fit(X, y)
    >>> bool(model.predict(X)[y == 1].mean() > 0.9)
    True
    """

    _lasting = (*PairRanker._lasting, "update")

    saved_state: ClassVar[Schema] = PairRanker.saved_state.extended(
        {"started_with_": started_with(**STARTED_WITH, update=Kind((str,), UPDATES))}
    )

    update: str = "sequential"
    buffer: str = "reservoir"
    C: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("update", self.update, UPDATES)
        require_positive("C", self.C, "use a value such as 1.0")
        if self.update == "gradient":  # the other step has its own limit
            require_factor("C", self.C)

    def _options(self) -> Options:
        return Options(POLICIES[self.buffer], float(self.C), True, 0.0)

    def _method(self, capacity: int) -> Method:
        if self.update == "gradient":
            return Method(margins=np.zeros(max(self._sizes())))
        return Method(pair=room_for_pair(capacity))
