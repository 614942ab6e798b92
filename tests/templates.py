"""All templates of messages in the source."""

import ast
import functools
import inspect
import pathlib

import toprank

_PLACES = {"Message": 0, "saying": 0, "of": 2}


@functools.cache
def templates():
    """All of `_templates`, read once."""
    return list(_templates())


def _templates():
    """For each message where it stands, its templates in and outside Python, and the names of its values.

    A template is None where it is no constant.
    """
    for path in sorted(pathlib.Path(inspect.getfile(toprank)).parent.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        assigned = [node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
        named = {node.targets[0].id: node.value for node in assigned}
        for call in nodes:
            if not isinstance(call, ast.Call) or path.name in ("exceptions.py", "checks.py"):
                continue
            name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
            if name in _PLACES and (name != "of" or getattr(call.func.value, "id", "") == "InputError"):
                values = {keyword.arg: keyword.value for keyword in call.keywords}
                given = [*call.args[_PLACES[name] :], *([values.pop("elsewhere")] if "elsewhere" in values else [])]
                texts = [named.get(text.id) if isinstance(text, ast.Name) else text for text in given]
                texts = [getattr(text, "value", None) for text in texts]
                outside = texts[-1:] if name != "of" else texts[:1] + texts[1:][-1:]
                yield f"{path.name}:{call.lineno}", texts, outside, set(values)
