"""Formats of files by the endings of their names."""

from __future__ import annotations

from toprank.files.content import ending_of
from toprank.files.header import is_spreadsheet

ENDINGS = {
    **dict.fromkeys([".csv", ".tsv", ".txt"], "csv"),
    **dict.fromkeys([".svm", ".svmlight", ".libsvm"], "svmlight"),
    **dict.fromkeys([".parquet", ".pq"], "parquet"),
    **dict.fromkeys([".npy", ".npz"], "numpy"),
}
FORMATS = ("csv", "svmlight", "parquet", "numpy")


def is_name_of_table(path: str) -> bool:
    """Whether the name of a file says that it is a table, or a spreadsheet."""
    return ending_of(path) in ENDINGS or is_spreadsheet(path)
