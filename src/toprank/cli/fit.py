"""``toprank fit``: from a table to a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toprank.cli import methods, options
from toprank.cli.options import of_method, one_of
from toprank.cli.output import Output, guarded


@guarded
def fit(
    data: options.Data,
    model: options.NewModel,
    target: options.Target = None,
    positive: options.Positive = None,
    id_column: options.Id = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    types: options.Types = None,
    method: Annotated[
        str | None,
        one_of(
            methods.NAMES,
            help="What to optimise; forest often finds more at the top, and takes longer.",
            show_default=methods.DEFAULT,
        ),
    ] = None,
    tau: methods.Tau = None,
    k: methods.TopNegatives = None,
    alpha: methods.Alpha = None,
    kernel: methods.Kernel = None,
    gamma: methods.Gamma = None,
    surrogate: methods.Surrogate = None,
    search: Annotated[bool, of_method("--search", help="Choose the penalty by cross-validation.")] = False,
    max_fpr: methods.MaxFpr = None,
    confidence: methods.Confidence = 0.95,
    share: methods.Share = None,
    budget: methods.Budget = None,
    per: options.Per = None,
    time: options.Time = None,
    in_order: options.InOrder = False,
    amount: options.Amount = None,
    holdout: Annotated[
        float,
        typer.Option(
            min=0, max=0.9, help="Share of the rows kept for testing, the last ones by --time; 0: learn from all."
        ),
    ] = 0.2,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    zero_based: options.ZeroBased = False,
    missing: options.Missing = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    out_of_core: Annotated[
        bool | None,
        typer.Option(
            "--out-of-core/--in-memory",
            help="Leave the rows in the file, Parquet or .npy, and read it again for each pass; by default where "
            "memory would not do.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a model to a table and save it.

    Numbers are scaled, and their missing values (an empty field, NA, N/A, NaN, None, null, ?, -) are replaced by the
    median and marked in a column of their own. Up to one value in a hundred that is no number counts as missing, and a
    note names it. Text becomes one column of 0 and 1 for each value, and missing is a value too. Dates and free text
    are left out. A share of the rows is held out, and the model is measured on it: random rows, or the last ones where
    --time or --in-order is given. Then the latest of the others set the threshold, too, and what it promises holds for
    rows like them.

    A forest (--method forest) takes numbers, gaps and text as they are: nothing is scaled, and no columns are added. It
    often finds more at the top, in more time: of 56,000 card payments it took 31 s of processor time and found 0.70 of
    the fraud at 1 % false positives, the linear method 3 s and 0.56.

    Ctrl-C ends the fit early: if there is a model already, the best so far is measured and saved, with exit code 130.

    [bold]Examples[/bold]

    toprank fit train.csv --target fraud --model fraud.toprank

    toprank fit train.csv -t fraud -m fraud.toprank --method forest

    toprank fit train.csv -t fraud -m fraud.toprank --max-fpr 0.01 --search --id transaction

    toprank fit payments.csv -t fraud -m fraud.toprank --time when --budget 200 --per day --amount amount

    toprank fit export.csv -t fraud -m fraud.toprank --decimal , --missing -999 --types branch=category

    toprank fit churn.parquet -t left --positive yes -m churn.toprank --method TauFPL --tau 0.05

    toprank fit payments.parquet -t fraud -m fraud.toprank --out-of-core
    """
    from toprank.cli.describing import described
    from toprank.cli.model_files import check_writable
    from toprank.files import fit_file
    from toprank.inspection import was_interrupted
    from toprank.persistence import save

    output = Output(as_json=as_json, quiet=quiet)
    check_writable(model, "--model", data)
    named, method = method is not None, method or methods.DEFAULT
    methods.check_around(method, search=search)
    asked: dict[str, Any] = {"max_fpr": max_fpr, "confidence": confidence, "share": share, "budget": budget, "per": per}
    rule = methods.alert_rule(time, in_order, **asked)
    given: dict[str, Any] = {"tau": tau, "k": k, "alpha": alpha, "surrogate": surrogate}
    given |= {"kernel": kernel, "gamma": gamma}

    def ranker(share: float | None = share) -> Any:
        return methods.ranker(method, seed=seed, jobs=jobs, max_fpr=max_fpr, share=share, **given)

    ranker()  # refuses wrong options before the data are read
    with output.noted_warnings():
        fitted = fit_file(
            data,
            ranker,
            target=target,
            positive=positive,
            id_column=id_column,
            ignore=ignore or (),
            categorical=categorical or (),
            types=options.types_by_column(types),
            search=search,
            **vars(rule),
            time=time,
            in_order=in_order,
            amount=amount,
            holdout=holdout,
            random_state=seed,
            n_jobs=jobs,
            format=format,
            delimiter=delimiter,
            zero_based=zero_based,
            missing=missing or (),
            decimal=decimal,
            thousands=thousands,
            encoding=encoding,
            out_of_core=out_of_core,
            watcher=output,
        )
    save(fitted, model)
    interrupted = was_interrupted(fitted.estimator_)
    record = {**fitted.summary_, "model": model, "interrupted": interrupted}
    hint = None if named or kernel or fitted.columns is None else methods.FOREST_HINT
    output.result(record, described(fitted, data, model, hint))
    if interrupted:
        output.note("stopped by the keyboard: the model that is saved is the best so far")
        raise typer.Exit(130)
