"""``toprank evaluate``: how good a model is at the top of the list."""

from __future__ import annotations

from typing import Annotated

import typer

from toprank.cli import options
from toprank.cli.output import Output, guarded


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
    from toprank.cli.measures import measure
    from toprank.cli.methods import last_step
    from toprank.cli.model_files import load_model
    from toprank.cli.reading import rows_to_test
    from toprank.files import open_table

    output = Output(as_json=as_json, quiet=quiet)
    fitted = load_model(model, output)
    source = open_table(data, format=format, delimiter=delimiter, zero_based=fitted.zero_based)
    rows = rows_to_test(source, fitted, output, target=target, positive=positive)
    too_long = [length for length in k or [] if length > len(rows.y)]
    if too_long:
        raise typer.BadParameter(f"--k {too_long[0]} is more than the {len(rows.y)} rows; use a smaller number")
    measures = measure(
        rows.y,
        fitted.decision_function(rows.X),
        ks=k or (10, 100),
        rates=fpr or (0.01, 0.05),
        confidence=confidence,
    )
    title = f"{type(last_step(fitted.estimator_)).__name__} on {measures.rows:,} rows of {data}:"
    output.result(measures.record(), f"{title}\n{measures.text()}")
