"""``toprank info``: about a saved model, or about the installation."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable
from typing import Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.output import Output, guarded
from toprank.plain_data import plain
from toprank.shown_text import printable

_EXTRAS = {
    "cli": ("typer", "rich", "polars"),
    "plot": ("matplotlib",),
    "report": ("jinja2",),
    "onnx": ("onnx", "onnxruntime", "skl2onnx"),
    "boost": ("lightgbm", "xgboost"),
}


@guarded
def info(
    model: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A saved model, or a table; without it, the installation."),
    ] = None,
    missing: options.Missing = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what is known of a saved model, of the columns of a table, or of the installation.

    Of a table, as of the one that a model was fitted to, all columns are listed: the type, missing values, and what a
    fit does with it.

    [bold]Examples[/bold]

    toprank info fraud.toprank

    toprank info fraud.toprank --json

    toprank info train.csv --decimal ,

    toprank info
    """
    output = Output(as_json=as_json, quiet=quiet)
    if model is None:
        record = _installation()
        lines = [f"toprank {record['toprank']}, Python {record['python']}"]
        lines += [f"  {name:15}{version}" for name, version in record["packages"].items()]
        lines += [
            f"  extra {name:9}{'installed' if not absent else 'not installed: pip install ' + repr(f'toprank[{name}]')}"
            for name, absent in record["missing"].items()
        ]
        output.result(record, "\n".join(lines))
        return
    from toprank.files.formats import is_name_of_table

    if is_name_of_table(model):
        _describe_table(model, output, missing=missing or (), decimal=decimal, thousands=thousands, encoding=encoding)
        return
    record = _model(model, output)
    output.result(record, _described(record, model))


def _describe_table(path: str, output: Output, **reading: Any) -> None:
    from toprank.cli.describing import columns_text
    from toprank.files import open_table
    from toprank.files.column_list import list_columns
    from toprank.files.svmlight_file import SvmlightTable

    source = open_table(path, **reading)
    if isinstance(source, SvmlightTable):
        raise ValueError(f"{path!r} is an svmlight file, whose columns have no names; there is nothing to list")
    with output.progress(f"reading {path}", source.size) as advance:
        n_rows, listed, notes = list_columns(source, advance)
    for note in notes:
        output.note(note)
    record = {"file": path, "rows": n_rows, "columns": listed}
    output.result(record, f"{path}: {n_rows:,} rows, {len(listed):,} columns\n{columns_text(listed)}")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _installation() -> dict[str, Any]:
    from toprank import __version__

    packages = {name: _version(name) for name in ("numpy", "scipy", "scikit-learn", "numba", "polars")}
    missing = {extra: [name for name in names if _version(name) is None] for extra, names in _EXTRAS.items()}
    return {"toprank": __version__, "python": platform.python_version(), "packages": packages, "missing": missing}


def _model(path: str, output: Output) -> dict[str, Any]:
    """What is known of a model: what its file says at a glance, or, of earlier versions, the model itself."""
    return _at_a_glance(path, output) or _loaded(path, output)


def _at_a_glance(path: str, output: Output) -> dict[str, Any] | None:
    from toprank.files.summary_state import SUMMARY
    from toprank.persistence.glance import glance
    from toprank.saved_state import StateError

    if not os.path.isfile(path):
        return None
    with output.noted_warnings():
        found = glance(path, "toprank.tables.model.TableModel", ("target", "positive", "id_column", "summary_"))
    if found is None:
        return None
    state = found["state"]
    summary = state.get("summary_", {})
    try:
        SUMMARY.check(summary, {})
    except StateError:  # a load says what is wrong
        return None
    return _record(found["about"], state.get, summary, found["versions"])


def _loaded(path: str, output: Output) -> dict[str, Any]:
    from toprank.cli.model_files import load_any
    from toprank.files import TableModel
    from toprank.inspection import about
    from toprank.persistence.container import read_container

    model = load_any(path, output)
    state = vars(model) if isinstance(model, TableModel) else {}
    versions = read_container(path).header.get("versions", {})
    return _record(about(model), state.get, state.get("summary_", {}), versions)


def _record(
    about: dict[str, Any], known: Callable[[str], Any], summary: dict[str, Any], versions: dict[str, Any]
) -> dict[str, Any]:
    return {
        **about,
        "target": known("target"),
        "positive": known("positive"),
        "id": known("id_column"),
        "summary": plain(summary),
        "versions": versions,
    }


def _described(record: dict[str, Any], path: str) -> str:
    from toprank.cli.describing import columns_text, facts

    steps = list(map(str, record["steps"]))
    lines = [f"{path}: {record['class']}" + (f" of {' → '.join(steps)}" if steps != [record["class"]] else "")]
    summary = record["summary"]
    if "data" in summary:  # else it is not of the command line
        data = summary["data"]
        lines.append(f"  {'data':13}{data['learned_from']:,} of {data['rows']:,} rows of {printable(data['file'])}")
        lines.append(f"  {'fitted':13}{summary['fitted']}")
        positive = "" if record["positive"] is None else f"positive is {record['positive']}"
        lines.append(f"  {'target':13}{printable(', '.join(filter(None, (record['target'], positive))))}")
        lines += [f"  {title:13}{text}" for title, text in facts(summary) if text]
        if summary.get("table"):
            lines.append(columns_text(summary["table"]))
        elif summary["columns"]:
            listed = ", ".join(f"{name} ({kind})" for name, kind in list(summary["columns"].items())[:20])
            lines.append(f"  {'names':13}{printable(listed)}{', …' if len(summary['columns']) > 20 else ''}")
    else:
        lines += [f"  {name:24}{printable(str(value))}" for name, value in record["parameters"].items()]
        lines.append(f"  {'certificate':24}{record['certificate']}")
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    lines.append(f"  {'written by':13}{printable(versions)}")
    return "\n".join(lines)
