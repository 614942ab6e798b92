"""Loops compiled ahead of their first use."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import toprank
from toprank.compilation import compile_loops, main

PACKAGE = Path(toprank.__file__).parent
FIT = """
import numpy as np
from toprank import UniExp
from toprank.compiled import counted
from toprank.matrices._csr_sandwich import csr_sandwich

X = np.random.default_rng(5).normal(size=(30, 3))
with counted() as compiled:
    UniExp().fit(X, X[:, 0] > 0).decision_function(X)
print("UniExp", compiled.loops)
with counted() as compiled:
    csr_sandwich(np.array([0, 1]), np.array([0]), np.ones(1), np.array([0]), np.ones(1), np.zeros((1, 1)))
print("another", compiled.loops)
"""


def loops():
    """All loops of the package by name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        if "\n@compiled(" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            found |= {(name, key): one for key, one in vars(importlib.import_module(name)).items() if is_of(one, name)}
    return found


def left():
    """Those that are not among what is compiled ahead."""
    for _ in compile_loops():
        pass
    return [".".join(name) for name, loop in loops().items() if not loop.signatures]


def is_of(one, module):
    return isinstance(one, Dispatcher) and one.py_func.__module__ == module


def new_process(tmp_path, *arguments):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=True)
    return run.stdout.splitlines()


def test_fit_of_a_new_process_compiles_nothing_of_what_was_compiled_ahead(tmp_path):
    name, n_loops = new_process(tmp_path, "-m", "toprank.compilation", "--only", "UniExp")[0].split()
    assert (name, int(n_loops) > 0) == ("UniExp", True)
    assert new_process(tmp_path, "-c", FIT) == ["UniExp 0", "another 1"]  # so they are counted


def test_what_is_ready_is_not_compiled_again(capsys):
    for _ in range(2):
        main(["--only", "UniExp"])
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in said[-4:-1]] == ["0", "0", "0"]
    assert said[-1].startswith("0 loops compiled")


def test_a_method_that_is_none_is_named_with_those_that_are():
    with pytest.raises(ValueError, match=r"only must begin the name of a method, got 'cbr'; use one of .*; CBR; "):
        next(compile_loops("cbr"))


@pytest.mark.slow
def test_every_loop_is_among_them(tmp_path):
    """With nothing on disk, as loops that only others call are not loaded where these are."""
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from test_compilation import left"
    assert new_process(tmp_path, "-c", f"{code}; print(*left())") == [""]
