"""Which room of the house may import which: a room sees only what stands below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "toprank"
# Modules at the top of the package that everything may use: they know nothing of the rest.
GROUND = {
    "arrays", "exceptions", "checks", "compiled", "compiler_passes", "docstrings", "log", "plain_data",
    "positive_class", "saved_state", "shown_text",
}  # fmt: skip
# What each room may import besides the ground.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    # the papers' comparators: pairs and direction as in the family, a solver of their own
    "baselines": {"base", "estimators", "formulations", "matrices", "pairwise", "solvers"},
    "blending": {"base", "decision", "estimators", "metrics"},
    "boosting": {"formulations"},
    "datasets": {"persistence"},  # which writes files whole or not at all
    "formulations": set(),
    "matrices": set(),
    "online": {"base"},
    "ranking": {"matrices"},  # vectors in blocks and cuts among them, for lists that are not in one memory
    "solvers": {"formulations", "matrices"},
    "metrics": {"ranking"},
    "decision": {"base", "matrices", "ranking"},  # matrices for order statistics of rows in blocks
    "estimators": {"base", "formulations", "matrices", "persistence", "solvers"},  # which writes checkpoints
    # LeafFeatures gives a matrix; TopForest fits a head of the family to it and chooses it by metrics of the top
    "trees": {"base", "estimators", "matrices", "metrics"},
    "pairwise": {"base", "matrices", "metrics", "solvers"},
    "inspection": {"base", "decision"},
    "explanation": {"decision", "inspection"},
    "persistence": {"base", "inspection"},  # a file says what is in it to those who only look
    "selection": {"base", "decision", "estimators", "inspection", "matrices", "metrics", "pairwise"},
    "plots": {"decision", "inspection", "ranking"},
    "report": {"decision", "explanation", "inspection", "metrics", "persistence", "plots", "ranking"},
    "compilation": set(),
    "demo": {"datasets", "metrics", "persistence"},
    # matrices: rows in blocks, which stay in their file
    "files": {"decision", "explanation", "inspection", "matrices", "metrics", "persistence", "ranking", "selection"},
    "deployment": {"base", "blending", "decision", "files", "inspection", "matrices", "ranking", "trees"},
    "streams": {"files", "inspection", "metrics", "online", "persistence"},
    "cli": {
        "compilation", "decision", "demo", "deployment", "files", "inspection", "online", "persistence", "ranking",
        "report", "selection", "streams",
    },
}  # fmt: skip
# Rooms that may ask for public names of the package itself, which loads them when they are used.
FRONT = {"boosting", "cli", "compilation", "demo", "persistence", "report"}


def _room(module: str) -> str:
    return module.split(".")[1]


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    """Modules of this package that a file imports, at its top, in functions, or for types; and the lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name.startswith("toprank."))
        elif isinstance(node, ast.ImportFrom) and node.module == "toprank":
            yield from ((f"toprank.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("toprank."):
            yield str(node.module), node.lineno


def _rooms() -> list[str]:
    found = (path for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    return sorted({path.stem for path in found} - {"__init__"})


@pytest.mark.parametrize("room", _rooms())
def test_a_room_imports_only_what_stands_below_it(room: str) -> None:
    """Change the table above only if the plan of the house changes."""
    allowed = GROUND | {room} | (set() if room in GROUND else MAY_IMPORT[room])
    folder = SOURCE / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{room}.py"]
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {module}"
        for path in files
        for module, line in _imports(path)
        if _room(module) not in allowed and not (room in FRONT and _room(module) not in _rooms())
    ]
    assert not wrong, "\n".join(wrong)


def test_the_plan_has_no_circles_and_no_empty_rooms() -> None:
    tuple(TopologicalSorter(MAY_IMPORT).static_order())
    assert set(MAY_IMPORT) | GROUND == set(_rooms())
