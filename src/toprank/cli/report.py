"""``toprank report``: one page about a model."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from toprank.cli import options
from toprank.cli.output import Output, guarded


@guarded
def report(
    data: options.Data,
    model: options.Model,
    page: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")] = "report.html",
    target: options.Target = None,
    positive: options.Positive = None,
    id_column: options.Id = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a page about a model on rows with labels.

    The page is one HTML file that needs no network: measures with intervals, plots, a slider for the budget of
    alerts, the rows at the top. If the file is the one that the model was fitted to, only the rows held out there are
    used.

    [bold]Examples[/bold]

    toprank report test.csv --model fraud.toprank --output report.html
    """
    from toprank.cli.model_files import check_writable, load_model
    from toprank.files import open_table
    from toprank.files.workflow import rows_to_test
    from toprank.report import write_report

    output = Output(as_json=as_json, quiet=quiet)
    check_writable(page, "--output", data, model)
    fitted = load_model(model, output)
    source = open_table(data, format=format, delimiter=delimiter, zero_based=fitted.zero_based)
    rows = rows_to_test(source, fitted, output, target=target, positive=positive, id_column=id_column, all_columns=True)
    # the page looks into the model, so it gets what is inside, and rows as that takes them
    X = fitted.rows(rows.X)
    table = None if fitted.columns is None else rows.X.drop([] if rows.ids is None else rows.ids.name)
    ids = None if rows.ids is None else rows.ids.to_list()
    about = {"data_name": os.path.basename(data), "training_rows": fitted.summary_.get("data", {}).get("learned_from")}
    with output.noted_warnings(), output.progress("writing the page"):
        write_report(page, fitted.estimator_, X, rows.y, ids=ids, table=table, title=title, **about)
    record = {"output": page, "rows": len(rows.y), "positives": int(rows.y.sum())}
    output.result(record, f"{page} is written, about {len(rows.y):,} rows; open it in a browser")
