"""Run the terminal lines of a page as they stand, and compare what they print with what stands below them.

In a page a ``bash`` block is followed by a ``text`` block if its output is shown. Lines that do not begin with
``toprank`` set things up (``make``, ``pip``, ``cd``) and are not run; what the demo writes is there.
"""

import re
import shlex
from pathlib import Path

import pytest

from commands import invoke

ROOT = Path(__file__).parents[1]
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


def run_terminal_lines(page):
    """In the current folder."""
    text = (ROOT / page).read_text(encoding="utf-8")
    printed = ""
    for kind, block in re.findall(r"^```(bash|text)\n(.*?)^```", text, flags=re.M | re.S):
        if kind == "text":
            assert_shown(block, printed)
            continue
        printed = ""
        for words in commands(block):
            if words == ["demo"]:
                continue  # tests/test_demo.py
            result = invoke(*words)
            assert result.exit_code == 0, f"toprank {shlex.join(words)}\n{result.output}"
            printed += result.output
