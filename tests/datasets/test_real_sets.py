"""Every set of the real data folder, raw and as a task."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from toprank.datasets import TASKS, list_datasets, load, load_task

REAL = Path(os.environ.get("TOPRANK_DATA", ""))
HAS_REAL = (REAL / "MANIFEST.json").is_file()
needs_data = pytest.mark.skipif(not HAS_REAL, reason="TOPRANK_DATA names no data folder")
ENTRIES = json.loads((REAL / "MANIFEST.json").read_text())["datasets"] if HAS_REAL else []
BY_NAME = {entry["name"]: entry for entry in ENTRIES}


def _parameters(names):
    big = {entry["name"] for entry in ENTRIES if entry["bytes"] > 2_000_000}
    return [pytest.param(name, marks=pytest.mark.slow if name in big else ()) for name in names]


@needs_data
def test_real_manifest_is_listed():
    assert list_datasets() == sorted(BY_NAME)
    assert "spambase" in list_datasets()


@needs_data
@pytest.mark.parametrize("name", _parameters(BY_NAME))
def test_every_real_set_loads(name):
    entry, data = BY_NAME[name], load(name)
    assert data.X.shape == (entry["n_samples"], entry["n_features"])
    assert sp.issparse(data.X) == ("nnz" in entry)
    assert data.X.dtype == entry["dtype"]
    assert len(data.y) == entry["n_samples"]
    assert data.n_train == entry.get("n_train")
    assert data.feature_names is None or len(data.feature_names) == entry["n_features"]
    assert set(entry.get("extra_arrays", [])) <= data.extras.keys()
    assert entry["licence"] in data.DESCR
    _check_counts(entry, data)


def _check_counts(entry, data):
    expected = entry.get("class_counts") or entry.get("rating_counts")
    if expected is None:
        assert [data.y.min(), data.y.max()] == pytest.approx(entry["target_range"])
        return
    if entry["task"] == "multilabel":
        counts = dict(zip(data.target_names, data.y.sum(axis=0), strict=True))
        assert {label: counts[label] for label in expected} == expected
        return
    named = data.target_names is not None and set(data.target_names) == set(expected)
    labels, counts = np.unique(data.target_names[data.y] if named else data.y, return_counts=True)
    assert dict(zip(labels.astype(str), counts, strict=True)) == expected


# Numbers of positives that the papers' tables and the manifest print for these tasks.
POSITIVES = {
    "20newsgroups": 1000,
    "abalone": 32,
    "covtype": 283301,
    "creditcard_fraud": 492,
    "diabetes": 500,
    "ecoli": 35,
    "fashion-mnist": 7000,
    "ionosphere": 225,
    "kddcup99_10pct": 396743,
    "letter": 734,
    "mammography": 260,
    "nslkdd": 71463,
    "pendigits": 1055,
    "phishing_websites": 4898,
    "satimage": 626,
    "spambase": 1813,
    "w8a": 1933,
    "winequality-red": 217,
    "winequality-white": 1060,
    "yeast": 51,
}


@needs_data
@pytest.mark.parametrize("name", _parameters(TASKS))
def test_every_task(name):
    data = load_task(name)
    assert data.y.shape == (data.X.shape[0],)
    assert set(np.unique(data.y)) == {0, 1}
    assert data.y.sum() == POSITIVES.get(name, data.y.sum())
    if BY_NAME[name]["task"] == "binary":
        assert data.y.sum() in BY_NAME[name]["class_counts"].values()
