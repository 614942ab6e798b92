"""Whether the scores of negatives are still those of the time of the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.exceptions import InputError
from toprank.ranking.tie_runs import Floats, score_column

_HIGHEST, _STEPS = 500, 500  # scores that a sample keeps: so many of the highest, and so many at equal steps below
SURPRISING = 0.01
"""A p-value below this is told to the user."""
_FAR = 0.1  # a distance of two distributions that matters whatever the threshold is


@dataclass(frozen=True)
class ScoreSample:
    """What is kept of the scores of negatives: how many, how many are above the threshold, and quantiles.

    The 500 highest scores are kept one by one, as there the threshold is, and of those below 500 at equal steps: at
    most 1,000 numbers, by which the share of the rows above a score is known up to 1/499, and exactly at the top.

    Examples
    --------
    >>> from toprank.ranking.drift import ScoreSample
    >>> sample = ScoreSample.of([-3.0, 0.5, -1.0, -2.0])
    >>> sample.rows, sample.above, sample.quantiles.tolist()
    (4, 1, [-3.0, -2.0, -1.0, 0.5])
    """

    rows: int
    above: int
    quantiles: Floats

    @classmethod
    def of(cls, scores: ArrayLike, threshold: float = 0.0) -> Self:
        """The sample of some scores of negatives."""
        values = np.sort(score_column(scores, "scores").astype(np.float64))
        if not len(values):
            raise InputError.saying("there are no negatives, whose scores could be compared; give some rows of them")
        return cls(len(values), int((values > threshold).sum()), values[_places(len(values))])

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """The sample that a model file kept."""
        sample = cls(int(record["rows"]), int(record["above"]), np.array(record["quantiles"], dtype=np.float64))
        if len(sample.quantiles) != len(_places(sample.rows)) or np.any(np.diff(sample.quantiles) < 0):
            raise InputError.saying("the scores kept of the fit are damaged; fit the model again")
        return sample

    def record(self) -> dict[str, Any]:
        """What a model file keeps."""
        return {"rows": self.rows, "above": self.above, "quantiles": self.quantiles}

    @property
    def share(self) -> float:
        """The share above the threshold: the false positive rate."""
        return self.above / self.rows

    def share_above(self, scores: ArrayLike) -> Floats:
        """The share of the rows above each of some scores, by the quantiles."""
        not_above = np.concatenate([[0], _places(self.rows) + 1])[np.searchsorted(self.quantiles, scores, side="right")]
        return np.asarray((self.rows - not_above) / self.rows, dtype=np.float64)

    @property
    def step(self) -> float:
        """The largest share of rows between two scores that are kept."""
        return float(np.max(np.diff(_places(self.rows)), initial=1) - 1) / self.rows


def _places(n_rows: int) -> NDArray[np.intp]:
    """Which scores in ascending order are kept."""
    first = max(n_rows - _HIGHEST, 0)
    below = np.linspace(0, first - 1, _STEPS).astype(np.intp) if first > _STEPS else np.arange(first)
    return np.concatenate([below, np.arange(first, n_rows)])


@dataclass(frozen=True)
class ScoreDrift:
    """Two samples of scores of negatives, of the fit and of today, and whether chance explains their difference.

    What a threshold promises is a share of the negatives above it, so that is what the first test is about: Fisher's
    exact test of the counts above the threshold then and now, both of which are samples. A test of whole distributions
    has little power there, where one row in a thousand matters, and calls any large table different. The distance of
    Kolmogorov and Smirnov stands beside it, for a change that has not reached the threshold yet; as quantiles know
    the distributions up to their steps, these are taken off the distance before its p-value.

    Attributes
    ----------
    before, now : ScoreSample
        The samples.
    p_value : float
        Of Fisher's exact test, two-sided, for the shares above the threshold.
    distance : float
        The largest difference of the two shares above one and the same score.
    distance_p_value : float
        Its p-value, asymptotic and on the safe side.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.plots import ScoreDrift
    >>> rng = np.random.default_rng(0)
    >>> drift = ScoreDrift.of(rng.normal(-2, 1, 5000), rng.normal(-1.5, 1, 5000))
    >>> round(drift.before.share, 3), round(drift.now.share, 3), drift.p_value < 1e-6
    (0.022, 0.064, True)
    >>> ScoreDrift.of(rng.normal(-2, 1, 5000), rng.normal(-2, 1, 5000)).is_surprising
    False
    """

    before: ScoreSample
    now: ScoreSample
    p_value: float
    distance: float
    distance_p_value: float

    @classmethod
    def of(cls, before: ScoreSample | ArrayLike, now: ScoreSample | ArrayLike, threshold: float = 0.0) -> Self:
        """Compare two samples, or scores of negatives, about a threshold."""
        from scipy.stats import fisher_exact, kstwo

        first, second = (
            sample if isinstance(sample, ScoreSample) else ScoreSample.of(sample, threshold) for sample in (before, now)
        )
        table = [[sample.above, sample.rows - sample.above] for sample in (first, second)]
        scores = np.concatenate([first.quantiles, second.quantiles])
        distance = float(np.max(np.abs(first.share_above(scores) - second.share_above(scores))))
        size = round(first.rows * second.rows / (first.rows + second.rows))
        surprise = float(kstwo.sf(max(distance - first.step - second.step, 0.0), max(size, 1)))
        return cls(first, second, float(fisher_exact(table).pvalue), distance, min(surprise, 1.0))

    @property
    def alarms_differ(self) -> bool:
        """Whether chance hardly explains the difference of the shares above the threshold."""
        return self.p_value < SURPRISING

    @property
    def is_surprising(self) -> bool:
        """Whether there is something to tell: other alarms, or scores that have moved far."""
        return self.alarms_differ or (self.distance_p_value < SURPRISING and self.distance >= _FAR)

    def record(self) -> dict[str, Any]:
        """Plain data without the quantiles."""
        return {
            "fpr_before": self.before.share,
            "fpr_now": self.now.share,
            "p_value": self.p_value,
            "distance": self.distance,
            "distance_p_value": self.distance_p_value,
            "drifted": self.is_surprising,
        }

    def sentence(self) -> str:
        """What there is to tell, in words."""
        rose = "risen" if self.now.share > self.before.share else "fallen"
        if self.alarms_differ:
            return (
                f"the negatives have drifted since the fit: the share of them above the threshold has {rose} from "
                f"{100 * self.before.share:.2g} % to {100 * self.now.share:.2g} % (Fisher's exact test, "
                f"p = {self.p_value:.1g})"
            )
        return (
            f"the scores of the negatives have {'moved' if self.is_surprising else 'not moved much'} since the fit: "
            f"the distance of the distributions is {self.distance:.2g} (Kolmogorov and Smirnov, p = "
            f"{self.distance_p_value:.1g}), {100 * self.before.share:.2g} % were above the threshold and "
            f"{100 * self.now.share:.2g} % are (Fisher's exact test, p = {self.p_value:.1g})"
        )
