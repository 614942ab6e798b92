"""``toprank stream``: learn from a file that need not fit in memory."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import toprank
from toprank.cli import methods, options
from toprank.cli.options import of_method, one_of
from toprank.cli.output import Output, guarded, number, table, told
from toprank.exceptions import Message


@guarded
def stream(
    data: options.Data,
    model: options.NewModel,
    target: options.Target = None,
    positive: options.Positive = None,
    id_column: options.Id = None,
    ignore: options.Ignore = None,
    types: options.Types = None,
    missing: options.Missing = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    method: Annotated[str, one_of(methods.ONLINE_METHODS, help="Online method.")] = "CBR",
    start: Annotated[
        str | None, of_method(metavar="FILE", help="A model of an earlier stream that goes on learning.")
    ] = None,
    first_rows: Annotated[
        int, of_method(min=1, help="So many first rows decide what columns hold, medians, scales and categories.")
    ] = 10_000,
    scale: Annotated[bool, of_method(help="Scale numbers by mean and deviation, or take them as they are.")] = True,
    fill_missing: Annotated[
        float | None, typer.Option(help="Number that stands for missing ones, instead of the median and a mark.")
    ] = None,
    on_bad_line: Annotated[
        str, one_of(["stop", "skip"], help="Stop at a bad line, or leave it out and count it.")
    ] = "stop",
    batch: Annotated[int, typer.Option(min=1, help="Rows scored and then learned from at once.")] = 1000,
    window: Annotated[int, typer.Option(min=1, help="Rows in a window of the measures.")] = 10_000,
    max_fpr: Annotated[float, typer.Option(min=0, max=1, help="False positive rate to measure at.")] = 0.01,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="FILE", help="File to go on from after an interruption.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Rows between checkpoints.")] = 100_000,
    resume: Annotated[bool, typer.Option(help="Go on from the checkpoint if it is there.")] = True,
    grows: Annotated[
        bool | None,
        typer.Option(
            help="Leave a last line without its end for the next run, or take it. By default left with --checkpoint."
        ),
    ] = None,
    seed: options.Seed = 0,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    zero_based: options.ZeroBased = False,
    n_features: Annotated[
        int | None,
        typer.Option(min=1, help="Number of features of svmlight; by default the file is read once to find it."),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn from a file row by row, in constant memory, and measure on the way.

    Each batch is scored before it is learned from, so every row is a test row once. The file is CSV, svmlight, Parquet
    or NumPy; text also from a pipe, with [bold]-[/bold] for standard input.

    Columns are used as by [bold]toprank fit[/bold]: numbers with gaps, text, true and false. The first rows decide what
    a column holds, and that stays. Later a value that is no number counts as missing, and a category that is new tells
    nothing; notes at the end name both.

    [bold]Examples[/bold]

    toprank stream clicks.csv --target clicked --model clicks.toprank

    toprank stream clicks.csv -t clicked -m clicks.toprank --checkpoint clicks.run --on-bad-line skip

    zcat clicks-*.gz | toprank stream - -t clicked -m clicks.toprank
    """
    from toprank.cli.describing import MOST_COLUMNS, columns_text, positives_text
    from toprank.cli.model_files import check_writable, load_model
    from toprank.inspection import scorer_of
    from toprank.persistence import save
    from toprank.persistence.atomic import same_file
    from toprank.streams import stream_table
    from toprank.streams.run import last_line_waits

    output = Output(as_json=as_json, quiet=quiet)
    check_writable(model, "--model", data)
    if checkpoint is not None:
        check_writable(checkpoint, "--checkpoint", data, start)
        if same_file(checkpoint, model):
            raise ValueError(f"--checkpoint and --model are the same file {model!r}; name two")
    before = None if start is None else load_model(start, output)
    if before is not None and not hasattr(scorer_of(before.estimator_), "partial_fit"):
        raise ValueError(f"{start!r} cannot learn from a stream; give a model that toprank stream made")
    with output.noted_warnings():
        fitted, result = stream_table(
            data,
            getattr(toprank, method)(),
            target=target,
            positive=positive,
            id_column=id_column,
            ignore=ignore or (),
            start=before,
            types=options.types_by_column(types),
            first_rows=first_rows,
            scale=scale,
            fill_missing=fill_missing,
            on_bad_line=on_bad_line,
            batch=batch,
            window=window,
            max_fpr=max_fpr,
            checkpoint=checkpoint,
            every=every,
            resume=resume,
            grows=grows,
            random_state=seed,
            format=format,
            delimiter=delimiter,
            zero_based=zero_based,
            n_features=n_features,
            missing=missing or (),
            decimal=decimal,
            thousands=thousands,
            encoding=encoding,
            watcher=output,
            verbose=int(output.shows_progress),
        )
    if result.last_line_waits:
        output.note(last_line_waits(data))
    if result.resumed_at:
        output.note(f"went on from {checkpoint}, after {result.resumed_at:,} rows")
    if result.n_bad_lines:
        first_bad = result.bad_lines[0]
        reason = told(first_bad.reason)
        if result.resumed_at and not isinstance(first_bad.reason, Message):
            reason = reason.partition("; ")[0]  # of a checkpoint, with a remedy in the words of Python
        output.note(f"{result.n_bad_lines:,} bad lines were left out; the first: line {first_bad.line}, {reason}")
    save(fitted, model)
    summary = fitted.summary_
    record = {"rows": result.n_rows, "bad_lines": result.n_bad_lines, "history": result.history, "model": model}
    record["columns"] = summary.get("table", [])
    lines = [f"{summary['method']} learned from {result.n_rows:,} rows of {data}{positives_text(fitted)}"]
    if summary.get("table"):
        lines.append(columns_text(summary["table"], MOST_COLUMNS))
    output.result(record, "\n".join([*lines, _history(result.history), f"saved to {model}"]))


def _history(history: dict[str, Any], most: int = 12) -> str:
    """The last windows as text."""
    head = ["up to row", "positives", "AUC", "positives caught"]
    columns = ("rows", "positives", "auc", "tpr_at_fpr")
    rows = list(zip(*(history[name].tolist() for name in columns), strict=True))[-most:]
    cells = [[f"{n:,}", f"{positives:,}", number(auc, ".4f"), number(rate, ".4f")] for n, positives, auc, rate in rows]
    if not cells:
        return "  no window was measured"
    before = len(history["rows"]) - len(cells)
    note = f"\n  and {before:,} windows before these, which --json has" if before else ""
    return table([head, *cells]) + note
