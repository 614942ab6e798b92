"""Rows on their way through a graph: a matrix of numbers, or columns one by one, of which some are text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from toprank.deployment.graph import ML, Graph

MISSING = None
"""What a missing text is known as, to transformers of scikit-learn."""


@dataclass(frozen=True)
class Column:
    """The name of a result of shape (n, 1): numbers with nan for missing, or texts.

    A graph has no missing texts; `spellings` says which texts stand for something else: for `MISSING`, or for the text
    that an imputer puts there.
    """

    result: str
    is_text: bool = False
    spellings: Mapping[str, Any] = field(default_factory=dict)


class Rows:
    """Columns of a graph, as one matrix or one by one."""

    def __init__(self, graph: Graph, columns: Sequence[Column] | None, matrix: str | None = None, width: int = 0):
        self._graph, self._columns, self._matrix = graph, columns, matrix
        self.width = width if columns is None else len(columns)

    @classmethod
    def of_matrix(cls, graph: Graph, matrix: str, width: int) -> Self:
        """Rows that are one matrix of numbers."""
        return cls(graph, None, matrix, width)

    @property
    def has_text(self) -> bool:
        """Whether some column is text."""
        return any(column.is_text for column in self._columns or ())

    def matrix(self) -> str:
        """All columns as one matrix of doubles."""
        if self._matrix is None:
            if self.has_text:
                raise TypeError(
                    "a column of text reaches a step that takes numbers, which has no ONNX export; encode it before, "
                    "for instance by OneHotEncoder"
                )
            results = [column.result for column in self._columns or ()]
            self._matrix = results[0] if len(results) == 1 else self._graph.add("Concat", *results, axis=1)
        return self._matrix

    def columns(self) -> list[Column]:
        """The columns one by one."""
        if self._columns is None:
            whole = self.matrix()
            self._columns = [Column(self._graph.add("Gather", whole, np.array([j]), axis=1)) for j in range(self.width)]
        return list(self._columns)

    def take(self, places: Sequence[int]) -> Rows:
        """Some of the columns."""
        places = [int(place) for place in places]
        if self._columns is not None:
            return Rows(self._graph, [self._columns[place] for place in places])
        if places == list(range(self.width)):
            return self
        taken = self._graph.add("Gather", self.matrix(), np.array(places, dtype=np.int64), axis=1)
        return Rows.of_matrix(self._graph, taken, len(places))

    @staticmethod
    def side_by_side(graph: Graph, parts: Sequence[Rows]) -> Rows:
        """The columns of several in one."""
        parts = [part for part in parts if part.width]
        if len(parts) == 1:
            return parts[0]
        if any(part.has_text for part in parts):
            return Rows(graph, [column for part in parts for column in part.columns()])
        width = sum(part.width for part in parts)
        return Rows.of_matrix(graph, graph.add("Concat", *(part.matrix() for part in parts), axis=1), width)


def looked_up(graph: Graph, column: Column, table: Mapping[str, int], otherwise: int) -> str:
    """Numbers of texts, as doubles of shape (n, 1)."""
    numbers = graph.add(
        "LabelEncoder",
        column.result,
        domain=ML,
        version=2,
        keys_strings=list(table),
        values_int64s=list(table.values()),
        default_int64=otherwise,
    )
    return graph.add("Cast", numbers, to=graph.onnx.TensorProto.DOUBLE)
