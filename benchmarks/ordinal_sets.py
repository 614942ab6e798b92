"""The 14 data sets of Table 1 of the RankNCG paper."""

from functools import lru_cache

import numpy as np

from toprank.datasets import discretize, load, make_randnet, make_randpoly

# Name: data and number of levels, or generator and number of rows.
ORDINAL_SETS = {
    "Diabetes": ("diabetes_cpeptide", 2),
    "Pyrimidines": ("pyrimidines", 3),
    "Triazines": ("triazines", 4),
    "Wisconsin": ("wisconsin_prognostic", 4),
    "Machine-CPU": ("machine_cpu", 4),
    "Auto-MPG": ("auto_mpg", 3),
    "Boston": ("boston_housing", 2),
    "Airplane": ("stocks", 5),
    "RandNet-1000": (make_randnet, 1000),
    "RandPoly-1000": (make_randpoly, 1000),
    "Abalone": ("abalone", 3),
    "RandNet-5000": (make_randnet, 5000),
    "RandPoly-5000": (make_randpoly, 5000),
    "California": ("california_housing", 3),
}


@lru_cache(maxsize=2)
def read_ordinal(name):
    """X and the levels of a set; "RandPoly-60" is one of 60 rows, "Abalone / first column" one with another target."""
    if name.endswith(" / first column"):
        return by_first_column(name.removesuffix(" / first column"))
    if name.startswith("Rand"):
        kind, size = name.split("-")
        return {"RandNet": make_randnet, "RandPoly": make_randpoly}[kind](int(size), random_state=0)[:2]
    source, n_levels = ORDINAL_SETS[name]
    data = load(source)
    return data.X.astype(np.float64), discretize(data.y, n_levels)


def by_first_column(name):
    """The first column as target, in bins of equal width, and the others with the true target as features."""
    source, n_levels = ORDINAL_SETS[name]
    data = load(source)
    first = data.X[:, 0].astype(np.float64)
    if name == "Abalone":  # the sexes M, F and I, in the order of the alphabet
        first = np.array([2.0, 0.0, 1.0])[first.astype(int)]
    return np.column_stack([data.X[:, 1:], data.y]).astype(np.float64), discretize(first, n_levels)
