"""Fitting files in the order of time: thresholds by alerts a day and shares, amounts, and drift."""

import warnings

import numpy as np
import polars as pl
import pytest

from toprank import PatMatNP, load, save
from toprank.exceptions import InputError
from toprank.files import TableError, evaluate_file, fit_file, score_file
from toprank.files.alert_rule import AlertRule
from toprank.plain_data import plain


def payments(n=6000, shift=0.0, start=0, seed=0):
    """Rows of minutes of a day and a half hour each; the score of negatives is shifted."""
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.05).astype(int)
    moment = np.datetime64("2024-01-01T00:00") + 30 * np.arange(start, start + n).astype("m8[m]")
    return pl.DataFrame(
        {
            "when": pl.Series(moment.astype("M8[ms]")),
            "x": random.normal(size=n) + 2.5 * y + shift,
            "z": random.normal(size=n),
            "amount": np.round(random.exponential(50, n), 2),
            "fraud": y,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alerts")
    payments().write_csv(folder / "train.csv")
    payments().sample(fraction=1, shuffle=True, seed=1).write_parquet(folder / "shuffled.parquet")
    payments(3000, start=6000, seed=1).write_csv(folder / "next.csv")
    payments(3000, shift=0.8, start=6000, seed=1).write_csv(folder / "drifted.csv")
    return folder


@pytest.fixture(scope="module")
def budgeted(folder):
    options = {"time": "when", "budget": 4, "per": "day", "amount": "amount"}
    return fit_file(folder / "train.csv", lambda share: PatMatNP(tau=share), target="fraud", **options)


def test_the_last_rows_are_held_out_and_time_is_not_learned_from(budgeted):
    assert list(budgeted.columns) == ["x", "z", "amount"]
    held_out = budgeted.summary_["held_out"]
    assert held_out["rows"] == 1200
    assert budgeted.summary_["data"]["in_order"] is True
    assert budgeted.summary_["threshold"]["rows_per_period"] == pytest.approx(48, rel=0.01)
    assert budgeted.summary_["parameters"]["tau"] == pytest.approx(4 / 48, rel=0.01)
    assert held_out["per_period"]["periods"] == pytest.approx(25, abs=0.1)
    assert held_out["per_period"]["rows"] == pytest.approx(48, rel=0.01)
    assert 2.5 < held_out["per_period"]["mean"] < 5.5  # about 100 alerts are expected
    assert held_out["per_period"]["mean"] * held_out["per_period"]["periods"] == pytest.approx(held_out["alerts"])


def test_the_order_of_a_file_does_not_matter_where_times_are_given(folder, budgeted):
    options = {"time": "when", "budget": 4, "per": "day", "amount": "amount"}
    other = fit_file(folder / "shuffled.parquet", lambda share: PatMatNP(tau=share), target="fraud", **options)
    table = payments(50, seed=3)
    np.testing.assert_allclose(other.decision_function(table), budgeted.decision_function(table), atol=1e-9)
    assert other.summary_["held_out"] == budgeted.summary_["held_out"]


def test_the_file_of_the_fit_gives_the_same_rows_again(folder, budgeted):
    with pytest.warns(UserWarning, match="only the 1,200 rows that were held out"):
        measures = evaluate_file(folder / "train.csv", budgeted)
    assert measures.record()["per_period"] == budgeted.summary_["held_out"]["per_period"]
    assert plain(measures.record()["measures"]) == budgeted.summary_["held_out"]["measures"]
    assert measures.drift is None  # they are the rows that it would be compared with


def test_amounts_by_brute_force(folder, budgeted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows like those of the fit are no drift
        measures = evaluate_file(folder / "next.csv", budgeted, k=[50])
    table = pl.read_csv(folder / "next.csv")
    scores, y = budgeted.decision_function(table), table["fraud"].to_numpy()
    amounts = table["amount"].to_numpy() * y
    value = {one.name: one.value for one in measures.values}
    assert value["amount"] == pytest.approx(amounts[scores > 0].sum() / amounts.sum())
    assert value["amount_at_50"] == pytest.approx(amounts[np.argsort(-scores)[:50]].sum() / amounts.sum())
    first = scores[y == 0].max()
    assert value["amount_at_top"] == pytest.approx(amounts[scores > first].sum() / amounts.sum())
    allowed = np.sort(scores[y == 0])[::-1][int(0.05 * (y == 0).sum())]
    assert value["amount_at_fpr_0.05"] == pytest.approx(amounts[scores > allowed].sum() / amounts.sum())
    assert not measures.drift.is_surprising


def test_a_drift_is_told_after_a_model_file(folder, budgeted, tmp_path):
    save(budgeted, tmp_path / "model.toprank")
    with pytest.warns(
        UserWarning, match=r"have drifted since the fit: .* has risen from .* \(Fisher's exact test, p ="
    ):
        measures = evaluate_file(folder / "drifted.csv", load(tmp_path / "model.toprank"))
    assert measures.drift.p_value < 1e-6
    assert measures.record()["drift"]["drifted"] is True


def test_a_broken_promise_is_told(folder):
    model = fit_file(folder / "train.csv", PatMatNP(), target="fraud", time="when", max_fpr=0.05)
    assert model.estimator_.shuffle is False
    assert model.estimator_.cv == 0.25
    promise = pytest.warns(UserWarning, match=r"at most 5 % were promised .*\(binomial test, p =")
    with promise, pytest.warns(UserWarning, match="have drifted since the fit"):
        evaluate_file(folder / "drifted.csv", model)
    few = fit_file(folder / "train.csv", PatMatNP(), target="fraud", time="when", max_fpr=0.002)
    assert few.estimator_.cv == 0.5  # a quarter of the negatives would be too few


def test_rows_in_order_and_a_share(folder):
    with pytest.raises(TableError, match="leave in_order out"):
        fit_file(folder / "train.csv", PatMatNP(), target="fraud", time="when", in_order=True)
    options = {"ignore": ["when"], "in_order": True}
    model = fit_file(folder / "train.csv", PatMatNP(), target="fraud", share=0.1, per=480, **options)
    assert 0.08 < model.summary_["held_out"]["alerts"] / 1200 < 0.12
    assert model.summary_["held_out"]["per_period"]["mean"] == pytest.approx(48, rel=0.3)
    with pytest.warns(UserWarning, match="only the 1,200 rows that were held out"):
        assert evaluate_file(folder / "train.csv", model, time="when", per="day").rows == 1200
    at_random = fit_file(folder / "train.csv", PatMatNP(), target="fraud", share=0.1)
    assert at_random.estimator_.shuffle is True
    assert at_random.time is None


def test_a_search_inside_a_share_is_taken_out(folder):
    model = fit_file(folder / "train.csv", PatMatNP(), target="fraud", share=0.1, time="when", search=True)
    assert model.summary_["search"]["score"] > 0
    assert not hasattr(model.estimator_.estimator_, "best_estimator_")


def test_rows_without_a_time_or_an_amount_are_told(tmp_path):
    table = payments(400).with_columns(pl.col("when").dt.to_string("%d.%m.%Y %H:%M"))
    table[3, "when"] = None
    table[4, "amount"] = None
    table.write_csv(tmp_path / "gaps.csv")
    with pytest.warns(UserWarning, match="rows without") as told:
        model = fit_file(tmp_path / "gaps.csv", PatMatNP(), target="fraud", time="when", amount="amount")
    texts = [str(one.message) for one in told]
    assert "1 rows without a time in 'when' are left out" in texts
    assert "1 rows without a number in 'amount' count as an amount of 0" in texts
    assert model.summary_["data"]["rows"] == 399
    with pytest.raises(TableError, match="cannot be the identifier, the time, the amount or ignored too"):
        fit_file(tmp_path / "gaps.csv", PatMatNP(), target="fraud", time="fraud")
    with pytest.raises(TableError, match="amount='when' must be a column of numbers"):
        fit_file(tmp_path / "gaps.csv", PatMatNP(), target="fraud", amount="when")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"max_fpr": 1}, "max_fpr must be strictly between 0 and 1, got 1"),
        ({"share": 0.0}, "share must be strictly between 0 and 1"),
        ({"max_fpr": 0.1, "share": 0.1}, "one rule sets the threshold, and there are max_fpr=0.1 and share=0.1"),
        ({"budget": 200}, "budget=200 alerts, and not in which time; say it by per='day'"),
        ({"budget": -1, "per": "day"}, "budget must be positive"),
        ({"budget": 200, "per": "day"}, "per='day' needs the time of each row; name its column by time="),
        ({"budget": 200, "per": "night", "time": "when"}, "per must be one of"),
        ({"max_fpr": 0.1, "confidence": 1}, "confidence must be strictly between"),
    ],
)
def test_rules_are_refused_before_anything_is_read(rule, words):
    with pytest.raises(InputError, match=words):
        fit_file("nothing-here.csv", PatMatNP(), target="y", **rule)


def test_a_budget_above_all_rows_is_refused(folder):
    with pytest.raises(TableError, match="budget=60 alerts a day are no choice, as there are 48 rows a day"):
        fit_file(folder / "train.csv", PatMatNP(), target="fraud", time="when", budget=60, per="day")
    assert AlertRule(share=0.1).share_of_rows(None) == 0.1


def test_a_time_is_learned_from_if_asked(tmp_path):
    payments(1000).with_columns(when=np.arange(1000) / 4).write_csv(tmp_path / "numbers.csv")
    options = {"target": "fraud", "time": "when"}
    assert "when" not in fit_file(tmp_path / "numbers.csv", PatMatNP(), **options).columns
    model = fit_file(tmp_path / "numbers.csv", PatMatNP(), types={"when": "number"}, **options)
    assert model.columns["when"] == "number"
    assert model.summary_["data"]["in_order"]
    with pytest.warns(UserWarning, match="only the 200 rows that were held out"):
        assert evaluate_file(tmp_path / "numbers.csv", model).rows == 200


def test_the_best_of_each_day(tmp_path):
    table, path = payments(600).drop("x"), tmp_path / "rows.csv"
    table.write_csv(path)
    known = {"target": "fraud", "time": "when", "holdout": 0}
    model = fit_file(path, PatMatNP(tau=0.05), budget=5, per="day", **known)
    late = (
        payments(400, start=10_000, seed=1)
        .drop("x")
        .with_columns(when=pl.when(pl.int_range(400) == 7).then(None).otherwise(pl.col("when")))
    )
    late.sample(fraction=1.0, shuffle=True, seed=0).write_csv(tmp_path / "late.csv")
    shuffled = pl.read_csv(tmp_path / "late.csv", try_parse_dates=True)
    with pytest.warns(UserWarning, match="1 rows without a time in 'when' are left out"):
        count = score_file(tmp_path / "late.csv", model, tmp_path / "alerts.parquet", budget=3)
    found = pl.read_parquet(tmp_path / "alerts.parquet")
    scores = model.decision_function(shuffled)
    day = shuffled["when"].dt.date().to_list()
    expected = [
        row + 1
        for one in sorted({d for d in day if d is not None})
        for row in sorted((i for i in range(400) if day[i] == one), key=lambda i: (-scores[i], i))[:3]
    ]
    assert found["row"].to_list() == expected
    assert count.written == len(expected)
    assert "when" in found.columns
    with pytest.warns(UserWarning, match="without a time"):
        weeks = score_file(tmp_path / "late.csv", model, tmp_path / "weeks.csv", budget=10, per="week")
    assert weeks.written == 20


@pytest.fixture(scope="module")
def without_time(tmp_path_factory):
    path = tmp_path_factory.mktemp("without_time") / "rows.csv"
    payments(200).drop("x").write_csv(path)
    return path, fit_file(path, PatMatNP(tau=0.05), target="fraud", holdout=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per": "day"}, r"per and time are for so many rows of each period; say how many by budget=200"),
        ({"budget": 3, "top": 3}, "budget counts rows of each period, top and share those of all"),
        ({"budget": 3}, "budget=3 alerts, and not in which time; say it by per='day'"),
        ({"budget": 3, "per": "day"}, "per='day' needs the time of each row; name its column by time="),
        ({"budget": 3, "per": "day", "time": "wen"}, r"has no column 'wen' \(did you mean 'when'\?\)"),
        ({"budget": 0, "per": "day"}, "budget must be a whole number of at least 1, got 0"),
    ],
)  # fmt: skip
def test_a_budget_of_each_day_that_is_none(options, message, without_time, tmp_path):
    with pytest.raises(ValueError, match=message):
        score_file(without_time[0], without_time[1], tmp_path / "s.csv", **options)
