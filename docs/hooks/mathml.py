"""Formulas between double dollars become MathML, which browsers show without scripts and without a network."""

import re

from latex2mathml.converter import convert

_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)


def on_page_markdown(markdown, **kwargs):
    """Called by mkdocs with the text of each page: before Markdown reads stars and underscores as marks."""
    return _DISPLAY.sub(lambda match: convert(match.group(1).strip(), display="block"), markdown)


def on_page_content(html, **kwargs):
    """Called by mkdocs with the HTML of each page, where the docstrings are now."""
    return _DISPLAY.sub(lambda match: convert(_plain(match.group(1)), display="block"), html)


def _plain(text):
    return text.strip().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
