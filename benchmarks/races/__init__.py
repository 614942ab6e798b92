"""Races of solvers to the minimum of one problem: `python -m benchmarks.tables races`.

All races have one form. A contender is run anew with a growing limit of iterations; only the run is timed, in seconds
of the processor; the objective of what it found is computed afterwards, by plain NumPy, for all contenders alike.
"""
