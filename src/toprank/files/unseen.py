"""Values of categories that a model has never seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from toprank.files.columns import CATEGORY, MISSING
from toprank.files.errors import excerpt

_SHOWN = 3


class Unseen:
    """Counts values of the categorical columns of a `TableModel` that were not in the rows that it learned from."""

    def __init__(self, model: Any) -> None:
        self._known = _categories_of(model)
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in self._known}

    def add(self, frame: Any) -> None:
        """Look at rows with at least these columns, as they are read for the model."""
        for name, known in self._known.items():
            values = frame[name].fill_null(MISSING)
            self._counts[name].update(values.filter(~values.is_in(known)).to_list())

    def notes(self) -> Iterator[str]:
        """A line for each column with such values."""
        for name, counts in self._counts.items():
            if counts:
                shown = ", ".join(f"{_shown(text)} ({count:,} rows)" for text, count in counts.most_common(_SHOWN))
                more = f" and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
                yield f"column {name!r} has values that the model has never seen: {shown}{more}; they tell it nothing"


def _shown(text: str) -> str:
    return "missing values" if text == MISSING else excerpt(text)


def _categories_of(model: Any) -> dict[str, list[str]]:
    """The values of each categorical column in the rows that a model learned from."""
    from toprank.inspection import anatomy

    names = [name for name, kind in (model.columns or {}).items() if kind == CATEGORY]
    steps = anatomy(model.estimator_).parts[0].steps if names else []
    encoders = [step.named_transformers_["category"] for step in steps if hasattr(step, "named_transformers_")]
    return {
        name: [str(value) for value in values]
        for encoder in encoders
        for name, values in zip(names, encoder.categories_, strict=True)
    }
