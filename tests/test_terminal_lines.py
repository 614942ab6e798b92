"""The terminal lines of README and guides run as they stand, and print what stands below them.

In a page a ``bash`` block is followed by a ``text`` block if its output is shown. Lines that do not begin with
``toprank`` set things up (``make``, ``pip``, ``cd``) and are not run; the payments are there, as after the demo.
"""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toprank.cli.app import app
from toprank.datasets import write_payments

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/guides/*.md"))]
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


def commands(block):
    """The commands of a block; a backslash at the end of a line joins it with the next."""
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "toprank":
            yield words[1:]


def assert_alike(shown, printed):
    """The same words; numbers up to what another machine or a busy one may change."""
    plain = [re.sub(r" in [\d.]+ s\b", " in some s", text).strip() for text in (shown, printed)]
    words, numbers = zip(*((NUMBER.sub("#", text).split(), NUMBER.findall(text)) for text in plain), strict=True)
    assert words[0] == words[1], printed
    for one, other in zip(*numbers, strict=True):
        assert float(one.replace(",", "")) == pytest.approx(float(other.replace(",", "")), rel=0.05, abs=0.01), printed


@pytest.mark.parametrize("page", PAGES)
def test_terminal_lines_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(bash|text)\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    if any(kind == "bash" and list(commands(text)) for kind, text in blocks):
        write_payments()
    printed = ""
    for kind, text in blocks:
        if kind == "text":
            assert_alike(text, printed)
            continue
        printed = ""
        for words in commands(text):
            if words == ["demo"]:
                continue  # tests/test_demo.py
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, f"toprank {shlex.join(words)}\n{result.output}"
            printed += result.output
