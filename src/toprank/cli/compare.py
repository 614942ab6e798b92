"""``toprank compare``: several methods on the same folds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toprank.cli import methods, options
from toprank.cli.options import of_method, one_of
from toprank.cli.output import Output, guarded, number, table, told


@guarded
def compare(
    data: options.Data,
    target: options.Target = None,
    positive: options.Positive = None,
    id_column: options.Id = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    types: options.Types = None,
    method: Annotated[
        list[str] | None,
        one_of(
            methods.NAMES,
            help=f"Method to compare; may be repeated. By default {', '.join(methods.COMPARED)}.",
        ),
    ] = None,
    max_fpr: Annotated[float, of_method(help="False positive rate to measure at and to train for.")] = 0.01,
    alpha: Annotated[
        float | None, of_method(help="Penalty of all methods that have one; LogisticRegression keeps its own.")
    ] = None,
    search: Annotated[bool, of_method("--search", help="Choose the penalty inside each fold.")] = False,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    time: options.Time = None,
    in_order: options.InOrder = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    zero_based: options.ZeroBased = False,
    missing: options.Missing = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare methods by cross-validation, with paired tests.

    All methods see the same folds, which are random, or with --time or --in-order blocks of neighbours in time. p is
    the corrected t-test of Nadeau and Bengio against the best mean, with Holm's correction; gap is the worst
    certificate over the folds.

    [bold]Examples[/bold]

    toprank compare train.csv --target fraud

    toprank compare train.csv -t fraud --method forest --method linear

    toprank compare train.csv -t fraud --method TopPush --method TauFPL --max-fpr 0.001 --jobs 2
    """
    import toprank.selection
    from toprank.files import open_table
    from toprank.files.beside import Beside
    from toprank.files.columns import prepared
    from toprank.files.times import blocks_of_time
    from toprank.files.watched_rows import rows_to_learn

    output = Output(as_json=as_json, quiet=quiet)
    methods.alert_rule(max_fpr=max_fpr)
    chosen = list(dict.fromkeys(map(methods.full_name, method or methods.COMPARED)))
    written: dict[str, Any] = {"missing": missing or (), "decimal": decimal, "thousands": thousands}
    written |= {"format": format, "delimiter": delimiter, "zero_based": zero_based, "encoding": encoding}
    source = open_table(data, **written)
    columns: dict[str, Any] = {"ignore": ignore or (), "categorical": categorical or ()}
    columns["types"] = options.types_by_column(types)
    columns["beside"] = Beside(time, in_order=in_order)
    rows = rows_to_learn(source, target, output, positive=positive, id_column=id_column, **columns)
    least = int(min(rows.y.sum(), (1 - rows.y).sum()))
    if least < folds:
        raise ValueError(
            f"{folds} folds need as many rows of each class, and one has {least}; use --folds {max(least, 2)}"
        )
    cv = folds if rows.times is None else blocks_of_time(rows.times, rows.y, folds)
    models = {name: _model(name, rows, max_fpr, alpha, search, seed) for name in chosen}
    X = rows.X if rows.columns is None else prepared(rows.X, rows.columns.used)
    metrics = [("tpr_at_fpr", {"max_fpr": max_fpr}), "positives_at_top", "roc_auc"]
    result = toprank.selection.compare(
        models, X, rows.y, metrics=metrics, cv=cv, n_jobs=jobs, random_state=seed, verbose=int(output.shows_progress)
    )
    for row in result.rows[: len(models)]:
        if row["error"]:
            output.note(f"{row['estimator']} failed in {row['n_failed']} folds: {told(row['error'])}")
        if row["warning"]:
            output.note(f"{row['estimator']} ({row['n_warnings']} warnings): {told(row['warning'])}")
    if result.best() is None:
        raise ValueError("every method failed; the notes above say why")
    text = "\n\n".join(_table(result, metric) for metric in result.metrics)
    record = {"best": result.best(), "metrics": result.metrics, "rows": result.rows, "folds": result.fold_scores}
    output.result(record, text)


def _model(name: str, rows: Any, max_fpr: float, alpha: float | None, search: bool, seed: int) -> Any:
    from toprank.files.estimators import complete, pipeline_of

    ranker = methods.ranker(name, seed=seed, max_fpr=max_fpr, alpha=None if name == methods.PEER else alpha)
    pipeline = pipeline_of(None if rows.columns is None else rows.columns.used, ranker)
    return complete(pipeline, search=search and methods.has_penalty_to_search(name), seed=seed)


def _table(result: Any, metric: str) -> str:
    """The rows of one metric, best first."""
    rows = [row for row in result.rows if row["metric"] == metric]
    rows.sort(key=lambda row: float("inf") if row["mean"] != row["mean"] else -row["mean"])
    best = result.best(metric)
    cells = [
        [
            row["estimator"],
            number(row["mean"], ".4f"),
            number(row["std"], ".4f"),
            "best" if row["estimator"] == best else number(row["p_adjusted"], ".3f"),
            number(row["fit_seconds"], ".2f"),
            number(row["dual_gap"], ".0e"),
        ]
        for row in rows
    ]
    return f"{metric}\n" + table([["method", "mean", "std", "p (Holm)", "fit s", "gap"], *cells])
