"""Data to rank: checked real sets, made data with a known answer, labels, and splits.

``load`` and ``load_task`` read the folder that the environment variable ``TOPRANK_DATA`` names;
everything else works without files. Importing this module imports NumPy only.
"""

from toprank.datasets._bundled import load_bundled
from toprank.datasets._folder import DatasetError
from toprank.datasets._generators import make_imbalanced, make_outlier, make_randnet, make_randpoly, optimal_tpr
from toprank.datasets._labels import binarize, discretize
from toprank.datasets._loaders import list_datasets, load, load_task
from toprank.datasets._payments import make_payments, write_payments
from toprank.datasets._splits import five_folds, split_half_quarters, split_two_thirds
from toprank.datasets._tasks import TASKS, Task

__all__ = [
    "TASKS",
    "DatasetError",
    "Task",
    "binarize",
    "discretize",
    "five_folds",
    "list_datasets",
    "load",
    "load_bundled",
    "load_task",
    "make_imbalanced",
    "make_outlier",
    "make_payments",
    "make_randnet",
    "make_randpoly",
    "optimal_tpr",
    "split_half_quarters",
    "split_two_thirds",
    "write_payments",
]
