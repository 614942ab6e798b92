"""All tables and figures of the five papers: `python -m benchmarks.tables [paper] [part]`.

A paper is a module that declares experiments (cells of a data set, a method and a trial, each a few numbers) and the
tables and figures that are made of them, with the published values. One runner fills the cells into
`benchmarks/results`, one printer compares them with what was published, one writer puts them into `docs/papers`.
"""
