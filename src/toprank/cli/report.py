"""``toprank report``: one page about a model, or about columns of scores."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.output import Output, guarded


@guarded
def report(
    data: options.Data,
    model: options.MaybeModel = None,
    scores: options.Score = None,
    page: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")] = "report.html",
    target: options.Target = None,
    positive: options.Positive = None,
    id_column: options.Id = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the page; by default what the budget finds.")
    ] = None,
    per: options.Per = None,
    time: options.Time = None,
    amount: options.Amount = None,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a page about a model, or about columns of scores, on rows with labels.

    The page is one HTML file that needs no network: measures with intervals, plots, a slider for the budget of
    alerts, the rows at the top. If the file is the one that the model was fitted to, only the rows held out there are
    used. Several columns of scores, or a model and columns, stand side by side. Of a model the page shows whether the
    scores of the negatives have drifted since the fit, and where the time of rows is known the alerts of each day.

    [bold]Examples[/bold]

    toprank report test.csv --model fraud.toprank --output report.html

    toprank report scores.csv --score ours --score incumbent --target fraud --output report.html

    toprank report test.csv --model fraud.toprank --score incumbent
    """
    from toprank.cli.model_files import check_writable, require_model_or_scores
    from toprank.files import open_table
    from toprank.report import write_report

    require_model_or_scores(model, scores)
    if scores and not (per is time is amount is None):
        raise typer.BadParameter(
            "--per, --time and --amount count alerts, and --score has no threshold; leave them out, or report on a "
            "--model alone"
        )
    output = Output(as_json=as_json, quiet=quiet)
    check_writable(page, "--output", data, model)
    reading: dict[str, Any] = {"format": format, "delimiter": delimiter, "encoding": encoding}
    labels = {"target": target, "positive": positive, "id_column": id_column}
    if model is not None:
        over_time = {"per": per, "time": time, "amount": amount}
        rows, about = _of_model(data, model, scores, output, reading, labels, over_time)
    else:
        from toprank.files.score_columns import read_scores

        found = read_scores(open_table(data, **reading), scores or [], output, all_columns=True, **labels)
        rows, first = found.rows, next(iter(found.scores))  # which has a column of its own on the page
        about = {"scores": found.scores, "table": rows.X.drop(first), "target_name": target}
    about |= {"y": rows.y, "title": title, "data_name": os.path.basename(data)}
    if rows.ids is not None:
        about |= {"ids": rows.ids.to_list(), "table": about["table"].drop(rows.ids.name)}
    if rows.labels is not None:
        about["labels"] = rows.labels.to_list()
    with output.noted_warnings(), output.progress("writing the page"):
        write_report(page, **about)
    record = {"output": page, "rows": len(rows.y), "positives": int(rows.y.sum())}
    output.result(record, f"{page} is written, about {len(rows.y):,} rows; open it in a browser")


def _of_model(
    data: str,
    path: str,
    scores: list[str] | None,
    output: Output,
    reading: dict[str, Any],
    labels: dict[str, Any],
    over_time: dict[str, Any],
) -> tuple[Any, dict[str, Any]]:
    """The rows to test a model with, beside columns of scores if there are such, and what the page is told of it."""
    from toprank.cli.model_files import load_model
    from toprank.files.beside import Beside
    from toprank.files.model_measures import measured
    from toprank.files.open import open_for_model
    from toprank.files.score_columns import scores_beside
    from toprank.files.watched_rows import rows_to_test

    fitted = load_model(path, output)
    source = open_for_model(data, fitted, **reading)
    others, known = None, {}
    if scores:
        found = scores_beside(source, fitted, scores, output, **labels)
        rows, others = found.rows, {name: found.scores[name] for name in scores}
    else:
        beside = Beside(over_time["time"], over_time["amount"])
        rows = rows_to_test(source, fitted, output, all_columns=True, beside=beside, **labels)
        measures = measured(fitted, rows, fitted.decision_function(rows.X), output, over_time["per"])
        known = {"per_period": measures.per_period, "drift": measures.drift, "amounts": rows.amounts}
    return rows, {
        **known,
        "scores": others,
        "model": fitted,
        "X": rows.X,
        "table": None if fitted.columns is None else rows.X,
        "target_name": labels["target"] or fitted.target,
        "training_rows": fitted.summary_.get("data", {}).get("learned_from"),
    }
