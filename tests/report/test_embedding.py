"""The embedded text holds every tie run, and stays short."""

import base64

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.models import ranked_rows
from toprank.plots import RankedList
from toprank.report import embedding
from toprank.report.embedding import embed, encode_runs, stored_runs


def decode_runs(data):
    """The runs, by the description in the docstring of `encode_runs`."""
    numbers, value, shift = [], 0, 0
    for byte in data.tolist():
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value, shift = 0, 0
    *events, left = numbers
    runs, at = [], 0
    while at < len(events):
        gap, single = divmod(events[at], 2)
        runs += [(0, 1)] * gap
        runs.append((1, 0) if single else (events[at + 1], events[at + 2]))
        at += 1 if single else 3
    return runs + [(0, 1)] * left


run_counts = st.tuples(st.integers(0, 400), st.integers(0, 40_000)).filter(lambda run: sum(run) > 0)


@settings(max_examples=100)
@given(st.lists(st.one_of(st.just((0, 1)), st.just((1, 0)), run_counts), min_size=1, max_size=40))
def test_runs_come_back(runs):
    positives, negatives = np.array(runs, dtype=float).T
    assert decode_runs(encode_runs(positives, negatives)) == runs


def test_long_gaps_come_back():
    runs = [(0, 1)] * 70_000 + [(1, 0)] + [(0, 1)] * 130 + [(3, 2_000_000)]
    assert decode_runs(encode_runs(*np.array(runs, dtype=float).T)) == runs


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_keep_their_bits(dtype):
    y, scores = ranked_rows(500, dtype=dtype)
    data = embed(RankedList.from_predictions(y, scores))
    stored = np.frombuffer(base64.b64decode(data["scores"]), f"<f{data['bytes']}")
    np.testing.assert_array_equal(stored, np.sort(scores)[::-1])
    assert stored.dtype == np.dtype(dtype)


@pytest.mark.parametrize("n_runs", [1, 9, 10, 11, 29, 30, 31, 1000])
def test_stored_runs_reach_the_last_one(n_runs, monkeypatch):
    monkeypatch.setattr(embedding, "EXACT_SCORES", 10)
    monkeypatch.setattr(embedding, "OTHER_SCORES", 5)
    stored, step = stored_runs(n_runs)
    assert stored[0] == 0
    assert stored[-1] == n_runs - 1
    assert len(stored) <= 10 + 5 + 1
    np.testing.assert_array_equal(stored[:10], np.arange(min(n_runs, 10)))
    assert set(np.diff(stored[10:-1])) <= {step}


def test_size_for_many_rows():
    y, scores = ranked_rows(1_000_000)
    data = embed(RankedList.from_predictions(y, scores))
    assert len(data["runs"]) < 250_000
    assert len(data["scores"]) < 1_120_000


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(embedding, "MOST_ROWS", 100)
    with pytest.raises(ValueError, match="at most 100 rows, got 101; give a random sample"):
        embed(RankedList.from_predictions(*ranked_rows(101)))
