"""Tables as Markdown, which is readable in a terminal too."""

from benchmarks.tables.design import Figure, Paper, Results, Table
from benchmarks.tables.verdicts import APART, LEGEND, entry


def line_of(cells) -> str:
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"


def table_lines(table: Table, results: Results) -> list[str]:
    """All that was run or published of a table."""
    return by_measures(table, results) if len(table.measures) > 1 else by_methods(table, results)


def by_measures(table: Table, results: Results) -> list[str]:
    """A line for each set and method."""
    heads = ["data", "method", "trials", *(measure.title for measure in table.measures)]
    lines = [line_of(heads), "|---|---|---|" + "---|" * len(table.measures)]
    for name in table.lines:
        for method in table.methods(name):
            entries = [entry(table, results, name, method, measure) for measure in table.measures]
            n_trials = len(table.values(results, name, method, "cell_seconds"))
            if n_trials or any(one.published for one in entries):
                texts = [one.text(m.form) for one, m in zip(entries, table.measures, strict=True)]
                lines.append(line_of([name, method, str(n_trials), *texts]))
    return lines


def by_methods(table: Table, results: Results) -> list[str]:
    """A line for each set, a column for each method."""
    (measure,) = table.measures
    methods = list(dict.fromkeys(method for name in table.experiment.sets for method in table.methods(name)))
    lines = [line_of(["data", "trials", *methods]), "|---|---|" + "---|" * len(methods)]
    for name in table.experiment.sets:
        entries = [entry(table, results, name, method, measure) for method in methods]
        trials = sorted({len(results.values(name, method, "cell_seconds")) for method in methods} - {0})
        if trials:
            shown = "–".join(str(n) for n in dict.fromkeys([trials[0], trials[-1]]))
            lines.append(line_of([name, shown, *(one.text(measure.form) for one in entries)]))
    return lines


def not_run(table: Table, results: Results) -> str:
    """The sets and methods of a table without a trial."""
    found = []
    for name in table.experiment.sets:
        shown = table.methods(name)
        open_ones = [method for method in shown if not results.values(name, method, "cell_seconds")]
        if open_ones:
            found.append(name if len(open_ones) == len(shown) else f"{name} by {', '.join(open_ones)}")
    return "; ".join(found)


def notes_of(part: Table | Figure) -> list[str]:
    """What has to be known about a part, one point a line."""
    notes = [*part.notes]
    if isinstance(part, Table):
        if left_out := not_run(part, part.experiment.results()):
            notes.append(f"Not run, for want of computing time: {left_out}.")
        for reason in dict.fromkeys(part.apart.values()):
            names = [name for name, said in part.apart.items() if said == reason]
            notes.append(f"{APART} {', '.join(names)}: {reason}.")
    return [f"- {note}" for note in notes]


def table_text(table: Table) -> str:
    """A table with its title and notes."""
    lines = [f"**Table {table.number}.** {table.title}", "", *table_lines(table, table.experiment.results())]
    return "\n".join([*lines, "", *notes_of(table)])


def told_about(paper: Paper) -> str:
    """When and by what the cells were run."""
    files = [experiment.results() for experiment in paper.experiments]
    dates = sorted(date for results in files for date in results.dates)
    if not dates:
        return "Nothing was run yet."
    said = [line for results in files for line in results.lines if "versions" in line][-1]
    packages = ", ".join(f"{name} {version}" for name, version in said["versions"].items())
    return (
        f"Run from {dates[0]} to {dates[-1]} (UTC) on {said['cores']} cores that other work shared, one thread: "
        f"{packages}. Seconds are those of the processor."
    )


def page_text(paper: Paper) -> str:
    """What stands on the page of a paper between its marks."""
    parts = [told_about(paper), ""]
    if any(isinstance(part, Table) and part.published for part in paper.parts):
        parts += [LEGEND, ""]
    if paper.missing:
        parts += [f"Not at hand: {paper.missing}.", ""]
    for part in paper.parts:
        kind = "Table" if isinstance(part, Table) else "Figure"
        parts += [f"## {kind} {part.number}: {part.title}", ""]
        if isinstance(part, Table):
            parts += [*table_lines(part, part.experiment.results()), ""]
        elif part.is_ready:
            parts += [f"![{part.title}]({paper.key}-figure-{part.number}.svg)", ""]
        else:
            parts += ["Not run yet.", ""]
        if notes := notes_of(part):
            parts += [*notes, ""]
    return "\n".join(parts)
