"""Parquet in a process that was forked from one that has used polars, whose threads it does not have."""

import os
import subprocess
import sys

import pytest

FORKED = """
import os, sys
import polars as pl
from toprank import CBR, stream
from toprank.files import polars_package

def fork():
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        print(stream(sys.argv[1], CBR(), target="y").n_rows, flush=True)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)

imported = fork()
pl.thread_pool_size()  # used
polars_package._PATIENCE = 1.0  # where it works it answers in some milliseconds
sys.exit(imported or fork())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_does_not_wait_for_ever(tmp_path):
    import polars as pl

    path = tmp_path / "f.parquet"
    pl.DataFrame({"x": [1.0, 0.0], "y": [1, 0]}).write_parquet(path)
    arguments = [sys.executable, "-c", FORKED, path]
    told = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120).stdout
    imported, used = told.split("\n", 1)
    assert imported == "2"
    assert "polars does not answer: it was used before this process was forked" in used
    assert "start processes by spawn" in used
