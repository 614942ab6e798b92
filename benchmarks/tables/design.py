"""What a paper declares: experiments, whose cells are run, and the tables and figures that are made of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.result_lines import read_lines

RESULTS = Path(__file__).parents[1] / "results"


class Cell(NamedTuple):
    """What is run at once; its numbers are one line of a file."""

    set: str
    method: str
    trial: int


class Published(NamedTuple):
    """A printed value, with its standard deviation where one is printed."""

    mean: float
    deviation: float | None = None


@dataclass(frozen=True)
class Measure:
    """A number of each cell: how it is titled and written, and in which direction it is better."""

    key: str
    title: str
    higher_is_better: bool | None = True
    form: str = ".3f"
    ratio_to: str | None = None  # shown as a ratio to the mean of this method on the same set


@dataclass(frozen=True)
class Experiment:
    """Cells and the function that gives their numbers.

    `trials` is the number that the paper has, `tiny` a cell on data that come with scikit-learn or are generated.
    """

    name: str
    run: Callable[[Cell], dict[str, Any]]
    methods: Callable[[str], tuple[str, ...]]
    sets: tuple[str, ...]
    trials: int
    tiny: Cell

    @property
    def path(self) -> Path:
        """The file of its results."""
        return RESULTS / f"{self.name}.jsonl"

    def cells(self, trials: int) -> list[Cell]:
        """The first trials of all sets before the next ones."""
        return [
            Cell(name, method, trial)
            for trial in range(min(trials, self.trials))
            for name in self.sets
            for method in self.methods(name)
        ]

    def results(self) -> "Results":
        """What was run so far."""
        return Results(read_lines(self.path))


class Results:
    """Lines of a file, by cell; of a cell that was run twice the last line counts."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self.lines = lines
        self.cells = {Cell(line["set"], line["method"], line["trial"]): line for line in lines if "method" in line}

    @cached_property
    def dates(self) -> list[str]:
        """When the cells were run, sorted."""
        return sorted(line["date"] for line in self.cells.values())

    def values(self, name: str, method: str, key: str) -> list[Any]:
        """A number of all trials that were run, in their order."""
        found = sorted(cell for cell in self.cells if cell[:2] == (name, method))
        return [self.cells[cell][key] for cell in found if key in self.cells[cell]]


@dataclass(frozen=True)
class Table:
    """Numbers beside published ones.

    With several measures a line is a set and a method, with one measure a line is a set and the columns are methods.
    `apart` says of a set or of a method why its published value is not comparable.
    """

    number: str
    title: str
    experiment: Experiment
    measures: tuple[Measure, ...]
    published: Mapping[tuple[str, str, str], Published]
    published_trials: int
    notes: tuple[str, ...] = ()
    apart: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()  # of the methods of the experiment only these
    mean_of_sets: str | None = None  # title of further lines with the mean of all sets

    @property
    def label(self) -> str:
        """As it is named on the command line."""
        return self.number

    @property
    def lines(self) -> tuple[str, ...]:
        """The sets, and the mean of them where it is asked for."""
        return (*self.experiment.sets, *([self.mean_of_sets] if self.mean_of_sets else []))

    def methods(self, name: str) -> tuple[str, ...]:
        """The methods that are shown."""
        return tuple(method for method in self.experiment.methods(name) if not self.only or method in self.only)

    def values(self, results: "Results", name: str, method: str, key: str) -> list[float]:
        """A number of all trials; of the mean of sets one number for the trials that all sets have."""
        if name != self.mean_of_sets:
            return results.values(name, method, key)
        of_sets = [results.values(one, method, key) for one in self.experiment.sets]
        return [sum(numbers) / len(numbers) for numbers in zip(*of_sets, strict=False)]


@dataclass(frozen=True)
class Figure:
    """A picture of the numbers of an experiment; `draw` gets a matplotlib figure and the results."""

    number: str
    title: str
    experiment: Experiment
    draw: Callable[[Any, Results], None]
    size: tuple[float, float] = (8.0, 3.4)
    notes: tuple[str, ...] = ()
    of_set: str | None = None  # drawn of this set only

    @property
    def label(self) -> str:
        """As it is named on the command line."""
        return f"figure-{self.number}"

    @property
    def is_ready(self) -> bool:
        """Whether there is something to draw."""
        return any(self.of_set in (None, cell.set) for cell in self.experiment.results().cells)


@dataclass(frozen=True)
class Paper:
    """The parts of a paper, and the data sets of it that are not at hand."""

    key: str
    title: str
    reference: str
    parts: tuple[Table | Figure, ...]
    missing: str = ""

    @property
    def experiments(self) -> list[Experiment]:
        """Each once, in the order of the parts."""
        return list({part.experiment.name: part.experiment for part in self.parts}.values())
