"""Compiled loops where their machine code cannot be kept on disk, or where the files are damaged."""

import errno
import gc
import importlib.util
import operator
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numba.experimental
import numpy as np
import pytest
from numba import njit
from numba.core.caching import CacheImpl, IndexDataCacheFile, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.types import BaseFunction

import toprank
from toprank import compiled
from toprank.exceptions import CacheWarning
from toprank.log import listening, quiet, verbose

PACKAGE = Path(toprank.__file__).parent
OURS = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=compiled.compiled)})
SOURCE = """
from toprank.compiled import compiled

@compiled(nogil=True)
def total(values):
    return values.sum()
"""


@pytest.fixture
def new_process(tmp_path, monkeypatch):
    """A function that gives the compiled `total` as a new process would meet it."""
    monkeypatch.setattr(compiled, "_warned", False)
    path = tmp_path / "loops.py"
    path.write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("loops", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.total

    return load


def files(total, ending):
    return sorted(Path(total.stats.cache_path).glob(f"loops.total-*.{ending}"))


def n_loaded(total):
    return sum(total.stats.cache_hits.values())


def test_machine_code_is_kept_for_the_next_process(new_process):
    assert new_process()(np.ones(3)) == 3
    again = new_process()
    assert again(np.ones(3)) == 3
    assert n_loaded(again) == 1


def test_without_a_folder_to_write_to_one_warning_names_the_remedy(new_process, monkeypatch):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    with pytest.warns(CacheWarning, match=r"no locator available.*NUMBA_CACHE_DIR"):
        first = new_process()
    second = new_process()  # a second warning would be an error
    assert first(np.ones(3)) == second(np.ones(3)) == 3


def test_full_disk_costs_the_cache_alone(new_process, monkeypatch):
    def write(cache_file, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", write)
    total = new_process()
    with pytest.warns(CacheWarning, match=r"No space left.*NUMBA_CACHE_DIR"):
        assert total(np.ones(3)) == 3
    assert total(np.ones(3, np.float32)) == 3  # a second warning would be an error


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_files_cut_short_are_replaced(ending, kept, new_process):
    new_process()(np.ones(3))
    total = new_process()
    (damaged,) = files(total, ending)
    content = damaged.read_bytes()
    damaged.write_bytes(content[: int(kept * len(content))])
    assert total(np.ones(3)) == 3
    assert n_loaded(total) == 0
    again = new_process()
    assert again(np.ones(3)) == 3
    assert n_loaded(again) == 1


def test_index_that_can_be_neither_read_nor_replaced(new_process, monkeypatch):
    def write(cache_file, path):
        raise PermissionError(errno.EACCES, "Permission denied")

    new_process()(np.ones(3))
    total = new_process()
    files(total, "nbi")[0].write_bytes(b"")
    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", write)
    with pytest.warns(CacheWarning, match="Permission denied"):
        assert total(np.ones(3)) == 3


def test_code_of_other_types_under_a_name_is_not_run(new_process):
    first = new_process()
    first(np.ones(3))
    first(np.ones(3, np.float32))
    one, two = (path.read_bytes() for path in files(first, "nbc"))
    for path, content in zip(files(first, "nbc"), (two, one), strict=True):  # as two processes may leave them
        path.write_bytes(content)
    total = new_process()
    assert total(np.ones(3)) == 3
    assert total(np.ones(3, np.float32)) == 3


def test_no_loop_of_the_package_needs_a_folder_to_write_to(tmp_path):
    """In a copy with files where numba would make folders, so that nobody can write there, not even root."""
    shutil.copytree(PACKAGE, tmp_path / "toprank", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (tmp_path / "toprank").rglob("*/"):
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    code = f"""
import importlib, toprank
for name in {modules_with("@compiled(")}: importlib.import_module(name)
import numpy as np
from toprank.matrices._csr_sandwich import csr_sandwich
H = np.zeros((1, 1))
csr_sandwich(np.array([0, 1]), np.array([0]), np.array([3.0]), np.array([0]), np.array([1.0]), H)
print(toprank.__file__, H[0, 0])
"""
    nowhere = dict.fromkeys(["HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"], str(tmp_path / "home"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", **nowhere}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-W", "always", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert run.stdout.split() == [str(tmp_path / "toprank" / "__init__.py"), "9.0"], run.stderr
    assert run.stderr.count("CacheWarning: ") == 1
    assert "NUMBA_CACHE_DIR" in run.stderr


def test_part_is_python_for_python_and_leaves_no_file(tmp_path):
    path = tmp_path / "loops.py"
    path.write_text(
        SOURCE.replace("import compiled", "import compiled, part").replace(
            "    return values.sum()", "    return twice(values[0])"
        )
        + "\n\n@part()\ndef twice(value):\n    return value + value\n"
    )
    spec = importlib.util.spec_from_file_location("loops", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.total(np.ones(3)) == 2
    assert module.twice("a") == "aa"
    assert {found.name.split("-")[0] for found in tmp_path.rglob("*.nb*")} == {"loops.total"}


needs_known_numba = pytest.mark.skipif(not compiled._KNOWN, reason="this numba compiles as usual")


def test_parts_of_parts_compute_divide_and_raise_within_the_loop_that_calls_them():
    @compiled.part()
    def half(value, by):
        if by == 2.0:
            raise ValueError("by two")
        return value / by

    @compiled.part()
    def twice_half(values, k, by):
        return half(values[k], by) + half(values[k], by)

    @compiled.compiled()
    def loop(values, by, none, out):
        for k in range(len(values)):
            out[k] = twice_half(values, k, by)
            if none is not None:
                out[k] += none.no_such_thing

    out = np.empty(2)
    loop(np.array([1.0, -3.0]), 4.0, None, out)
    assert out.tolist() == [0.5, -1.5]
    loop(np.array([1.0, -3.0]), 0.0, None, out)
    assert out.tolist() == [np.inf, -np.inf]
    with pytest.raises(ValueError, match="by two"):
        loop(np.ones(2), 2.0, None, out)


@pytest.mark.parametrize("known", [False, pytest.param(True, marks=needs_known_numba)])
def test_parts_have_no_machine_code_of_their_own_where_numba_is_known(known, monkeypatch):
    monkeypatch.setattr("toprank.compiled._KNOWN", known)

    @compiled.part()
    def twice(value):
        return value + value

    @compiled.compiled()
    def loop(values):
        return twice(values[0])

    loop._cache = NullCache()  # an earlier run has left its files
    made = []
    finish = JITCodeLibrary._finalize_specific
    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", lambda self: made.append(self.name) or finish(self))
    assert loop(np.ones(1, np.float32)) == 2
    names = [name.rpartition(".")[2] for name in made]
    assert names == ["loop"] if known else {"twice", "loop"} <= set(names)


@pytest.mark.parametrize("enabled", [True, False])
def test_collector_is_held_while_loops_are_compiled_and_left_as_it_was(enabled):
    watch = compiled.NoCollection()
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        for _ in range(2):
            watch.on_start(OURS)
            watch.on_start(OURS)
            watch.on_end(OURS)
            assert not gc.isenabled()
            watch.on_end(OURS)
            assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_operators_are_resolved_once_for_each_kind_of_numbers_and_numba_is_left_as_it_was(monkeypatch):
    asked, before = [], BaseFunction.get_call_type

    def count(function, context, args, kws):
        asked.append((function.typing_key, args))
        return before(function, context, args, kws)

    monkeypatch.setattr(BaseFunction, "get_call_type", count)
    watch = compiled.ResolvedOnce()

    @njit
    def mixed(values, number):
        doubled = values[0] + values[1] + values[2] + number
        return doubled + number + number, (number + number) + number

    watch.on_start(OURS)
    assert mixed(np.arange(3, dtype=np.float32), 2) == (9.0, 6)
    watch.on_end(OURS)
    plain = [one for one in asked if one[0] in (operator.add, operator.getitem)]
    assert len(plain) == len(set(plain))
    assert {str(argument) for _, args in plain for argument in args} >= {"float32", "int64", "float64"}
    assert BaseFunction.get_call_type is count


def test_every_loop_is_declared_in_this_way():
    assert modules_with("from numba") == ["toprank.compiled", "toprank.compiler_passes"]
    assert not modules_with("import numba")


def modules_with(text):
    files = [path for path in PACKAGE.rglob("*.py") if f"\n{text}" in path.read_text(encoding="utf-8")]
    return sorted(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files)


def waited(patience, happened):
    """Let a compilation take longer than the patience, with a function in it that the first one calls."""
    patience.on_start(happened)
    patience.on_start(happened)
    patience.on_end(happened)
    time.sleep(0.1)
    patience.on_end(happened)


@pytest.mark.parametrize("silenced", [False, True])
@pytest.mark.parametrize("asked", [False, True])
def test_who_waits_longer_is_told_once_that_loops_are_compiled_asked_or_not(asked, silenced, caplog):
    heard = []
    patience = compiled.Patience(seconds=0.02)
    with verbose(asked), quiet(silenced), listening(heard.append):
        waited(patience, OURS)
        waited(patience, OURS)
    assert heard == [compiled._COMPILING]
    assert caplog.messages == heard * (not silenced)


def test_line_is_seen_in_an_application_without_logging():
    code = "from toprank import log; log.announce('compiling')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "compiling\n")


def test_quick_compilation_and_functions_of_others_are_not_told(caplog):
    others = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=np.sum)})
    for seconds, happened in ((0.02, others), (10.0, OURS)):
        waited(compiled.Patience(seconds), happened)
    assert not caplog.messages


def test_classes_that_others_compile_work_beside_the_package():
    spec = [("total", numba.float64)]

    @numba.experimental.jitclass(spec)
    class Sum:
        def __init__(self):
            self.total = 0.0

    assert Sum().total == 0.0
