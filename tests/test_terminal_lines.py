"""The terminal lines of README and guides run as they stand, and print what stands below them.

In a page a ``bash`` block is followed by a ``text`` block if its output is shown. Lines that do not begin with
``toprank`` set things up (``make``, ``pip``, ``cd``) and are not run; what the demo writes is there.
"""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toprank import demo
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


def is_like(shown, printed):
    """The same words; numbers up to what another machine may change, and no matter how long it took."""
    shown, printed = (re.sub(r" in [\d.]+ s\b", " in some s", line) for line in (shown, printed))
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    values = ([float(text.replace(",", "")) for text in pair] for pair in pairs)
    return all(one == pytest.approx(other, rel=0.05, abs=0.01) for one, other in values)


def assert_shown(shown, printed):
    """Each line that the page shows is printed, in this order; more may be printed."""
    rest = iter(printed.splitlines())
    for line in shown.splitlines():
        assert any(is_like(line, other) for other in rest), f"not printed: {line}\n\n{printed}"


@pytest.mark.parametrize("page", PAGES)
def test_terminal_lines_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(bash|text)\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    demo.main(["."]) if page == "README.md" else write_payments(".")
    printed = ""
    for kind, text in blocks:
        if kind == "text":
            assert_shown(text, printed)
            continue
        printed = ""
        for words in commands(text):
            if words == ["demo"]:
                continue  # tests/test_demo.py
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, f"toprank {shlex.join(words)}\n{result.output}"
            printed += result.output
