"""The payments are what their docstring says, and the file that ships is made of them."""

import csv
import gzip

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import gamma, lognorm, poisson

from toprank.datasets import make_payments, write_payments
from toprank.datasets._payments import _KINDS, _WORDS, FILE, csv_text


@pytest.fixture(scope="module")
def payments():
    return make_payments(random_state=0)


def test_the_file_is_what_the_generator_gives(payments):
    shipped = gzip.decompress(FILE.read_bytes()).decode().splitlines()
    made = csv_text(*payments[:2]).splitlines()
    assert len(shipped) == len(made) == 100_001
    # an amount is rounded to cents, so the last bit of a logarithm of another machine may show in a few rows
    assert sum(one != other for one, other in zip(shipped, made, strict=True)) <= 5
    assert FILE.stat().st_size < 1_500_000


def test_shares_gaps_and_days(payments):
    columns, y, _ = payments
    day = np.array([time[:10] for time in columns["time"]])
    assert np.unique(day, return_counts=True)[1].tolist() == [10_000] * 10
    assert sorted(columns["time"]) == columns["time"].tolist()
    assert len(set(columns["payment"])) == len(y)
    for share, expected in (
        (y.mean(), 0.0095),
        (np.mean(columns["device"] == None), 0.03),  # noqa: E711
        (np.mean(columns["country"] == None), 0.01),  # noqa: E711
        (np.isnan(columns["account_age"]).mean(), 0.04),
    ):
        assert abs(share - expected) < 4 * np.sqrt(expected / len(y))
    tiny = (y == 1) & (columns["amount"] < 4)
    assert tiny[:20_000].sum() > 1.3 * tiny[-20_000:].sum()  # one kind of fraud goes down while another comes up


def test_the_score_is_the_logarithm_of_the_odds(payments):
    columns, y, scores = payments
    # by densities of scipy, for some rows of the first and of the last day
    frauds = np.flatnonzero(y)
    for row in (*range(0, 9_000, 600), *range(99_000, 100_000, 100), *frauds[:5], *frauds[-5:]):
        last = int(row >= 90_000)
        by_class = {False: 0.0, True: 0.0}
        for kind in _KINDS:
            density = kind.share[last] * lognorm.pdf(columns["amount"][row], kind.amount[1], scale=kind.amount[0])
            density *= poisson.pmf(columns["payments_today"][row] - 1, kind.payments_today)
            if not np.isnan(columns["account_age"][row]):
                density *= gamma.pdf(columns["account_age"][row], 2, scale=kind.account_age / 2)
            for name, words in _WORDS.items():
                if columns[name][row] is not None:
                    density *= getattr(kind, name)[words.index(columns[name][row])]
            by_class[kind.fraud] += density
        assert scores[row] == pytest.approx(np.log(by_class[True] / by_class[False]), abs=1e-8)
    # and the odds are right: as much fraud as expected, in every range of the score
    chance = 0.95 * expit(scores)
    for low, high in ((0, 0.002), (0.002, 0.01), (0.01, 0.1), (0.1, 0.5), (0.5, 1)):
        inside = (chance >= low) & (chance < high)
        deviation = np.sqrt((chance[inside] * (1 - chance[inside])).sum())
        assert abs(y[inside].sum() - chance[inside].sum()) < 4 * deviation


def test_disputed_payments_cannot_be_found():
    assert _KINDS[-1].fraud
    assert not _KINDS[0].fraud
    assert vars(_KINDS[-1]) | {"fraud": False, "share": None} == vars(_KINDS[0]) | {"share": None}


def test_the_files_are_split_by_time(tmp_path):
    train, test = write_payments(tmp_path / "new" / "folder")
    rows = [list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) for path in (train, test)]
    assert [len(part) for part in rows] == [70_000, 30_000]
    assert rows[0][-1]["time"][:10] == "2026-03-08" < rows[1][0]["time"][:10] == "2026-03-09"
    assert {row["fraud"] for part in rows for row in part} == {"0", "1"}
