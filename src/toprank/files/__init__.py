"""Files of rows (CSV, Parquet, svmlight, NumPy), models that know their columns, and what is done with both."""

from toprank.files.errors import NotANumberError, TableError
from toprank.files.model import TableModel
from toprank.files.open import open_table
from toprank.files.score_columns import evaluate_scores
from toprank.files.scoring import score_file
from toprank.files.workflow import evaluate_file, fit_file

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
