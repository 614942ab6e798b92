"""Confidence-weighted bipartite ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from toprank.arrays import Floats
from toprank.checks import require_choice, require_positive
from toprank.online._base import require_room, started_with
from toprank.online._confidence import LANES, SMALLEST_VARIANCE
from toprank.online._pair_loop import Diagonal, Full, Method, Options, room_for_pair
from toprank.online._pairs import STARTED_WITH, PairRanker
from toprank.online.buffers import POLICIES
from toprank.saved_state import Array, Kind, Known, Schema

COVARIANCES = ("full", "diag")


def _padded(n_features: int) -> int:
    """The size of the factor of a full covariance."""
    return -(-n_features // LANES) * LANES


def _n_of_full(known: Known) -> int:
    return _padded(known["n_features_in_"]) if known["started_with_"]["covariance"] == "full" else 0


def _n_of_diagonal(known: Known) -> int:
    return known["n_features_in_"] if known["started_with_"]["covariance"] == "diag" else 0


def _is_unit_triangular(known: Known) -> bool:
    factor = known["factor_"]
    return bool(np.array_equal(np.triu(factor), np.eye(len(factor))))


@dataclass(eq=False, repr=False, kw_only=True)
class CBR(PairRanker):
    r"""Confidence-weighted bipartite ranking: an online ranker that knows how sure it is of each direction.

    The ranker is a normal distribution :math:`N(\mu, \Sigma)`, and :math:`\mu` ranks. A new row :math:`x_t` of class
    :math:`y = \pm 1` is paired with each row x in the buffer of the other class, and each pair
    :math:`z = x_t - x` changes the distribution as little as possible,

    .. math:: \min_{\mu', \Sigma'} KL(N(\mu', \Sigma') \,\|\, N(\mu, \Sigma))
              + C \max(0, \phi \sqrt{z^\top \Sigma' z} - y\, \mu'^\top z), \qquad \phi = \Phi^{-1}(\eta).

    Use it where rows come one at a time and features differ in scale or are correlated. It learns from a single pass
    what first-order rankers need many for. The full covariance costs O(d²) a pair and holds d² numbers; the diagonal
    one costs as much as the rows have entries.

    Parameters
    ----------
    covariance : {"full", "diag"}, default="full"
        What Σ is. "diag" is for high dimensions.
    buffer : {"fifo", "reservoir"}, default="fifo"
        Which rows stand for those seen: the latest ones, or a random sample of all.
    {buffers}
    C : float, default=1.0
        Limit of the step for a pair, between 0 and infinity; smaller for noisier data. It depends on the data by orders
        of magnitude: try 2⁻¹⁰ … 2¹⁰.
    growing_penalty : bool, default=False
        Multiply C by max(1, seen / buffer size) of the other class, as OAM does, so that the buffer weighs as much as
        all that was seen. See the notes.
    eta : float, default=0.7
        Probability with which a pair is to be in the right order, above 0.5 and below 1.
    forgetting : float, default=1.0
        Factor λ for streams that drift: what the model is sure of counts λ times as much after each row,
        Σ⁻¹ ← λΣ⁻¹ + (1 − λ)I, and so do the rows in "seen so far", so that a reservoir prefers late rows. 0.999 counts
        about the last 1000 rows; 1 forgets nothing. The direction itself is not forgotten, it has to be unlearned. In
        the full form one coordinate of I has its turn at a row, or as many as it takes for each to have it four times
        in 1/(1 − λ) rows.
    {threshold}
    random_state : int, RandomState or None, default=None
        Seed of the reservoir.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features) or (n_features,)
        Σ, or its diagonal.
    {attributes}

    Notes
    -----
    With v = zᵀΣz, m = y·μᵀz, ψ = 1 + φ²/2 and ζ = 1 + φ² the step is μ' = μ + αyΣz and Σ' = Σ − βΣzzᵀΣ, where

        α = min(C, max(0, (−mψ + √(m²φ⁴/4 + vφ²ζ)) / (vζ))),    √u = (−αvφ + √(α²v²φ² + 4v)) / 2,
        β = αφ / (√u + αφv).

    The paper differs in five places, and this is how they are read here.

    - β is printed as αφ/√(u + αφv); only u is under the root.
    - The diagonal form keeps inverse variances G. Its v is Σᵢ zᵢ²/Gᵢ (printed with Gᵢ + C), and its step is
      G' = G + (αφ/√u)·z² (printed with the β of the covariance).
    - Proposition 2 calls this the solution of the problem with a diagonal Σ'. It is the solution with any Σ', from
      a diagonal Σ, followed by the diagonal matrix nearest to it, min KL(diagonal ‖ Σ'), which keeps the diagonal of
      the inverse. The two agree if z has one entry.
    - A reservoir keeps each row with probability M / seen so far, not M / \\|B\\|.
    - C_t = C·max(1, \\|B\\|/M) is always C, as a buffer never holds more than M rows. In OAM, from which it is taken,
      the numerator counts all rows seen. Both were tried with the protocol of the paper: the constant comes closer to
      its tables, and it is the better choice on noisy data, since a C that grows without end takes back what C is for.

    Σ is stored as U·diag(D)·Uᵀ and updated by Bierman's method, in which D stays positive whatever the rounding: it is
    positive definite after any number of steps.

    A sample weight multiplies C for the pairs that its row makes when it comes, and counts in "seen so far".

    References
    ----------
    Khalid, Ray and Chitsaz, Confidence-weighted bipartite ranking, ADMA 2016. Wang, Zhao and Hoi, Exact soft
    confidence-weighted learning, ICML 2012. Bierman, Factorization methods for discrete sequential estimation, 1977.

    Examples
    --------
    >>> from toprank import CBR
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, separation=4.0, random_state=0)
    >>> model = CBR(max_fpr=0.05)
    >>> for start in range(0, 2000, 100):
    ...     batch = slice(start, start + 100)
    ...     model = model.partial_fit(X[batch], y[batch], classes=[0, 1])
    >>> bool(model.predict(X)[y == 1].mean() > 0.9)
    True
    """

    _lasting = (*PairRanker._lasting, "covariance")

    saved_state: ClassVar[Schema] = PairRanker.saved_state.extended(
        {
            "started_with_": started_with(**STARTED_WITH, covariance=Kind((str,), COVARIANCES)),
            "factor_": Array("f8", (_n_of_full, _n_of_full), rowwise=True),
            "variances_": Array("f8", (_n_of_full,), low=SMALLEST_VARIANCE),
            "gained_": Array("f8", (_n_of_diagonal,), low=0),
        },
        {"a factor with ones on its diagonal and zeros above": _is_unit_triangular},
    )

    covariance: str = "full"
    C: float = 1.0
    growing_penalty: bool = False
    eta: float = 0.7
    forgetting: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("covariance", self.covariance, COVARIANCES)
        require_positive("C", self.C, "use a value such as 1.0")
        if not 0.5 < self.eta < 1:
            raise ValueError(f"eta must be above 0.5 and below 1, got {self.eta!r}; use a value such as 0.7")
        if not 0 < self.forgetting <= 1:
            raise ValueError(
                f"forgetting must be above 0 and at most 1, got {self.forgetting!r}; 1 forgets nothing, 0.999 "
                "counts about the last 1000 rows"
            )

    def _start(self, n_features: int) -> None:
        full = self.covariance == "full"
        if full:
            require_room(f"the covariance of {n_features} features", n_features**2, "use covariance='diag'")
        super()._start(n_features)
        if full:
            self.factor_ = np.eye(_padded(n_features))
            self.variances_ = np.ones(_padded(n_features))
        else:
            self.gained_ = np.zeros(n_features)

    def _options(self) -> Options:
        return Options(POLICIES[self.buffer], float(self.C), bool(self.growing_penalty), float(ndtri(self.eta)))

    def _method(self, capacity: int) -> Method:
        kept = float(self.forgetting) if self.forgetting < 1 else None
        if self.covariance == "full":
            return Method(kept, full=Full(self.factor_, self.variances_, *np.zeros((3, len(self.variances_)))))
        return Method(kept, diagonal=Diagonal(self.gained_, self.scale_, *room_for_pair(capacity)))

    @property
    def covariance_(self) -> Floats:
        """Σ as a matrix, or its diagonal as a vector."""
        check_is_fitted(self)
        if self.covariance == "diag":
            return np.asarray(1.0 / (1.0 + self.scale_[0] * self.gained_))
        d = self.n_features_in_
        root = self.factor_[:d, :d].T * np.sqrt(self.variances_[:d])
        return np.asarray(root @ root.T)
