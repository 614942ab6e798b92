"""Run, print and write the tables and figures of the papers.

    python -m benchmarks.tables                          all papers: days, so better one part and few trials
    python -m benchmarks.tables toppush 2 --trials 3     Table 2 of the TopPush paper, three trials of each cell
    python -m benchmarks.tables kernels figure-3         Figure 3 of the kernel paper
    python -m benchmarks.tables --no-run                 print what there is
    python -m benchmarks.tables --no-run --write         write the pages and the figures of docs/papers anew

Results are kept in benchmarks/results, one line a cell; a cell that is there is not run again. Needs TOPRANK_DATA.
"""

import argparse

from benchmarks.tables.design import Table
from benchmarks.tables.pages import write
from benchmarks.tables.papers import PAPERS
from benchmarks.tables.runner import fill
from benchmarks.tables.text import table_text
from benchmarks.tables.verdicts import LEGEND


def names(text):
    """Names with commas between them."""
    return text.split(",")


def arguments_of(argv):
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", nargs="?", choices=PAPERS, help="all, if none is named")
    parser.add_argument("part", nargs="?", help="a table such as 2, or figure-1; all of the paper, if none is named")
    parser.add_argument("--trials", type=int, help="fewer than the paper has")
    parser.add_argument("--sets", type=names)
    parser.add_argument("--methods", type=names)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the pages of the documentation")
    chosen = parser.parse_args(argv)
    if chosen.part is not None:
        labels = [part.label for part in PAPERS[chosen.paper].parts]
        if chosen.part not in labels:
            parser.error(f"{chosen.paper} has no part {chosen.part!r}; there are {', '.join(labels)}")
    return chosen


def main(argv=None):
    """Run what is missing, print the tables, write the pages if asked to."""
    chosen = arguments_of(argv)
    papers = [PAPERS[chosen.paper]] if chosen.paper else list(PAPERS.values())
    for paper in papers:
        parts = [part for part in paper.parts if chosen.part in (None, part.label)]
        for experiment in {part.experiment.name: part.experiment for part in parts}.values():
            if not chosen.no_run:
                trials = chosen.trials or experiment.trials
                fill(experiment, trials, chosen.jobs, chosen.sets, chosen.methods, lambda line: print(line, flush=True))
        print(f"\n{paper.title}\n{LEGEND}\n")
        for part in parts:
            if isinstance(part, Table):
                print(table_text(part) + "\n")
        if chosen.write:
            write(paper)


if __name__ == "__main__":
    main()
