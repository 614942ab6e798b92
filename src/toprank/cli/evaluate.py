"""``toprank evaluate``: how good a model is at the top of the list."""

from __future__ import annotations

from typing import Annotated

import typer

from toprank.cli import options
from toprank.cli.output import Output, guarded, told
from toprank.exceptions import InputError


@guarded
def evaluate(
    data: options.Data,
    model: options.Model,
    target: options.Target = None,
    positive: options.Positive = None,
    k: Annotated[list[int] | None, typer.Option(min=1, help="Length of the list; may be repeated.")] = None,
    fpr: Annotated[list[float] | None, typer.Option(min=0, max=1, help="False positive rate; may be repeated.")] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")] = 0.95,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure a model on rows with labels, with confidence intervals.

    If the file is the one that the model was fitted to, only the rows held out there are used. Intervals of shares
    are exact (Clopper and Pearson), that of the area is DeLong's.

    [bold]Examples[/bold]

    toprank evaluate test.csv --model fraud.toprank

    toprank evaluate test.csv -m fraud.toprank --k 50 --k 200 --fpr 0.001 --json
    """
    from toprank.cli.describing import measures_text
    from toprank.cli.model_files import load_model
    from toprank.files import evaluate_file
    from toprank.files.summary import plain
    from toprank.inspection import scorer_of

    output = Output(as_json=as_json, quiet=quiet)
    fitted = load_model(model, output)
    labels = {"target": target, "positive": positive}
    reading = {"format": format, "delimiter": delimiter}
    try:
        measures = evaluate_file(data, fitted, k=k, fpr=fpr, confidence=confidence, watcher=output, **labels, **reading)
    except InputError as error:
        if error.parameter != "k":
            raise
        raise typer.BadParameter(told(error)) from None
    title = f"{type(scorer_of(fitted.estimator_)).__name__} on {measures.rows:,} rows of {data}:"
    record = plain(measures.record())
    output.result(record, f"{title}\n{measures_text(record)}")
