"""Weighted sums of a function of all differences of two sets of numbers, in three ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc, erfcinv, expit, log_expit

from toprank.arrays import Floats
from toprank.checks import require_choice

SUMMATIONS = ("exact", "erfc", "direct")
"""Ways to sum over pairs: to machine precision in linear time, by the erfc series of the paper, and pair by pair."""

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": expit,
    "reversed_sigmoid": lambda s: expit(-s),
    "log_sigmoid": log_expit,
    "sigmoid_derivative": lambda s: expit(s) * expit(-s),
    "erfc": erfc,
}

# σ(s) ≈ 1 − erfc(_SIGMOID_SCALE · s) / 2: the normal distribution that has the variance π²/3 of the logistic one.
_SIGMOID_SCALE = np.sqrt(1.5) / np.pi
# Entries of a block of the direct sum: a few megabytes.
_BLOCK_ENTRIES = 500_000
# Up to this number a box and its centre are exact, for every width that is used.
_LARGEST_NUMBER = 2.0**40


def pair_sum(
    targets: ArrayLike,
    sources: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    function: str = "sigmoid",
    summation: str = "exact",
    eps: float = 1e-6,
) -> NDArray[Any]:
    r"""Sum a function of the differences to all sources, at each target.

    .. math:: f(y_j) = \sum_{i=1}^N q_i\, \varphi(y_j - z_i), \qquad j = 1, \dots, M

    Rankings, probit regression, neural networks and smoothed distribution functions need such sums. The two fast ways
    cost O(N + M), without an M × N matrix, however far the points are spread.

    Parameters
    ----------
    targets : array-like of shape (M,)
        The points y at which the sum is wanted.
    sources : array-like of shape (N,)
        The points z.
    weights : array-like of shape (N,), optional
        The weights q, of any sign; by default 1.
    function : {"sigmoid", "reversed_sigmoid", "log_sigmoid", "sigmoid_derivative", "erfc"}, default="sigmoid"
        The function φ of s: σ(s) = 1 / (1 + e⁻ˢ), σ(−s), log σ, σ' = σ(1 − σ), or the complementary error function.
    summation : {"exact", "erfc", "direct"}, default="exact"
        "exact": polynomials and exponentials, to machine precision. "erfc": the series of section 5 of the reference,
        to `eps`; σ(s) is then replaced by 1 − erfc(√1.5·s/π) / 2, which is off by up to 0.023 whatever `eps` is, and
        log σ and σ' are not available. "direct": all M·N terms, in blocks.
    eps : float, default=1e-6
        For "erfc": the largest error relative to Σ|q|, of the sum over erfc.

    Returns
    -------
    ndarray of shape (M,)
        The sums, float32 if all arrays are, computed in float64.

    Notes
    -----
    Error of "exact", as a share of :math:`\sum_i |q_i \varphi(y_j - z_i)|` at each target: below 1e-12, measured about
    1e-14, for the logistic functions also far out in their tails. For "erfc" it is a share of :math:`\sum_i |q_i|`,
    since values below 1e-16 of it are taken as zero.

    References
    ----------
    Raykar, Duraiswami and Krishnapuram, A fast algorithm for learning a ranking function from large-scale data sets,
    IEEE TPAMI 30, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.pairwise import pair_sum
    >>> pair_sum([0.0, 1.0], [0.0, 0.0, 100.0]).round(4)
    array([1.    , 1.4621])
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> exact, direct = (pair_sum(y, y, function="erfc", summation=s) for s in ("exact", "direct"))
    >>> bool(np.abs(exact - direct).max() < 1e-12 * 1000)
    True
    """
    check_summation(summation, eps)
    require_choice("function", function, FUNCTIONS)
    if summation == "erfc" and function in ("log_sigmoid", "sigmoid_derivative"):
        raise ValueError(f"summation='erfc' has no series for function={function!r}; use summation='exact'")
    arrays = [_points("targets", targets), _points("sources", sources)]
    arrays.append(np.ones_like(arrays[1]) if weights is None else _points("weights", weights))
    if len(arrays[1]) != len(arrays[2]):
        raise ValueError(f"weights and sources must be equally many, got {len(arrays[2])} and {len(arrays[1])}")
    dtype = np.result_type(*arrays)
    y, z, q = (np.ascontiguousarray(array, dtype=np.float64) for array in arrays)
    if not (len(y) and len(z)):
        return np.zeros(len(y), dtype)
    return fast_or_direct_sum(y, z, q, function, summation, eps).astype(dtype, copy=False)


def _points(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()  # one pass without a temporary array; finite unless there is a reason to look closer
    if not np.isfinite(total) and not np.isfinite(array).all():
        count = np.count_nonzero(~np.isfinite(array))
        raise ValueError(f"{name} must be finite, but hold {count} NaN or infinite values")
    return array


def check_summation(summation: Any, eps: Any) -> None:
    """Check the two parameters that say how to sum."""
    require_choice("summation", summation, SUMMATIONS)
    if not (isinstance(eps, Real) and 1e-13 <= float(eps) < 1):
        raise ValueError(f"eps must be at least 1e-13 and below 1, got {eps!r}; use a value such as 1e-6")


def boxes_between(smallest: float, largest: float, width: float, n_points: int) -> Floats | None:
    """The numbers of all boxes of a given width that points between two others may lie in.

    None where these would be many more than the points, or so large that they and their centres are not exact.
    """
    if max(abs(smallest), abs(largest)) > 1e300:
        raise ValueError(f"points must be at most 1e300 in absolute value, got {smallest:g} to {largest:g}; scale them")
    first, last = np.floor(smallest / width), np.floor(largest / width)
    few = last - first < max(64, n_points // 32) and max(abs(first), abs(last)) < _LARGEST_NUMBER
    return np.arange(first, last + 1) if few else None


def fast_or_direct_sum(y: Floats, z: Floats, q: Floats, function: str, summation: str, eps: float) -> Floats:
    """`pair_sum` on checked arrays of float64, none of them empty."""
    if summation == "direct":
        return direct_sum(y, z, q, function)
    if summation == "exact":
        from toprank.pairwise.boxes import exact_sum  # imports numba

        return exact_sum(y, z, q, function)
    if function == "erfc":
        return erfc_sum(y, z, q, eps)
    complement = erfc_sum(_SIGMOID_SCALE * y, _SIGMOID_SCALE * z, q, eps) / 2
    return complement if function == "reversed_sigmoid" else np.asarray(q.sum() - complement)


def direct_sum(y: Floats, z: Floats, q: Floats, function: str) -> Floats:
    """All terms, a block of targets and of sources at a time."""
    phi = FUNCTIONS[function]
    n_sources = min(len(z), 4096)  # partial sums keep rounding errors small
    n_targets = max(1, _BLOCK_ENTRIES // n_sources)
    values = np.zeros(len(y))
    for j in range(0, len(y), n_targets):
        for i in range(0, len(z), n_sources):
            terms = phi(y[j : j + n_targets, None] - z[i : i + n_sources])
            values[j : j + n_targets] += (terms * q[i : i + n_sources]).sum(axis=1)
    return values


@dataclass(frozen=True)
class SeriesParameters:
    """Parameters of the erfc series for an error of ε relative to Σ|q|, by section 5.8 of the paper.

    With e = erfc⁻¹(ε) a cluster has the radius r_x = e/10, rounded down to a binary fraction so that its centre is
    exact. A cluster counts by its series if its centre is within the cut-off radius r_y = e + r_x of a target; then all
    its sources are within r = r_y + r_x, which the series has to cover, and all sources of other clusters are farther
    than e.
    """

    cluster_radius: float
    cutoff: float
    h: float
    n_terms: int

    @classmethod
    def of(cls, eps: float) -> SeriesParameters:
        """The parameters for an ε."""
        far = float(erfcinv(eps))
        radius = max(np.floor(0.1 * far * 2**11), 1.0) / 2**11
        reach = far + 2 * radius
        h = np.pi / (3 * (reach + float(erfcinv(eps / 2))))
        n_terms = int(np.ceil(float(erfcinv(np.sqrt(np.pi) * h * eps / 4)) / (2 * h)))
        return cls(radius, far + radius, h, n_terms)


def erfc_sum(y: Floats, z: Floats, q: Floats, eps: float) -> Floats:
    r"""Sum over erfc by the truncated Fourier series of clusters, (30) and (31) of the paper.

    .. math:: \mathrm{erfc}(s) \approx 1 - \frac4\pi \sum_{n = 1, 3, \dots}^{2p - 1}
              \frac{e^{-n^2 h^2}}{n} \sin(2 n h s)
    """
    from toprank.pairwise._box_sums import fourier_coefficients, fourier_sums  # imports numba

    parameters = SeriesParameters.of(eps)
    width = 2 * parameters.cluster_radius
    centres, numbers = _clusters(z, width)
    total = np.zeros(len(centres))
    A, B = np.zeros((2, len(centres), parameters.n_terms))
    parts = np.zeros_like(B), np.zeros_like(A), np.zeros_like(total)
    fourier_coefficients(numbers, z - centres[numbers], q, parameters.h, B, A, total, parts)
    n = 2 * np.arange(parameters.n_terms) + 1
    scale = np.exp(-((n * parameters.h) ** 2)) / n
    first = np.searchsorted(centres, np.nextafter(y - parameters.cutoff, -np.inf))
    above, values = np.zeros(len(centres) + 1), np.empty(len(y))
    above[:-1] = np.cumsum(total[::-1])[::-1]
    fourier_sums(y, first, centres, width, parameters.cutoff, parameters.h, A * scale, B * scale, total, above, values)
    return values


def _clusters(z: Floats, width: float) -> tuple[Floats, NDArray[np.int64]]:
    """The centres of the clusters in rising order and the number of each point's cluster."""
    boxes = boxes_between(z.min(), z.max(), width, len(z))
    if boxes is not None:
        return (boxes + 0.5) * width, (np.floor(z / width) - boxes[0]).astype(np.int64)
    boxes, numbers = np.unique(np.floor(z / width), return_inverse=True)
    if max(abs(boxes[0]), abs(boxes[-1])) < _LARGEST_NUMBER:
        return (boxes + 0.5) * width, numbers
    width = 2.0 ** np.floor(np.log2(width))  # divides without rounding
    boxes, numbers = np.unique(np.floor(z / width), return_inverse=True)
    lowest, highest = np.full(len(boxes), np.inf), np.full(len(boxes), -np.inf)
    np.minimum.at(lowest, numbers, z)
    np.maximum.at(highest, numbers, z)
    return np.clip((boxes + 0.5) * width, lowest, highest), numbers  # no centre is rounded away from its points
