"""The terminal lines of the guides; `test_demo.py` has those of the README, which need what the demo writes."""

import shutil

import pytest

from terminal_lines import ROOT, run_terminal_lines
from toprank.datasets import write_payments


@pytest.fixture(scope="module")
def payments(tmp_path_factory):
    """The files of the payments."""
    return write_payments(tmp_path_factory.mktemp("payments"))


@pytest.mark.parametrize("page", sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/guides/*.md")))
def test_terminal_lines_run_and_print_what_is_shown(page, payments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in payments:
        shutil.copy(path, ".")
    run_terminal_lines(page)
