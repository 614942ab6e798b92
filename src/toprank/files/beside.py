"""Columns that are neither target nor features: the time and the amount of a row."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.files.errors import TableError
from toprank.files.source import NUMBER, VERBATIM
from toprank.files.times import Times


@dataclass(frozen=True)
class Beside:
    """Names of the columns of times and amounts, if there are any; without times rows may be in their order."""

    time: str | None = None
    amount: str | None = None
    in_order: bool = False

    def __post_init__(self) -> None:
        if self.time is not None and self.in_order:
            raise TableError.saying("{time=} gives the order of the rows; leave {in_order} out", time=self.time)
        if self.time is not None and self.time == self.amount:
            raise TableError(f"the column {self.time!r} cannot be both time and amount; name another one")

    def or_of(self, model: Any, names: Collection[str]) -> Beside:
        """What is not given as a model knows it, where a file has it."""
        time, amount = (name if name is None or name in names else None for name in (model.time, model.amount))
        return Beside(self.time or time, self.amount or amount, self.in_order)

    def names(self) -> list[str]:
        """The columns that must be there."""
        return [name for name in (self.time, self.amount) if name is not None]

    def kinds(self, learned: Callable[[str], bool]) -> dict[str, str]:
        """How they are read, where they are not learned from and so read anyway."""
        kinds = {self.time: VERBATIM, self.amount: NUMBER}
        return {name: kind for name, kind in kinds.items() if name is not None and not learned(name)}

    def times(self, frame: Any) -> Times | None:
        """The times of the rows."""
        if self.time is not None:
            return Times.of(frame[self.time])
        return Times.in_order(len(frame)) if self.in_order else None

    def amounts(self, frame: Any, notes: list[str]) -> NDArray[np.float64] | None:
        """The amounts of the rows; a missing one is nothing, which a note says."""
        if self.amount is None:
            return None
        if self.amount not in frame.columns or not frame[self.amount].dtype.is_float():
            raise TableError.saying(
                "{amount=} must be a column of numbers; name another one, or leave it out", amount=self.amount
            )
        amounts = frame[self.amount].to_numpy()
        missing = ~np.isfinite(amounts)
        if missing.any():
            notes.append(f"{int(missing.sum())} rows without a number in {self.amount!r} count as an amount of 0")
        return np.where(missing, 0.0, amounts)


NOTHING = Beside()
