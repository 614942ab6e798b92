"""Tables in files: CSV, Parquet, svmlight and NumPy; and models that know their columns."""

from toprank.files.errors import NotANumberError, TableError
from toprank.files.model import TableModel
from toprank.files.open import open_table

__all__ = ["NotANumberError", "TableError", "TableModel", "open_table"]
