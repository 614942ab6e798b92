"""``toprank score``: scores and decisions for the rows of a file, in constant memory."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from toprank.cli import options
from toprank.cli.options import of_output
from toprank.cli.output import Output, guarded


@guarded
def score(
    data: options.Data,
    model: options.Model,
    result: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="CSV or Parquet file to write; - for standard output."),
    ],
    id_column: options.Id = None,
    top: Annotated[int | None, typer.Option(min=1, help="Write the best rows only, so many of them.")] = None,
    share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Write the best rows only, this share of them.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, metavar="ROWS", help="Write the best rows only, so many --per day.")
    ] = None,
    per: Annotated[
        str | None,
        typer.Option(
            metavar="PERIOD", help="Period of --budget: hour, day, week, month, or a number; that of the fit."
        ),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the time of a row; that of the fit.")
    ] = None,
    keep: Annotated[
        str | None,
        of_output(metavar="COLUMNS", help="Columns of the file to write too: all, or names such as amount,country."),
    ] = None,
    reasons: Annotated[
        int, of_output(min=0, metavar="NUMBER", help="Columns with what raises a row most, so many of them.")
    ] = 0,
    safe_text: Annotated[
        bool,
        of_output("--safe-text", help="Put ' before texts that a spreadsheet would take for a formula."),
    ] = False,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Score the rows of a file.

    The output has a line for each row: its identifier (or its number), its score, and the decision: 1 if the score is
    above zero, the threshold of the model. With --top or --share only the best rows are written, best first, and of
    equal ones those that come first. With --budget 200 --per day they are the best 200 of each day, day by day, with
    their times. With --keep columns of the file follow. The file may be larger than the memory.
    Columns are found by name; columns that the model does not know are not looked at.

    With --reasons there are columns reason_1, reason_2, … such as "job = student (+0.414)": what raises a row in the
    list most, and by how much, against the mean of the training rows. With --top, --share or --budget all rows that
    are written have them, else those above the threshold. They are for linear models and forests.

    [bold]Examples[/bold]

    toprank score new.csv --model fraud.toprank --output scores.csv

    zcat new.csv.gz | toprank score - -m fraud.toprank -o -

    toprank score today.parquet -m fraud.toprank -o alerts.csv --top 200 --id transaction --keep amount,country

    toprank score today.parquet -m fraud.toprank -o alerts.csv --top 200 --reasons 3

    toprank score week.csv -m fraud.toprank -o alerts.parquet --budget 200 --per day
    """
    from toprank.cli.model_files import check_writable, load_model
    from toprank.files import score_file
    from toprank.files.content import is_pipe

    output = Output(as_json=as_json, quiet=quiet)
    if top is not None and share is not None:
        raise typer.BadParameter("give either --top or --share, not both")
    if share == 0:
        raise typer.BadParameter("--share 0 would write no rows; use a share such as 0.01")
    to_stdout = result == "-"
    if to_stdout and as_json:
        raise typer.BadParameter("--json and --output - would both write to standard output; name a file")
    if is_pipe(data) and (share is not None or budget is not None):
        option = "--share counts the rows" if share is not None else "--budget reads the times"
        raise typer.BadParameter(f"{option} first, and {data!r} is read once; use --top, or save it")
    if not to_stdout:
        check_writable(result, "--output", data, model)
    fitted = load_model(model, output)
    start = perf_counter()
    count = score_file(
        data,
        fitted,
        typer.get_binary_stream("stdout") if to_stdout else result,
        id_column=id_column,
        top=top,
        share=share,
        budget=budget,
        per=per,
        time=time,
        keep="all" if keep == "all" else [name for name in (keep or "").split(",") if name],
        reasons=reasons,
        safe_text=safe_text,
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        watcher=output,
    )
    seconds = perf_counter() - start
    if to_stdout:
        return
    record = {**vars(count), "output": result, "seconds": seconds}
    text = f"{count.rows:,} rows scored in {seconds:.1f} s, {count.above:,} above the threshold"
    output.result(record, f"{text}; {count.written:,} written to {result}")
