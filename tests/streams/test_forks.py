"""Parquet in a process that was forked from one that has used polars, whose threads it does not have."""

import os
import subprocess
import sys

import pytest

FORKED = """
import os, sys
import polars as pl
path, used = sys.argv[1:]
pl.thread_pool_size() if used == "used" else None
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
from toprank import CBR, stream
from toprank.files import polars_package
if used == "used":
    polars_package._PATIENCE = 1.0  # where it works it answers in some milliseconds
try:
    print(stream(path, CBR(), target="y").n_rows, flush=True)
except RuntimeError as error:
    print(error, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.parametrize("used", ["used", "imported"])
def test_a_forked_process_does_not_wait_for_ever(tmp_path, used):
    import polars as pl

    path = tmp_path / "f.parquet"
    pl.DataFrame({"x": [1.0, 0.0], "y": [1, 0]}).write_parquet(path)
    arguments = [sys.executable, "-c", FORKED, path, used]
    told = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120).stdout
    if used == "used":
        assert "polars does not answer: it was used before this process was forked" in told
        assert "start processes by spawn" in told
    else:
        assert told == "2\n"
