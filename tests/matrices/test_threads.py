"""Blocks that are computed side by side: in their order, with errors, inside of each other and after a fork."""

from __future__ import annotations

import os
import threading
import time

import pytest

from toprank.matrices import threads
from toprank.matrices.threads import at_most_threads, in_parallel

BLOCKS = [slice(i, i + 1) for i in range(20)]


@pytest.fixture(autouse=True, params=[1, 2, 5])
def n_cores(request, monkeypatch):
    """More than there are, too."""
    monkeypatch.setattr(threads, "n_cores", lambda: request.param)
    return request.param


def both_at_work(n_cores):
    """A function of blocks that does not return before two threads have called it, if there are two."""
    met = threading.Barrier(min(n_cores, 2))

    def work(block):
        if block.start < 2:
            met.wait(timeout=20)
        return block.start, threading.current_thread()

    return work


def test_results_have_the_order_of_the_blocks_and_come_from_several_threads(n_cores):
    starts, workers = zip(*in_parallel(both_at_work(n_cores), BLOCKS), strict=True)
    assert starts == tuple(range(20))
    assert (len(set(workers)) > 1) == (n_cores > 1)


def test_helpers_stay(n_cores):
    """For the calls to come, which start no more of them than there are cores."""
    used = {worker for _ in range(20) for _, worker in in_parallel(both_at_work(n_cores), BLOCKS)}
    assert all(worker.is_alive() for worker in used)
    assert len(used) <= 1 + (os.cpu_count() or 1)


def test_a_limit(n_cores):
    with at_most_threads(1):
        assert set(in_parallel(lambda _: threading.get_ident(), BLOCKS)) == {threading.get_ident()}


@pytest.mark.parametrize("in_helper", [False, True])
def test_an_error_ends_the_rest_and_is_raised(n_cores, in_helper):
    """Whichever thread it comes from; the next call is as good as any."""
    met, own, calls = threading.Barrier(min(n_cores, 2)), threading.get_ident(), []

    def fail(block):
        calls.append(block.start)
        if block.start < 2:
            met.wait(timeout=20)
        if in_helper == (threading.get_ident() != own) or n_cores == 1:
            raise KeyboardInterrupt("stopped")
        time.sleep(0.02)
        return block.start

    with pytest.raises(KeyboardInterrupt, match="stopped"):
        in_parallel(fail, BLOCKS)
    if not in_helper:
        assert len(calls) < len(BLOCKS)
    assert in_parallel(lambda block: block.start, BLOCKS) == list(range(20))


def test_calls_inside_of_calls_end():
    """Even where all helpers wait for blocks of their own."""

    def of_block(block):
        return sum(in_parallel(lambda inner: block.start * inner.start, BLOCKS))

    assert in_parallel(of_block, BLOCKS) == [190 * i for i in range(20)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own(n_cores):
    in_parallel(both_at_work(n_cores), BLOCKS)
    child = os.fork()
    if child == 0:
        is_right = [start for start, _ in in_parallel(both_at_work(n_cores), BLOCKS)] == list(range(20))
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
