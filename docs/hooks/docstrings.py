"""Docstrings are written for the terminal: their few marks of reStructuredText are turned into Markdown."""

import re
import textwrap

import griffe

_MATH = re.compile(r"^\.\. math::[ ]*(.*(?:\n(?:[ ]+.*|[ ]*))*)", re.MULTILINE)


def _display(match):
    # a line break within a formula, \\, stays one when Markdown has eaten its escapes
    formula = " ".join(textwrap.dedent("   " + match.group(1)).split()).replace("\\", "\\\\")
    return f"$${formula.replace('_', chr(92) + '_').replace('*', chr(92) + '*')}$$\n\n"


class Marks(griffe.Extension):
    """Rewrite `.. math::` and double backticks."""

    def on_instance(self, *, obj, **kwargs):
        """Called by griffe for each object."""
        if obj.docstring:
            text = _MATH.sub(_display, obj.docstring.value)
            obj.docstring.value = text.replace("``", "`")
