"""Why rows are where they are in the list: what each column adds to the score."""

from toprank.explanation.contributions import Contributions, contributions
from toprank.explanation.importance import TopImportance, importance_at_the_top
from toprank.explanation.reasons import Reason, reasons

__all__ = ["Contributions", "Reason", "TopImportance", "contributions", "importance_at_the_top", "reasons"]
