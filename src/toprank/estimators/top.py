"""The eight estimators: TopPush, TopPushK, TauFPL, TopMeanK, PatMat, PatMatNP, Grill, GrillNP."""

from __future__ import annotations

from dataclasses import dataclass

from toprank.checks import require_positive
from toprank.estimators._kernels import KernelClassifier
from toprank.estimators._shares import (
    BudgetClassifier,
    QuantileClassifier,
    SurrogateQuantileClassifier,
    TopMeanClassifier,
)
from toprank.exceptions import Message
from toprank.formulations.thresholds import Threshold, TopMean


class TopPush(KernelClassifier):
    r"""Push positives above the highest negative.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \ell\bigl(\max_j w^\top x_j^- - w^\top x_i^+\bigr)

    Use it when the very first false alarm ends the list. Do not use it on noisy labels: one mislabelled negative among
    the positives can make w = 0 optimal (a `DegenerateSolutionWarning` says so); then take `TopPushK`, `TauFPL` or
    `PatMatNP`.

    Parameters
    ----------
    {shared:top}

    References
    ----------
    Li, Jin and Zhou, Top rank optimization in linear time, NIPS 2014.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import TopPush
    >>> from toprank.datasets import load_bundled
    >>> data = load_bundled("breast_cancer")
    >>> model = make_pipeline(StandardScaler(), TopPush()).fit(data.X, data.y)
    >>> bool(model[-1].dual_gap_ <= 1e-4)
    True
    """

    remedies = "use TopPushK, TauFPL or PatMatNP (which cannot collapse), remove the row, or add features"

    def _threshold(self) -> Threshold:
        return TopMean()


@dataclass(eq=False, repr=False)
class TopPushK(BudgetClassifier, KernelClassifier):
    r"""Push positives above the mean of the k highest negatives.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \ell(t - w^\top x_i^+), \qquad
              t = \frac1k \sum_{j=1}^k s^-_{[j]}

    The robust sibling of `TopPush`: a few outliers move the threshold little. k need not be an integer; the last row
    then counts in part, and weights count as rows. Its budget is k of as many negatives as there are in training.

    Parameters
    ----------
    k : float, default=10
        Number of negatives at the top, between 0 and the number of negatives.
    {shared:mean}

    References
    ----------
    Mácha, General framework for classification at the top, dissertation, CTU in Prague, 2021, (3.8).

    Examples
    --------
    >>> from toprank import TopPushK
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, separation=4.0, random_state=0)
    >>> model = TopPushK(k=5).fit(X, y)
    >>> model.coef_.shape, bool(model.dual_gap_ <= 1e-4)
    ((1, 10), True)
    """

    remedies = Message("use a larger {k}, TauFPL or PatMatNP (which cannot collapse), or add features")

    k: float = 10

    def _check_parameters(self) -> None:
        require_positive("k", self.k, "use a number of rows such as 10")
        super()._check_parameters()

    def _threshold(self) -> Threshold:
        return TopMean(k=float(self.k))

    def _budget(self, total: float) -> float:
        return float(self.k) / total


class TauFPL(TopMeanClassifier):
    r"""Push positives above the mean of the share τ of highest negatives.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \ell(t - w^\top x_i^+), \qquad
              t = \frac{1}{n\tau} \sum_{j=1}^{n\tau} s^-_{[j]}

    `TopPushK` with k = n·τ: use it for a budget of false alarms, a false positive rate of at most τ. The threshold is
    an upper bound of the true quantile; `predict` takes one that spends the budget, see `threshold`. With n·τ ≤ 1 it is
    `TopPush`.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the negatives at the top, strictly between 0 and 1.
    {shared:mean}

    References
    ----------
    Zhang et al., τ-FPL: tolerance-constrained learning in linear time, AAAI 2018.
    Mácha, General framework for classification at the top, dissertation, CTU in Prague, 2021, (3.22).

    Examples
    --------
    >>> from toprank import TauFPL
    >>> from toprank.datasets import make_imbalanced, optimal_tpr
    >>> from toprank.metrics import tpr_at_fpr
    >>> X, y, _ = make_imbalanced(20_000, separation=3.0, random_state=0)
    >>> model = TauFPL(tau=0.01).fit(X[:10_000], y[:10_000])
    >>> tpr = tpr_at_fpr(y[10_000:], model.decision_function(X[10_000:]), max_fpr=0.01)
    >>> bool(abs(tpr - optimal_tpr(0.01, separation=3.0)) < 0.1)
    True
    """

    remedies = Message("use a larger {tau} or PatMatNP (which cannot collapse), or add features")


class TopMeanK(TopMeanClassifier):
    r"""Push positives above the mean of the share τ of highest rows of both classes.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \ell(t - w^\top x_i^+), \qquad
              t = \frac{1}{N\tau} \sum_{j=1}^{N\tau} s_{[j]}

    The convex bound of "accuracy at the top": act on the best share τ of all rows. If there are at least N·τ positives,
    w = 0 is always optimal (Corollary 3.7 of the framework), so use it for τ above the share of positives, else
    `PatMat`.

    Parameters
    ----------
    tau : float, default=0.05
        Share of all rows at the top, strictly between 0 and 1.
    {shared:mean}

    References
    ----------
    Mácha, General framework for classification at the top, dissertation, CTU in Prague, 2021, (3.15).

    Examples
    --------
    >>> from toprank import TopMeanK
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, positive_share=0.05, random_state=0)
    >>> model = TopMeanK(tau=0.2).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    """

    remedies = Message("use a {tau} above the share of positives, PatMat (which cannot collapse), or add features")

    over = "all"


class PatMat(SurrogateQuantileClassifier):
    r"""Push positives above a smooth surrogate of the top τ-quantile of all rows (Pat&Mat).

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \ell(t - w^\top x_i^+), \qquad
              \frac1N \sum_{j=1}^N \ell(\beta (s_j - t)) = \tau

    Convex, smooth, and it cannot collapse to w = 0 for small β (Theorem 3.8 of the framework). Use it to act on the
    best share τ of all rows when positives are many or labels noisy. The t of the formulation lies above the true
    quantile; `predict` takes a threshold that spends the budget, see `threshold`.

    The quantile is over all rows, as in (3.13) of the framework; the kernel paper's (10) uses the negatives only, which
    is `PatMatNP` with τ' = N·τ/n.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the rows at the top, strictly between 0 and 1.
    beta : float, default=0.1
        Scaling of the surrogate in the quantile, positive: small is more stable, large is closer to the quantile.
    {shared:smooth}

    References
    ----------
    Mácha, General framework for classification at the top, dissertation, CTU in Prague, 2021, (3.16).

    Examples
    --------
    >>> from toprank import PatMat
    >>> from toprank.datasets import make_outlier
    >>> X, y = make_outlier(500, random_state=0)
    >>> model = PatMat(tau=0.1).fit(X, y)
    >>> bool(model.coef_[0, 0] > 10 * abs(model.coef_[0, 1]))  # the outlier does not turn the direction
    True
    """

    over = "all"


class PatMatNP(SurrogateQuantileClassifier):
    r"""Push positives above a smooth surrogate of the top τ-quantile of the negatives (Pat&Mat-NP).

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \ell(t - w^\top x_i^+), \qquad
              \frac1n \sum_{j=1}^n \ell(\beta (s_j^- - t)) = \tau

    Convex, smooth, and it cannot collapse to w = 0 for small β (Theorem 3.8 of the framework): the first choice for a
    budget of false alarms on noisy data. The t of the formulation lies far above the true quantile; `predict` takes a
    threshold that spends the budget, see `threshold`. For a guarantee put it in a `NeymanPearsonClassifier`.

    The mean is over the n negatives; the framework's (3.20) prints 1/N, a misprint.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the negatives at the top, the false positive rate, strictly between 0 and 1.
    beta : float, default=0.1
        Scaling of the surrogate in the quantile, positive: small is more stable, large is closer to the quantile.
    {shared:smooth}

    References
    ----------
    Mácha, General framework for classification at the top, dissertation, CTU in Prague, 2021, (3.23).

    Examples
    --------
    >>> from toprank import PatMatNP
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, random_state=0)
    >>> model = PatMatNP(tau=0.01).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    """


class Grill(QuantileClassifier):
    r"""Separate the rows at the true top τ-quantile of all scores.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \ell(t - w^\top x_i^+)
              + \frac1n \sum_{j=1}^n \ell(w^\top x_j^- - t), \qquad t = s_{[N\tau]}

    Neither convex nor smooth: the result is the best stationary point of several descents, without a certificate, and
    may depend on `random_state`. It is here for comparison with the literature; prefer `PatMat`.

    Parameters
    ----------
    tau : float, default=0.05
        Share of all rows at the top, strictly between 0 and 1.
    {shared:quantile}

    References
    ----------
    Grill and Pevný, Learning combination of anomaly detectors for security domain, Computer Networks 107, 2016.
    Mácha, General framework for classification at the top, dissertation, CTU in Prague, 2021, (3.14).

    Examples
    --------
    >>> from toprank import Grill
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, random_state=0)
    >>> model = Grill(tau=0.05, threshold="trained", random_state=0).fit(X, y)
    >>> model.coef_.shape
    (1, 10)
    """

    over = "all"


class GrillNP(QuantileClassifier):
    r"""Separate the rows at the true top τ-quantile of the negatives' scores.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \ell(t - w^\top x_i^+)
              + \frac1n \sum_{j=1}^n \ell(w^\top x_j^- - t), \qquad t = s^-_{[n\tau]}

    Neither convex nor smooth: the result is the best stationary point of several descents, without a certificate, and
    may depend on `random_state`. It is here for comparison with the literature; prefer `PatMatNP`.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the negatives at the top, the false positive rate, strictly between 0 and 1.
    {shared:quantile}

    References
    ----------
    Mácha, General framework for classification at the top, dissertation, CTU in Prague, 2021, (3.21).

    Examples
    --------
    >>> from toprank import GrillNP
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, random_state=0)
    >>> model = GrillNP(tau=0.05, threshold="trained", random_state=0).fit(X, y)
    >>> model.coef_.shape
    (1, 10)
    """
