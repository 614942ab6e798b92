"""Values of categories that a model has never seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toprank.files.columns import CATEGORY, MISSING
from toprank.files.errors import excerpt
from toprank.files.value_counts import ValueCounts

_SHOWN = 3


class Unseen:
    """Counts values of the categorical columns of a `TableModel` that were not in the rows that it learned from."""

    def __init__(self, model: Any) -> None:
        self._known = _categories_of(model)
        self._counts = {name: ValueCounts() for name in self._known}

    def add(self, frame: Any) -> None:
        """Look at rows with at least these columns, as they are read for the model."""
        for name, known in self._known.items():
            values = frame[name].fill_null(MISSING)
            self._counts[name].add(values.filter(~values.is_in(known)).to_list())

    def record(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {name: values.record() for name, values in self._counts.items()}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._counts = {name: ValueCounts(**values) for name, values in record.items()}

    def notes(self) -> Iterator[str]:
        """A line for each column with such values."""
        for name, values in self._counts.items():
            counts = values.counts
            if counts:
                shown = ", ".join(f"{_shown(text)} ({count:,} rows)" for text, count in counts.most_common(_SHOWN))
                at_least = "more than " if values.n_other else ""
                more = f" and {at_least}{len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
                yield f"column {name!r} has values that the model has never seen: {shown}{more}; they tell it nothing"


def _shown(text: str) -> str:
    return "missing values" if text == MISSING else excerpt(text)


def _categories_of(model: Any) -> dict[str, list[str]]:
    """The values of each categorical column in the rows that a model learned from."""
    from toprank.inspection import anatomy

    names = [name for name, kind in (model.columns or {}).items() if kind == CATEGORY]
    part = anatomy(model.estimator_).parts[0]
    if getattr(part.estimator, "takes_tables", False):
        columns = list(model.columns)
        return {columns[number]: list(map(str, values)) for number, values in part.estimator.categories_.items()}
    steps = part.steps if names else []
    encoders = [step.named_transformers_["category"] for step in steps if hasattr(step, "named_transformers_")]
    return {
        name: [str(value) for value in values]
        for encoder in encoders
        for name, values in zip(names, encoder.categories_, strict=True)
    }
