"""``toprank score``: scores and decisions for the rows of a file, in constant memory."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.output import Output, guarded


@guarded
def score(
    data: options.Data,
    model: options.Model,
    result: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="CSV file to write; - for standard output.")
    ],
    id_column: options.Id = None,
    top: Annotated[int | None, typer.Option(min=1, help="Write the best rows only, so many of them.")] = None,
    share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Write the best rows only, this share of them.")
    ] = None,
    safe_text: Annotated[
        bool,
        typer.Option(
            "--safe-text",
            help="Put ' before identifiers that a spreadsheet would take for a formula.",
            rich_help_panel="Output",
        ),
    ] = False,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Score the rows of a file.

    The output has a line for each row: its identifier (or its number), its score, and the decision: 1 if the score is
    above zero, the threshold of the model. With --top or --share only the best rows are written, best first, and of
    equal ones those that come first. The file may be larger than the memory. Columns are found by name; columns that
    the model does not know are not looked at.

    [bold]Examples[/bold]

    toprank score new.csv --model fraud.toprank --output scores.csv

    zcat new.csv.gz | toprank score - -m fraud.toprank -o -

    toprank score today.parquet -m fraud.toprank -o alerts.csv --top 200 --id transaction
    """
    from toprank.cli.model_files import check_writable, load_model
    from toprank.files import open_table
    from toprank.files.content import is_pipe
    from toprank.persistence.atomic import write_atomically

    output = Output(as_json=as_json, quiet=quiet)
    if top is not None and share is not None:
        raise typer.BadParameter("give either --top or --share, not both")
    if share == 0:
        raise typer.BadParameter("--share 0 would write no rows; use a share such as 0.01")
    to_stdout = result == "-"
    if to_stdout and as_json:
        raise typer.BadParameter("--json and --output - would both write to standard output; name a file")
    if share is not None and is_pipe(data):
        raise typer.BadParameter(f"--share counts the rows first, and {data!r} is read once; use --top, or save it")
    if not to_stdout:
        check_writable(result, "--output", data, model)
    fitted = load_model(model, output)
    source = open_table(data, format=format, delimiter=delimiter, zero_based=fitted.zero_based)
    _note_extra_columns(source, fitted, id_column, output)
    start = time.perf_counter()
    count = _Count()
    with output.progress(f"scoring {data}", source.size) as advance:
        budget = _budget(source, fitted, top, share, output)
        blocks = _blocks(source, fitted, id_column, budget, safe_text, count, advance)
        if to_stdout:
            _write_to_stdout(blocks)
        else:
            write_atomically(result, blocks)
    seconds = time.perf_counter() - start
    if to_stdout:
        return
    record = {**vars(count), "output": result, "seconds": seconds}
    text = f"{count.rows:,} rows scored in {seconds:.1f} s, {count.above:,} above the threshold"
    output.result(record, f"{text}; {count.written:,} written to {result}")


class _Count:
    """What was done so far."""

    def __init__(self) -> None:
        self.rows = 0
        self.above = 0
        self.written = 0


def _note_extra_columns(source: Any, model: Any, id_column: str | None, output: Output) -> None:
    from toprank.files.errors import listed

    if model.columns is None:
        return
    known = {*model.columns, model.target, model.id_column, id_column, *model.summary_.get("left_out", {})}
    extra = [name for name in source.names if name not in known]
    if extra:
        output.note(f"the model does not know these columns, and they are not looked at: {listed(extra)}")


def _budget(source: Any, model: Any, top: int | None, share: float | None, output: Output) -> int | None:
    """How many rows to write; a share needs a look at how many there are."""
    from toprank.ranking.tie_runs import ROUNDING

    if share is None:
        return top
    n_rows = _count_rows(source, model)
    budget = int(share * n_rows * (1 + ROUNDING))
    if not budget:
        output.note(f"--share {share:g} of {n_rows:,} rows is less than one row, so none is written; use --top 1")
    return budget


def _count_rows(source: Any, model: Any) -> int:
    from toprank.files.source import VERBATIM
    from toprank.files.training import check_kind, needed_kinds

    if check_kind(source, model):
        return sum(batch.X.shape[0] for batch in source.batches(model.n_features_in_, 0.0))
    first = next(iter(needed_kinds(source, model)))
    return sum(len(batch.frame) for batch in source.batches({first: VERBATIM}))


def _blocks(
    source: Any,
    model: Any,
    id_column: str | None,
    budget: int | None,
    safe_text: bool,
    count: _Count,
    advance: Callable[[int], None],
) -> Iterator[bytes]:
    """The bytes of the output."""
    from toprank.files.errors import TableError
    from toprank.files.scoring import Best, score_rows, without_formulas

    best = None if budget is None else Best(budget)
    for batch in score_rows(source, model, id_column):
        frame = without_formulas(batch.frame()) if safe_text else batch.frame()
        header = count.rows == 0
        count.rows += len(frame)
        count.above += int(frame["decision"].sum())
        if best is None:
            count.written += len(frame)
            yield _as_csv(frame, header)
        else:
            best.add(frame)
        advance(batch.position)
    if count.rows == 0:
        raise TableError(f"{source.path!r} has no rows; give a file with rows")
    if best is not None:
        count.written = len(best.frame())
        yield _as_csv(best.frame(), True)


def _as_csv(frame: Any, header: bool) -> bytes:
    stream = io.BytesIO()
    frame.write_csv(stream, include_header=header)
    return stream.getvalue()


def _write_to_stdout(blocks: Iterable[bytes]) -> None:
    stream = typer.get_binary_stream("stdout")
    for block in blocks:
        stream.write(block)
    stream.flush()
