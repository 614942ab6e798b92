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


USED = """
import sys, toprank
print(*sys.modules)
print(toprank.metrics.tpr_at_fpr([1, 0], [1, 0], max_fpr=0))
import toprank.pairwise
print("numba" in sys.modules)
for method in (toprank.TopPush, toprank.PatMatNP):
    method().fit([[1], [2], [3], [4]], [0, 0, 1, 1])
print("numba" in sys.modules)
"""


def test_parts_load_on_first_use_and_a_first_linear_fit_loads_no_compiler():
    at_first, *later = in_a_new_process(USED).splitlines()
    assert "toprank" in at_first.split()
    assert not set(HEAVY) & set(at_first.split())
    assert later == ["1.0", "False", "False"]


def test_online_methods_load_neither_solvers_nor_formulations():
    loaded = in_a_new_process("import sys; from toprank.online import *; print(' '.join(sys.modules))").split()
    assert "toprank.online.cbr" in loaded
    assert not [name for name in loaded if name.startswith(("toprank.solvers", "toprank.formulations"))]


def test_names_of_the_package():
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


PAGES = sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))
# Pages of many payments; the demonstration runs their models on all of them.
LONG = ["README.md", "docs/guides/alerts-a-day.md"]


@pytest.fixture
def few_payments(monkeypatch):
    """A tenth of them, evenly spread over the days."""
    write_all = toprank.datasets.write_payments

    def write_few(*arguments):
        paths = write_all(*arguments)
        for path in paths:
            header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join([header, *lines[::10]]), encoding="utf-8")
        return paths

    monkeypatch.setattr(toprank.datasets, "write_payments", write_few)


@pytest.mark.usefixtures("few_payments")
@pytest.mark.parametrize("page", LONG)
def test_code_blocks_of_the_pages_of_payments_run_on_some_of_them(page, tmp_path, monkeypatch):
    run_blocks(page, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "page", [*(p for p in PAGES if p not in LONG), *(pytest.param(p, marks=pytest.mark.slow) for p in LONG)]
)
def test_code_blocks_of_the_pages_run(page, tmp_path, monkeypatch):
    run_blocks(page, tmp_path, monkeypatch)


def run_blocks(page, tmp_path, monkeypatch):
    """In a folder of their own, as some write files."""
    monkeypatch.chdir(tmp_path)
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
