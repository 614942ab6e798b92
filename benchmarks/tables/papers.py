"""The papers whose tables and figures can be made."""

from benchmarks.tables import framework, toppush

PAPERS = {paper.key: paper for paper in (toppush.PAPER, framework.PAPER)}
EXPERIMENTS = {experiment.name: experiment for paper in PAPERS.values() for experiment in paper.experiments}
