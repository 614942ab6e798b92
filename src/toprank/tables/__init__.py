"""Tables in files: CSV, Parquet, svmlight and NumPy; and models that know their columns."""

from toprank.tables.errors import NotANumberError, TableError
from toprank.tables.model import TableModel
from toprank.tables.open import open_table

__all__ = ["NotANumberError", "TableError", "TableModel", "open_table"]
