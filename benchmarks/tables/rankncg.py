"""Raykar, Duraiswami and Krishnapuram, learning a ranking function fast, 2008: Tables 1 to 5, Figures 5, 6."""

from benchmarks.tables.design import Paper
from benchmarks.tables.rankncg_folds import TABLE_1, TABLE_2, TABLE_3, TABLE_3A
from benchmarks.tables.rankncg_sums import FIGURE_5, FIGURE_6
from benchmarks.tables.rankncg_users import TABLE_4, TABLE_5

PAPER = Paper(
    "rankncg",
    "A fast algorithm for learning a ranking function from large-scale data sets",
    "Raykar, Duraiswami and Krishnapuram, IEEE TPAMI 30, 2008",
    (TABLE_1, TABLE_2, TABLE_3, TABLE_3A, TABLE_4, TABLE_5, FIGURE_5, FIGURE_6),
)
