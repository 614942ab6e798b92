"""Fixtures of the whole suite."""

import signal

import numpy as np
import pytest
from hypothesis import settings
from scipy.sparse import csr_array

# A busy machine is no reason to fail: no time limit for a single example.
settings.register_profile("toprank", deadline=None)
settings.load_profile("toprank")


@pytest.fixture(params=[0, 1, 2])
def rng(request):
    """A generator; each test runs with several seeds."""
    return np.random.default_rng(request.param)


@pytest.fixture(params=["dense-float64", "dense-float32", "csr-float64", "csr-float32"])
def stored(request):
    """A function that puts a matrix into one of the storages a user may have."""
    storage, dtype = request.param.split("-")
    return lambda X: (csr_array if storage == "csr" else np.asarray)(np.asarray(X, dtype=dtype))


@pytest.fixture
def trained_thresholds(monkeypatch):
    """Models keep the threshold of their formulation, for tests of many long fits that are about something else."""
    monkeypatch.setattr("toprank.estimators._shares.out_of_fold_threshold", lambda *arguments: None)


@pytest.fixture
def hears_ctrl_c():
    """Ctrl-C interrupts, even where the suite was started with it ignored: in the background, or by nohup."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)
