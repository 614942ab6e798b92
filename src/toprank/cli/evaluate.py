"""``toprank evaluate``: how good a model, or columns of scores, are at the top of the list."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.output import Output, guarded, told
from toprank.exceptions import InputError


@guarded
def evaluate(
    data: options.Data,
    model: options.MaybeModel = None,
    scores: options.Score = None,
    target: options.Target = None,
    positive: options.Positive = None,
    k: Annotated[list[int] | None, typer.Option(min=1, help="Length of the list; may be repeated.")] = None,
    fpr: Annotated[list[float] | None, typer.Option(min=0, max=1, help="False positive rate; may be repeated.")] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")] = 0.95,
    per: options.Per = None,
    time: options.Time = None,
    amount: options.Amount = None,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure a model, or columns of scores, on rows with labels, with confidence intervals.

    If the file is the one that the model was fitted to, only the rows held out there are used. Intervals of shares
    are exact (Clopper and Pearson), that of the area is DeLong's. Of another file a note warns if the scores of the
    negatives have drifted since the fit. Where the time of rows is known, alerts are counted for each day. Of several
    columns of scores the first is compared with each other one, with intervals of the differences on the same rows.

    [bold]Examples[/bold]

    toprank evaluate test.csv --model fraud.toprank

    toprank evaluate test.csv -m fraud.toprank --k 50 --k 200 --fpr 0.001 --json

    toprank evaluate scores.csv --score ours --score incumbent --target fraud

    toprank evaluate test.csv --model fraud.toprank --score incumbent
    """
    from toprank.cli.model_files import require_model_or_scores

    require_model_or_scores(model, scores)
    if scores and not (per is time is amount is None):
        raise typer.BadParameter(
            "--per, --time and --amount count alerts, and --score has no threshold; leave them out, and measure the "
            "best rows by --k, or evaluate a --model alone"
        )
    output = Output(as_json=as_json, quiet=quiet)
    labels = {"target": target, "positive": positive}
    given: dict[str, Any] = {"k": k, "fpr": fpr, "confidence": confidence, "watcher": output}
    given |= {"format": format, "delimiter": delimiter, "encoding": encoding}
    try:
        if scores:
            _evaluate_scores(data, scores, model, output, **labels, **given)
        elif model is not None:
            _evaluate_model(data, model, output, per=per, time=time, amount=amount, **labels, **given)
    except InputError as error:
        if error.parameter not in ("k", "per"):
            raise
        raise typer.BadParameter(told(error)) from None


def _evaluate_model(data: str, path: str, output: Output, **given: Any) -> None:
    from toprank.cli.describing import measures_text
    from toprank.cli.model_files import load_model
    from toprank.files import evaluate_file
    from toprank.inspection import scorer_of
    from toprank.plain_data import plain

    fitted = load_model(path, output)
    measures = evaluate_file(data, fitted, **given)
    title = f"{type(scorer_of(fitted.estimator_)).__name__} on {measures.rows:,} rows of {data}:"
    record = plain(measures.record())
    output.result(record, f"{title}\n{measures_text(record)}")


def _evaluate_scores(data: str, scores: list[str], model: str | None, output: Output, **given: Any) -> None:
    from toprank.cli.describing import compared_text, share_text
    from toprank.cli.model_files import load_model
    from toprank.files import evaluate_scores
    from toprank.plain_data import plain

    fitted = None if model is None else load_model(model, output)
    measures = evaluate_scores(data, scores, model=fitted, **given)
    record = plain(measures.record())
    target, positive = (given[name] or getattr(fitted, name, None) for name in ("target", "positive"))
    positives = share_text(measures.positives, measures.rows, target, positive)
    title = f"{measures.rows:,} rows of {data}, of which {positives}:"
    output.result(record, f"{title}\n{compared_text(record)}")
