"""What a summary of a model must be, of a model that is loaded and of a file that is only looked at."""

from __future__ import annotations

from typing import Any

from toprank.files.columns import CATEGORY
from toprank.files.source import NUMBER, TRUTH
from toprank.saved_state import WORD, Chosen, Kind, Known, Number, Rule, Table, count

COLUMNS = Table(others=Kind((str,), (NUMBER, TRUTH, CATEGORY)), none=True)
# What the commands read of a summary; `toprank.files.summary` writes it.
_SUMMARY = Table(
    {
        "method": WORD,
        "parameters": Table(),
        "data": Table(
            {
                "file": WORD,
                "sha256": Kind((str,), none=True),
                "rows": count(),
                "positives": count(),
                "learned_from": count(),
                "holdout": Number(0, 1, optional=True),
                "seed": count(optional=True),
                "labels_sha256": Kind((str,), optional=True),
                "in_order": Kind((bool,), optional=True),
            },
            optional=True,
        ),
        "columns": COLUMNS,
        "missing": Table(others=count()),
        "left_out": Table(others=WORD),
        "n_features": count(1),
        "certificate": Number(none=True),
        "threshold": Table(
            {
                "max_fpr": Number(0, 1, none=True),
                "confidence": Number(0, 1, optional=True),
                "n_calibration": count(1, optional=True),
                "per": Rule(none=True, optional=True),
            }
        ),
        "search": Table({"score": Number(none=True)}, none=True),
        "held_out": Table(none=True),
        "fitted": WORD,
    }
)
_NOTES = Table({"left_out": Table(optional=True)})


def _summary(known: Known, value: Any) -> Rule:
    """The rule of a summary that the command line wrote, or for notes of anyone else."""
    return _SUMMARY if isinstance(value, dict) and "data" in value else _NOTES


SUMMARY = Chosen(_summary)
