"""The papers whose tables and figures can be made."""

from benchmarks.tables import cbr, framework, kernels, rankncg, toppush

PAPERS = {paper.key: paper for paper in (toppush.PAPER, framework.PAPER, kernels.PAPER, rankncg.PAPER, cbr.PAPER)}
EXPERIMENTS = {experiment.name: experiment for paper in PAPERS.values() for experiment in paper.experiments}
