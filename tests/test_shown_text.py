"""Text of files does nothing in terminals and shells."""

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.shown_text import printable, shell_word


@given(st.text())
def test_only_printable_characters_are_left(text):
    shown = printable(text)
    assert shown.isprintable()
    assert printable(text, lines=True).replace("\n", "").isprintable()
    assert printable(text, lines=True).count("\n") == text.count("\n")
    if text.isprintable():
        assert shown == text == printable(text, lines=True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("\u202etxt", "\\u202etxt"),
        ("\udcff", "\\udcff"),
        ("a\r\nb", "a\\r\\nb"),
    ],
)
def test_escapes_are_shown(text, shown):
    assert printable(text) == shown


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="needs bash")
def test_a_word_is_what_the_shell_makes_of_it():
    random_texts = ["\x1b[31m", "two\nlines", "it's \\n \t'", "\x011f", "é→𝄞", "\u202e\x9b", "\udcff\udc80"]
    texts = ["a b", "$(touch x)", "`x`", "a'b\"c", "", "-x", "*", "a;b&c|d>e", "#", "~", "!x", "{a,b}", *random_texts]
    words = [shell_word(text) for text in texts]
    assert all(word.isprintable() for word in words)
    program = f"printf '%s\\0' {' '.join(words)}"
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["/bin/bash", "-c", program], capture_output=True, check=True, env=environment)
    assert [os.fsdecode(part) for part in done.stdout.split(b"\0")[:-1]] == texts
