"""The papers whose tables and figures can be made, and the races of solvers, which have the same form."""

from benchmarks.races import page as races
from benchmarks.tables import cbr, framework, kernels, rankncg, toppush

PAGES = (toppush, framework, kernels, rankncg, cbr, races)
PAPERS = {page.PAPER.key: page.PAPER for page in PAGES}
EXPERIMENTS = {experiment.name: experiment for paper in PAPERS.values() for experiment in paper.experiments}
