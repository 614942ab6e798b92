"""Choice of models: comparison with paired tests, and searches along warm-started paths."""

from toprank.selection.compare import compare
from toprank.selection.comparison import Comparison
from toprank.selection.search import TopSearchCV

__all__ = ["Comparison", "TopSearchCV", "compare"]
