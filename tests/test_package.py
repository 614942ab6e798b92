"""The package as a newcomer meets it: import, public names, README, command of the demonstration."""

import doctest
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import toprank

ROOT = Path(__file__).parents[1]
HEAVY = ["numba", "matplotlib", "onnx", "pandas", "polars", "rich", "dask", "sklearn", "scipy", "tabmat"]
MODULES = [
    "toprank",
    "toprank.baselines",
    "toprank.blending",
    "toprank.boosting",
    "toprank.datasets",
    "toprank.decision",
    "toprank.explanation",
    "toprank.metrics",
    "toprank.online",
]
MODULES += [
    "toprank.pairwise",
    "toprank.persistence",
    "toprank.plots",
    "toprank.report",
    "toprank.streams",
    "toprank.trees",
]


def public_names():
    """What has a docstring, which constants have not; what two modules offer is named once."""
    seen = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            item = getattr(module, name)
            if (inspect.isroutine(item) or inspect.isclass(item) or inspect.ismodule(item)) and id(item) not in seen:
                seen.add(id(item))
                yield module_name, name


def in_a_new_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    loaded = in_a_new_process("import sys, toprank; print(' '.join(sys.modules))").split()
    assert "toprank" in loaded
    assert not set(HEAVY) & set(loaded)


def test_online_methods_load_neither_solvers_nor_formulations():
    loaded = in_a_new_process("import sys; from toprank.online import *; print(' '.join(sys.modules))").split()
    assert "toprank.online.cbr" in loaded
    assert not [name for name in loaded if name.startswith(("toprank.solvers", "toprank.formulations"))]


def test_a_first_linear_fit_loads_no_compiler():
    fits = [f"toprank.{name}().fit([[1], [2], [3], [4]], [0, 0, 1, 1])" for name in ("TopPush", "PatMatNP")]
    assert in_a_new_process(f"import sys, toprank; {'; '.join(fits)}; print('numba' in sys.modules)") == "False\n"


def test_parts_load_on_first_use():
    assert in_a_new_process("import toprank; print(toprank.metrics.tpr_at_fpr([1, 0], [1, 0], max_fpr=0))") == "1.0\n"
    assert set(toprank.__all__) <= set(dir(toprank))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        toprank.nothing  # noqa: B018


def test_version_is_the_installed_one():
    assert importlib.metadata.version("toprank") == toprank.__version__


@pytest.mark.parametrize(("module_name", "name"), list(public_names()))
def test_public_name_has_a_docstring_with_an_example_that_runs(module_name, name):
    item = getattr(importlib.import_module(module_name), name)
    assert inspect.getdoc(item), f"{module_name}.{name} has no docstring"
    if inspect.ismodule(item) or (inspect.isclass(item) and issubclass(item, BaseException | tuple)):
        return  # a namespace, an exception or a record: nothing to run
    examples = [test for test in doctest.DocTestFinder(recurse=False).find(item, name) if test.examples]
    assert examples, f"{module_name}.{name} has no runnable example"
    for example in examples:
        result = doctest.DocTestRunner().run(example)
        assert result.failed == 0


@pytest.mark.parametrize(("module_name", "name"), list(public_names()))
def test_every_text_that_a_docstring_names_is_filled_in(module_name, name):
    item = getattr(importlib.import_module(module_name), name)
    members = vars(item).values() if inspect.isclass(item) else ()
    for documented in (item, *members):
        assert not re.findall(r"^ *\{\w+\}$", inspect.getdoc(documented) or "", flags=re.M)


def test_package_docstring_runs():
    assert doctest.testmod(toprank).failed == 0


PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
# What the README and the demonstration run too, on the same payments; its terminal lines run in the default suite.
LONG = "docs/guides/alerts-a-day.md"


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.slow) if p == LONG else p for p in PAGES])
def test_code_blocks_of_the_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    text = (ROOT / page).read_text(encoding="utf-8")
    if "TOPRANK_DATA" in text and not os.environ.get("TOPRANK_DATA"):
        pytest.skip("the page reads a data folder, and TOPRANK_DATA is not set")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    namespace = {"__name__": "__page__"}
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)


def test_make_targets_named_in_the_pages_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for page in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8")))
        assert named <= targets, f"{page} names {named - targets}"


def test_links_of_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
