"""Made card payments with a known best ranking, and the file of them that comes with the package.

The file is ``csv_text(*make_payments(random_state=0)[:2])``, compressed; a test checks it.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.checks import require_count
from toprank.datasets._generators import Floats, Ints, random_of

FILE = Path(__file__).with_name("payments.csv.gz")
# The file holds so many days, of which the first are to learn from.
N_DAYS, N_LEARNED = 10, 7
_FIRST_DAY = np.datetime64("2026-03-02T00:00:00")  # a Monday
_HOURS = np.array([2, 1, 1, 1, 1, 2, 5, 10, 13, 14, 15, 17, 20, 18, 16, 16, 18, 21, 20, 16, 11, 8, 5, 3]) / 254
# Text columns and their values; `_Kind` has the shares in this order.
_WORDS = {
    "merchant": ["grocery", "restaurant", "fuel", "clothing", "electronics", "travel", "digital", "gift cards", "cash"],
    "device": ["chip", "contactless", "app", "web"],
    "country": ["home", "neighbour", "overseas"],
    "new_device": ["no", "yes"],
}
# Share of rows in which a value is missing, whatever the kind.
_GAPS = {"device": 0.03, "country": 0.01, "account_age": 0.04}


@dataclass(frozen=True)
class _Kind:
    """A kind of payment. Its columns are independent of each other.

    The amount is lognormal (median and standard deviation of its logarithm), the payments of the card on that day are
    1 plus a Poisson number, the age of the account is a gamma variable of shape 2.
    """

    fraud: bool
    share: tuple[float, float]  # on the first and on the last day, in between along a line
    amount: tuple[float, float]
    payments_today: float
    account_age: float
    merchant: tuple[float, ...]
    device: tuple[float, ...]
    country: tuple[float, ...]
    new_device: tuple[float, ...]

    def columns(self, n: int, rng: Any) -> dict[str, NDArray[Any]]:
        median, deviation = self.amount
        drawn: dict[str, NDArray[Any]] = {
            "amount": np.maximum(np.round(median * np.exp(deviation * rng.standard_normal(n)), 2), 0.01),
            "payments_today": 1 + rng.poisson(self.payments_today, n),
            "account_age": np.maximum(np.round(rng.gamma(2, self.account_age / 2, n), 1), 0.1),
        }
        for name, words in _WORDS.items():
            drawn[name] = np.array(words, dtype=object)[rng.choice(len(words), n, p=getattr(self, name))]
        return drawn

    def log_density(self, columns: dict[str, NDArray[Any]]) -> Floats:
        """Up to a constant that all kinds share; a missing value says nothing."""
        from scipy.special import gammaln

        (median, deviation), rate, mean = self.amount, self.payments_today, self.account_age
        others = columns["payments_today"] - 1
        density: Floats = -(np.log(columns["amount"] / median) ** 2) / (2 * deviation**2) - np.log(deviation)
        density += others * np.log(rate) - rate - gammaln(others + 1)
        density += np.nan_to_num(-2 * columns["account_age"] / mean - 2 * np.log(mean))
        for name, words in _WORDS.items():
            for word, share in zip(words, getattr(self, name), strict=True):
                density[columns[name] == word] += np.log(share)
        return density


_EVERYDAY: dict[str, Any] = {
    "amount": (28, 0.9),
    "payments_today": 0.8,
    "account_age": 7,
    "merchant": (0.34, 0.18, 0.09, 0.11, 0.05, 0.04, 0.11, 0.01, 0.07),
    "device": (0.35, 0.36, 0.11, 0.18),
    "country": (0.965, 0.025, 0.01),
    "new_device": (0.98, 0.02),
}
_KINDS = [
    _Kind(fraud=False, share=(0.910, 0.910), **_EVERYDAY),
    # abroad, where much of what is unusual for a card is usual for its owner
    _Kind(
        fraud=False,
        share=(0.040, 0.040),
        amount=(55, 0.9),
        payments_today=2.5,
        account_age=8,
        merchant=(0.10, 0.30, 0.05, 0.10, 0.03, 0.24, 0.03, 0.01, 0.14),
        device=(0.44, 0.37, 0.10, 0.09),
        country=(0.02, 0.63, 0.35),
        new_device=(0.95, 0.05),
    ),
    # a new telephone: everything as ever but the device
    _Kind(
        fraud=False,
        share=(0.025, 0.025),
        **(_EVERYDAY | {"device": (0.04, 0.04, 0.56, 0.36), "new_device": (0.05, 0.95)}),
    ),
    # a day of shopping on the web
    _Kind(
        fraud=False,
        share=(0.015, 0.015),
        amount=(35, 0.8),
        payments_today=5,
        account_age=6,
        merchant=(0.05, 0.05, 0.02, 0.36, 0.16, 0.04, 0.24, 0.06, 0.02),
        device=(0.03, 0.05, 0.34, 0.58),
        country=(0.86, 0.09, 0.05),
        new_device=(0.94, 0.06),
    ),
    # stolen numbers tried out by tiny payments
    _Kind(
        fraud=True,
        share=(0.004, 0.002),
        amount=(2.5, 0.6),
        payments_today=6,
        account_age=7,
        merchant=(0.02, 0.02, 0.02, 0.05, 0.03, 0.02, 0.72, 0.11, 0.01),
        device=(0.01, 0.01, 0.10, 0.88),
        country=(0.35, 0.20, 0.45),
        new_device=(0.45, 0.55),
    ),
    # a stolen card, used until it is blocked
    _Kind(
        fraud=True,
        share=(0.0025, 0.0025),
        amount=(85, 0.7),
        payments_today=5,
        account_age=7,
        merchant=(0.08, 0.04, 0.14, 0.14, 0.28, 0.02, 0.01, 0.10, 0.19),
        device=(0.30, 0.66, 0.02, 0.02),
        country=(0.80, 0.15, 0.05),
        new_device=(0.97, 0.03),
    ),
    # an account in other hands
    _Kind(
        fraud=True,
        share=(0.0015, 0.0035),
        amount=(220, 0.8),
        payments_today=1.2,
        account_age=10,
        merchant=(0.02, 0.02, 0.01, 0.12, 0.35, 0.16, 0.10, 0.20, 0.02),
        device=(0.01, 0.01, 0.42, 0.56),
        country=(0.60, 0.20, 0.20),
        new_device=(0.15, 0.85),
    ),
    # paid and later disputed: nothing tells it from the everyday
    _Kind(fraud=True, share=(0.002, 0.002), **_EVERYDAY),
]
# Share of fraud that nobody reported: its label is 0.
_UNREPORTED = 0.05


def make_payments(
    n_samples: int = 100_000, *, n_days: int = N_DAYS, random_state: Any = None
) -> tuple[dict[str, NDArray[Any]], Ints, Floats]:
    r"""Card payments of some days, one in a hundred fraud, with text, gaps and time; the best ranking is known.

    A payment is of one of eight kinds, and given the kind its columns are independent. Honest are the everyday (91 %),
    travellers (4 %), owners of a new telephone (2.5 %) and days of shopping on the web (1.5 %). Fraud, 1 % together, is
    stolen numbers that are tried out by tiny payments (from 0.4 % on the first day to 0.2 % on the last), stolen cards
    (0.25 %), accounts in other hands (from 0.15 % to 0.35 %), and payments that are disputed later, which nothing tells
    from the everyday (0.2 %). One fraud in twenty is never reported, so that its label is 0. Of the devices 3 % are
    missing, of the countries 1 %, of the ages of accounts 4 %, whatever the kind.

    By the Neyman-Pearson lemma no score of these columns finds more fraud, at any number of alerts a day, than the
    ratio of the densities, here in the mean over many days.

    Parameters
    ----------
    n_samples : int, default=100_000
        Number of payments, about the same on each day.
    n_days : int, default=10
        Number of days.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    columns : dict of ndarray
        By name and ordered by time: `payment`, an identifier; `time`, in ISO format; `amount`; `merchant`, `device`,
        `country` and `new_device`, text; `payments_today`, of this card; `account_age`, in years. A missing text is
        None, a missing number is nan.
    y : ndarray of int64 of shape (n_samples,)
        1 for fraud that was reported.
    scores : ndarray of shape (n_samples,)
        The logarithm of the density of fraud over that of honest payments.

    Examples
    --------
    >>> from toprank.datasets import make_payments
    >>> from toprank.metrics import recall_at_k
    >>> columns, y, scores = make_payments(20_000, n_days=2, random_state=0)
    >>> list(columns)[:4], str(columns["time"][0])[:10], int(y.sum())
    (['payment', 'time', 'amount', 'merchant'], '2026-03-02', 187)
    >>> round(recall_at_k(y, scores, k=400), 2)  # more cannot be found by 200 alerts a day
    0.74
    """
    require_count("n_samples", n_samples)
    require_count("n_days", n_days)
    rng = random_of(random_state)
    day = np.arange(n_samples) * n_days // n_samples
    shares = _shares(day, n_days)
    kind = (rng.uniform(size=n_samples)[:, None] > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
    seconds = 3600 * rng.choice(24, n_samples, p=_HOURS) + rng.randint(3600, size=n_samples)
    time = _FIRST_DAY + np.sort(86400 * day + seconds).astype("timedelta64[s]")
    columns: dict[str, NDArray[Any]] = {
        "payment": np.array([f"P{i:06}" for i in range(1, n_samples + 1)], dtype=object),
        "time": np.datetime_as_string(time).astype(object),
    }
    parts = [one.columns(n_samples, rng) for one in _KINDS]
    for name in ("amount", *_WORDS, "payments_today", "account_age"):
        columns[name] = np.choose(kind, [part[name] for part in parts])
    for name, share in _GAPS.items():
        columns[name][rng.uniform(size=n_samples) < share] = None if name in _WORDS else np.nan
    fraud = np.array([one.fraud for one in _KINDS])[kind]
    reported = rng.uniform(size=n_samples) >= _UNREPORTED
    return columns, (fraud & reported).astype(np.int64), _log_ratio(columns, shares)


def _shares(day: NDArray[np.intp], n_days: int) -> Floats:
    """The shares of the kinds, in the columns, on the day of each row."""
    first, last = (np.array([one.share[end] for one in _KINDS]) for end in (0, 1))
    passed = day[:, None] / max(n_days - 1, 1)
    shares: Floats = (1 - passed) * first + passed * last
    return shares


def _log_ratio(columns: dict[str, NDArray[Any]], shares: Floats) -> Floats:
    from scipy.special import logsumexp

    densities: Floats = np.log(shares) + np.column_stack([one.log_density(columns) for one in _KINDS])
    fraud = np.array([one.fraud for one in _KINDS])
    ratio: Floats = logsumexp(densities[:, fraud], axis=1) - logsumexp(densities[:, ~fraud], axis=1)
    return ratio


def csv_text(columns: dict[str, NDArray[Any]], y: Ints) -> str:
    """Payments with their labels as CSV; a missing value is an empty field."""
    fields = [columns[name] for name in columns] + [y]
    lines = [",".join([*columns, "fraud"])]
    lines += [
        ",".join("" if value is None or value != value else str(value) for value in row)
        for row in zip(*fields, strict=True)
    ]
    return "\n".join(lines) + "\n"


def write_payments(folder: str | os.PathLike[str] = ".") -> tuple[Path, Path]:
    """Write the card payments that come with the package as two CSV files, to learn from and to test with.

    They are 100,000 payments of ten days by :func:`make_payments`, 1 % of them fraud: the first seven days in
    ``payments-train.csv``, the last three in ``payments-test.csv``.

    Parameters
    ----------
    folder : path, default="."
        Where to write; it is made if need be.

    Returns
    -------
    train, test : Path
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from toprank.datasets import write_payments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train, test = write_payments(folder)
    ...     lines = train.read_text().splitlines()
    >>> len(lines), lines[0]
    (70001, 'payment,time,amount,merchant,device,country,new_device,payments_today,account_age,fraud')
    """
    from toprank.persistence.atomic import write_atomically

    head, *lines = gzip.decompress(FILE.read_bytes()).decode().splitlines(keepends=True)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    learned = len(lines) * N_LEARNED // N_DAYS
    paths = folder / "payments-train.csv", folder / "payments-test.csv"
    for path, part in zip(paths, (lines[:learned], lines[learned:]), strict=True):
        write_atomically(path, ["".join([head, *part]).encode()])
    return paths
