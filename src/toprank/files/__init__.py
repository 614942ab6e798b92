"""Files of rows (CSV, Parquet, svmlight, NumPy), models that know their columns, and what is done with both."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toprank.files.errors import NotANumberError, TableError
    from toprank.files.model import TableModel
    from toprank.files.model_fit import fit_file
    from toprank.files.model_measures import evaluate_file
    from toprank.files.open import open_table
    from toprank.files.score_columns import evaluate_scores
    from toprank.files.scoring import score_file

__all__ = [
    "NotANumberError",
    "TableError",
    "TableModel",
    "evaluate_file",
    "evaluate_scores",
    "fit_file",
    "open_table",
    "score_file",
]

_HOMES = {
    "NotANumberError": "errors",
    "TableError": "errors",
    "TableModel": "model",
    "evaluate_file": "model_measures",
    "evaluate_scores": "score_columns",
    "fit_file": "model_fit",
    "open_table": "open",
    "score_file": "scoring",
}


def __getattr__(name: str) -> Any:
    """A public name, whose module is loaded when it is used: to look at a name of a file costs nothing."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"toprank.files.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'toprank.files' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
