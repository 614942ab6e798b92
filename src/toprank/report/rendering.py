"""The template filled in, under a policy that allows nothing but the style and the script of the page."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

SCRIPTS = ("ranking.js", "intervals.js", "comparison.js", "page.js")


def render(contents: dict[str, Any]) -> str:
    """Fill in the template; all text is escaped, and data are embedded so that no text can end the element."""
    environment = Environment(
        loader=FunctionLoader(lambda name: _text("templates", name)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "allow_nan": False, "separators": (",", ":")}
    bodies = [environment.get_template(f"{part.name}.html").render(**part.values) for part in contents["sections"]]
    css = _text("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_text, SCRIPTS)) + "})();\n"
    policy = (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = list(zip(contents["sections"], map(Markup, bodies), strict=True))
    values = {**contents, "parts": parts, "css": css, "script": script, "policy": policy}
    return environment.get_template("page.html").render(values)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


@cache
def _text(*place: str) -> str:
    return files("toprank.report").joinpath(*place).read_text(encoding="utf-8")
