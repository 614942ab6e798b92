"""Times of rows, periods of them, and which rows are the latest."""

import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.exceptions import InputError
from toprank.files import TableError
from toprank.files.alerts_per_period import AlertsPerPeriod
from toprank.files.periods import Periods, check_per
from toprank.files.times import Times, blocks_of_time, latest_rows


def times(values, name="when"):
    return Times.of(pl.Series(name, values, dtype=pl.String))


def seconds(*moment):
    return datetime.datetime(*moment, tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-03-01", "2024-12-31"], [(2024, 3, 1), (2024, 12, 31)]),
        (["2024-03-01 10:30", " 2024-12-31 23:59"], [(2024, 3, 1, 10, 30), (2024, 12, 31, 23, 59)]),
        (["2024-03-01T10:30:05", "2024-12-31T23:59:59"], [(2024, 3, 1, 10, 30, 5), (2024, 12, 31, 23, 59, 59)]),
        (["2024-03-01 00:00:00.000000", "2024-03-01 00:00:01"], [(2024, 3, 1), (2024, 3, 1, 0, 0, 1)]),
        (["2024-03-01T10:00:00Z", "2024-03-01T10:00:00Z"], [(2024, 3, 1, 10)] * 2),
        (["2024-03-01T10:00:00+02:00"], [(2024, 3, 1, 8)]),
        (["31.12.2024", "01.03.2024"], [(2024, 12, 31), (2024, 3, 1)]),
        (["31/12/2024 10:00", "01/03/2024 11:00"], [(2024, 12, 31, 10), (2024, 3, 1, 11)]),
        (["12/31/2024", "03/01/2024"], [(2024, 12, 31), (2024, 3, 1)]),
        (["03/31/2024 1:05 PM"], [(2024, 3, 31, 13, 5)]),
        (["20240131", "20240301"], [(2024, 1, 31), (2024, 3, 1)]),
    ],
)
def test_dates_and_times_as_people_write_them(values, expected):
    found = times(values)
    assert found.has_clock
    np.testing.assert_array_equal(found.values, [seconds(*moment) for moment in expected])


def test_numbers_keep_their_unit_and_missing_times_are_known():
    found = times(["3", "1.5", "", "NA", None])
    assert not found.has_clock
    np.testing.assert_array_equal(found.values, [3, 1.5, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(found.known, [True, True, False, False, False])
    for unit in (1, 1e3, 1e6, 1e9):  # since 1970
        assert times([str(int(1.7e9 * unit))]).seconds()[0] == pytest.approx(1.7e9)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["01/02/2024", "02/03/2024"], "may have the day or the month first"),
        (["2024-01-01", "yesterday"], "'yesterday' is neither a number nor a date"),
        (["12.5", "x"], "'x' is neither a number nor a date"),
        ([None, " "], "has no times"),
    ],
)
def test_what_is_no_time_is_refused_with_its_value(values, words):
    with pytest.raises(TableError, match=words):
        times(values)


@given(st.lists(st.integers(0, 12), min_size=2, max_size=40), st.floats(0.05, 0.9))
def test_the_latest_rows_by_brute_force(values, share):
    y = np.arange(len(values)) % 2
    when = Times(np.array(values, dtype=float), "t")
    try:
        train, test = latest_rows(when, y, share)
    except TableError:
        return  # one time only, or one class in a part
    assert sorted([*train, *test]) == list(range(len(values)))
    assert when.values[train].max() < when.values[test].min()
    assert np.all(np.diff(when.values[train]) >= 0)
    sizes = [sum(value > cut for value in values) for cut in sorted(set(values))[:-1]]
    assert abs(len(test) - share * len(values)) == pytest.approx(min(abs(n - share * len(values)) for n in sizes))


def test_parts_without_a_class_are_refused_with_a_remedy():
    when = Times.in_order(10)
    with pytest.raises(TableError, match=r"the last 2 rows by time are all negatives.*more, by holdout=0\.4"):
        latest_rows(when, np.array([1] * 5 + [0] * 5), 0.2)
    with pytest.raises(TableError, match=r"the first 8 rows by time are all negatives.*fewer, by holdout=0\.1"):
        latest_rows(when, np.array([0] * 8 + [0, 1]), 0.2)
    with pytest.raises(TableError, match="all rows have one time"):
        latest_rows(Times(np.zeros(4), "t"), np.array([0, 1, 0, 1]), 0.5)
    assert len(latest_rows(when, np.zeros(10, int), 0)[1]) == 0


def test_periods_of_dates_and_of_times():
    days = times(["2024-02-28", "2024-02-29", "2024-02-29", "2024-03-04"])
    found = Periods.of(days, "day")
    assert (found.number, found.whole.all()) == (3.0, True)  # days without rows do not count
    assert found.counts(np.ones(4, bool)) == [1, 2, 1]
    assert Periods.of(days, "week").starts.tolist() == [seconds(2024, 2, 26), seconds(2024, 3, 4)]
    assert Periods.of(days, "month").starts.tolist() == [seconds(2024, 2, 1), seconds(2024, 3, 1)]
    hours = times(["2024-02-28 18:00", "2024-02-29 03:00", "2024-03-01 06:00"])
    found = Periods.of(hours, "day")
    assert found.number == pytest.approx(0.25 + 1 + 0.25)
    assert found.whole.tolist() == [False, True, False]
    nearly = Periods.of(times(["2024-02-28 00:05", "2024-02-28 12:00", "2024-02-29 23:50"]), "day")
    assert nearly.whole.all()
    assert not Periods.of(times(["2024-02-28 00:05", "2024-02-28 12:00"]), "day").whole.any()
    month = Periods.of(times(["2024-02-15 12:00", "2024-03-01 12:00"]), "month")
    assert month.number == pytest.approx(14.5 / 29 + 0.5 / 31)


def test_a_length_in_the_unit_of_the_times():
    assert check_per("86400") == 86400
    found = Periods.of(Times(np.array([0.0, 5, 12, 29]), "t"), 10)
    assert found.counts(np.ones(4, bool)) == [2, 1, 1]
    assert found.number == pytest.approx(2.9)
    with pytest.raises(InputError, match="per must be one of 'hour'"):
        check_per("fortnight")
    with pytest.raises(InputError, match="for dates"):
        Periods.of(times(["2024-01-01"]), 5.0)
    with pytest.raises(InputError, match="needs times"):
        Periods.of(Times.in_order(5), "day")


def test_alerts_of_each_day_and_their_spread():
    when = times([f"2024-03-0{day} {hour:02}:00" for day in range(1, 6) for hour in range(24)])
    alert = np.zeros(120, bool)
    alert[[3, 30, 31, 50, 51, 52, 75, 100]] = True  # days with 1, 2, 3, 1 and 1 alerts
    y = np.zeros(120, int)
    y[[30, 50, 51]] = 1
    found = AlertsPerPeriod.of(when, "day", y, alert)
    assert found.alerts == [1, 2, 3, 1, 1]
    assert found.caught == [0, 1, 2, 0, 0]
    assert found.mean == pytest.approx(8 / (119 / 24))
    assert found.spread == (1, 1.5, 3)  # the last day lacks an hour
    assert found.record()["whole_periods"] == 4


def test_blocks_of_time_are_neighbours_and_all_rows():
    when = Times(np.random.default_rng(0).permutation(20).astype(float), "t")
    splits = blocks_of_time(when, np.arange(20) % 2, 2)
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(20))
        assert np.ptp(when.values[test]) == 9
    with pytest.raises(TableError, match="one of 3 blocks in the order of time has rows of one class only"):
        blocks_of_time(Times.in_order(9), np.arange(9) // 5, 3)
