"""Fixtures of the whole suite."""

import gc
import itertools
import os
import signal
import time
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import settings
from scipy.sparse import csr_array

# A busy machine is no reason to fail: no time limit for a single example.
settings.register_profile("toprank", deadline=None)
settings.load_profile("toprank")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported and collected stays to the end: the collector need not go through it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items):
    """Of a test marked covering, as few as meet every pair of parameter values stay in the default suite.

    Tests on a cluster come first.
    """
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("covering") and not item.get_closest_marker("slow"):
            tests[item.module, item.originalname].append(item)
    for variants in tests.values():
        for item in set(variants).difference(_covering(variants)):
            item.add_marker("slow")
    items.sort(key=lambda item: not _on_cluster(item))  # first and in a row, as workers take long to start


def _covering(variants):
    """Variants of a test in which every value of a parameter meets every value of every other parameter."""
    (strength,) = variants[0].get_closest_marker("covering").args or (2,)
    values = {item: [(name, repr(value)) for name, value in item.callspec.params.items()] for item in variants}
    met = {item: set(itertools.combinations(values[item], strength)) for item in variants}
    missing, chosen = set.union(*met.values()), []
    while missing:
        chosen.append(max(variants, key=lambda item: len(met[item] & missing)))
        missing -= met[chosen[-1]]
    return chosen


@pytest.fixture(params=[0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def rng(request):
    """A generator; each test runs with one seed in the default suite, with two more in the slow one."""
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


@pytest.fixture(scope="session")
def two_workers():
    """A client of two worker processes, for all tests that ask for `cluster`."""
    distributed = pytest.importorskip("distributed")
    # two runs at a time need a port each
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as processes,
        distributed.Client(processes) as client,
    ):
        yield client


@pytest.fixture
def cluster(two_workers):
    """A client of two worker processes; where `dask.config` names no scheduler, they do the work.

    A test may have killed one: the scheduler may still count it, so both have to answer.
    """
    until = time.monotonic() + 60
    while len(two_workers.run(os.getpid, on_error="ignore")) < 2:
        assert time.monotonic() < until, "a worker was killed, and no other one has begun"
        time.sleep(0.1)
    return two_workers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Even idle the two workers take an eighth of a core: they end with the last of the tests that ask for them."""
    result = yield
    if _on_cluster(item) and not (nextitem and _on_cluster(nextitem)):
        (workers,) = item._fixtureinfo.name2fixturedefs["two_workers"]
        workers.finish(item._request)
    return result


def _on_cluster(item):
    return "two_workers" in getattr(item, "fixturenames", ())
