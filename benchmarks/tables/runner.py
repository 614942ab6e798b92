"""Fills the cells of experiments: what is in the file is not run again, so that a run may be stopped at any time."""

import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np
from benchmarks.result_lines import append_line, note_versions
from benchmarks.tables.design import Cell, Experiment

from toprank.datasets import DatasetError

PACKAGES = ("toprank", "numpy", "scipy", "scikit-learn")


def compute(experiment: Experiment, cell: Cell) -> dict | None:
    """The numbers of a cell and the processor seconds that they took; None where the data set is missing."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a collapse or a limit of iterations shows in the numbers
            numbers = experiment.run(cell)
    except DatasetError as error:
        return {"missing": str(error)}
    return {**cell._asdict(), **numbers, "cell_seconds": round(time.process_time() - start, 2)}


def compute_named(name: str, cell: Cell) -> dict | None:
    """The same for another process, which knows experiments by name only."""
    from benchmarks.tables.papers import EXPERIMENTS

    return compute(EXPERIMENTS[name], cell)


def open_cells(experiment: Experiment, trials: int, sets=None, methods=None) -> list[Cell]:
    """The cells that are asked for and not yet in the file."""
    done = experiment.results().cells
    return [
        cell
        for cell in experiment.cells(trials)
        if cell not in done and cell.set in (sets or [cell.set]) and cell.method in (methods or [cell.method])
    ]


class Progress:
    """Says what was run, and how long the rest may take by the cells of the same kind."""

    def __init__(self, cells: list[Cell], known: dict[Cell, dict], jobs: int) -> None:
        self.left, self.total, self.jobs = list(cells), len(cells), jobs
        self.seconds: dict[tuple[str, str], list[float]] = {}
        for cell, line in known.items():
            self.add(cell, line.get("cell_seconds", 0.0))

    def add(self, cell: Cell, seconds: float) -> None:
        """A cell that took so long."""
        self.seconds.setdefault(cell[:2], []).append(seconds)

    def done(self, cell: Cell, seconds: float) -> str:
        """The line to print."""
        self.left.remove(cell)
        self.add(cell, seconds)
        rest = sum(np.mean(self.seconds[other[:2]]) for other in self.left if other[:2] in self.seconds) / self.jobs
        unknown = sum(other[:2] not in self.seconds for other in self.left)
        ahead = f"{rest:.0f} s left" + (f" and {unknown} cells of unknown length" if unknown else "")
        place = f"[{self.total - len(self.left)}/{self.total}]"
        return f"{place} {cell.set} {cell.method} trial {cell.trial}: {seconds:.1f} s; {ahead}"


def fill(experiment: Experiment, trials: int, jobs: int = 1, sets=None, methods=None, say=print) -> None:
    """Run the cells that are asked for and append each to the file as it is ready."""
    cells = open_cells(experiment, trials, sets, methods)
    if not cells:
        return
    progress = Progress(cells, experiment.results().cells, jobs)
    missing: dict[str, str] = {}

    def keep(cell, line):
        if "missing" in line:
            missing[cell.set] = line["missing"]
            say(f"{cell.set} is missing: {line['missing']}")
        else:
            append_line(experiment.path, line)
        say(progress.done(cell, line.get("cell_seconds", 0.0)))

    note_versions(experiment.path, PACKAGES)
    if jobs == 1:
        for cell in cells:
            if cell.set not in missing:
                keep(cell, compute(experiment, cell))
        return
    with ProcessPoolExecutor(jobs) as pool:
        futures = {pool.submit(compute_named, experiment.name, cell): cell for cell in cells}
        for future in as_completed(futures):
            keep(futures[future], future.result())
