"""Where a stream is, in a file: model, place, metrics, and what they belong to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from toprank.exceptions import InputError, Message, Parameter
from toprank.files.found_in_rows import FoundInStream
from toprank.files.rows import MOST_BAD_LINES, BadLine, Place, Rows, RowSource
from toprank.persistence.errors import ModelFileError
from toprank.persistence.model_file import read_tree, write_tree
from toprank.saved_state import WORD, Array, Items, Part, Record, Schema, StateError, Table, count
from toprank.streams.prequential import COLUMNS

_COUNTS = ("n_rows", "n_positives", "n_bad")
_COUNTS_OF = Table(others=count())
_COUNTED = Table({"counts": _COUNTS_OF, "n_other": count()})
_STRAYS = Table({"strays": Table(others=_COUNTED), "first": Table(others=WORD), "n_known": _COUNTS_OF})
_CONTENT = Schema(
    {
        "model": Part(("fit",)),
        "place": Record((count(), count())),
        **dict.fromkeys(_COUNTS, count()),
        "bad": Items(Record((count(), WORD))),
        "settings": Table({"window": count(1)}),
        "metrics": Table(
            {
                "history": Array("f8", (None, len(COLUMNS)), finite=False),
                "scores": Array("f8", ("n_waiting",), finite=False),
                "labels": Array("i8", ("n_waiting",), low=0, high=1),
            }
        ),
        "began_with": WORD,
        "source": Table(),
        "found": Table(
            {
                "numbers": _STRAYS,
                "unseen": Table(others=_COUNTED),
                "missing": _COUNTS_OF,
            },
            none=True,
            optional=True,
        ),
    },
    fitted=None,
    relations={
        "fewer scores than a window": lambda known: len(known["metrics"]["scores"]) < known["settings"]["window"],
        "as many bad lines as it counts": lambda known: len(known["bad"]) <= min(known["n_bad"], MOST_BAD_LINES),
    },
)


def content_of(path: str | os.PathLike[str], trusted: Iterable[type] = ()) -> dict[str, Any]:
    """What a checkpoint holds, after a look at whether it is whole."""
    content = read_tree(path, kind="checkpoint", trusted=trusted)
    try:
        _CONTENT.check(content if isinstance(content, dict) else {})
    except StateError as error:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: its content {error}") from None
    return dict(content)


@dataclass
class State:
    """All that changes while a stream is read."""

    model: Any
    place: Place
    n_rows: int = 0
    n_positives: int = 0
    n_bad: int = 0
    bad: list[BadLine] = field(default_factory=list)
    """The first of the bad lines."""
    found: FoundInStream | None = None
    """What was found in the rows of a model that knows its columns."""

    def count_rows(self, rows: Rows) -> None:
        """Count rows that were learned from."""
        self.n_rows += len(rows)
        self.n_positives += int(rows.y.sum())

    def count_bad(self, n_bad: int, first: list[BadLine]) -> None:
        """Count bad lines, and keep the first of all."""
        self.n_bad += n_bad
        self.bad.extend(first[: MOST_BAD_LINES - len(self.bad)])


@dataclass(frozen=True)
class Checkpoint:
    """A file for the state of one run: what its result depends on besides the data, and classes that it may hold.

    `began_with` is the fingerprint of the model at the start.
    """

    path: str
    settings: dict[str, Any]
    began_with: str
    trusted: tuple[type, ...]

    def write(self, state: State, metrics: dict[str, Any], source: RowSource) -> None:
        """Save the state, atomically."""
        content = {
            **{name: getattr(state, name) for name in ("model", *_COUNTS)},
            "place": tuple(state.place),
            "bad": [(line, str(reason)) for line, reason in state.bad],
            "metrics": metrics,
            "settings": self.settings,
            "began_with": self.began_with,
            "source": source.identity(state.place.position),
            "found": None if state.found is None else state.found.record(),
        }
        write_tree(content, self.path, kind="checkpoint", name="checkpoint", trusted=self.trusted)

    def restored(self, content: dict[str, Any], source: RowSource) -> tuple[State, dict[str, Any]]:
        """The state and the state of the metrics of a content, after a look at whether they belong to this run."""
        place = Place(*content["place"])
        for name in {**self.settings, **content["settings"]}:
            before, now = content["settings"].get(name), self.settings.get(name)
            if before != now:
                names = Parameter(name, name)
                raise self._other(
                    Message("{name} {before!r}, and now {name} is {now!r}", name=names, before=before, now=now)
                )
        if content["began_with"] != self.began_with:
            raise self._other("another model, or the same with other parameters or already fitted otherwise")
        if content["source"] != source.identity(place.position):
            raise self._other(f"another file, or {source.path!r} was changed in the part that was read")
        bad = [BadLine(*line) for line in content["bad"]]
        counts = {name: content[name] for name in _COUNTS}
        model, record = content["model"], content.get("found")
        found = None if record is None else FoundInStream(model, record)
        return State(model, place, bad=bad, found=found, **counts), content["metrics"]

    def _other(self, difference: str) -> ValueError:
        return InputError.saying(
            "the checkpoint {path!r} was begun with {difference}; run with what it was begun with, or start anew by "
            "{resume=False} or another checkpoint",
            path=self.path,
            difference=difference,
        )
