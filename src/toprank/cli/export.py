"""``toprank export``: a saved model as an ONNX file."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.options import of_output
from toprank.cli.output import Output, guarded
from toprank.shown_text import printable

_SHOWN = 30


@guarded
def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A saved model.", show_default=False)],
    result: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="ONNX file to write.")],
    input_type: Annotated[
        str,
        of_output(
            "--input-type",
            metavar="TYPE",
            help="Type of the numbers in the input: float64, or float32, to which numbers are then rounded.",
        ),
    ] = "float64",
    check: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Rows on which scores and decisions of both are compared.", show_default=False
        ),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a saved model as an ONNX graph, for other languages and runtimes.

    The graph holds the whole model: gaps, categories, scaling, scores and the threshold. It has an input of shape
    (n, 1) for each column: numbers, with nan for missing and 1 and 0 for true and false, and texts, empty for missing.
    With --check it is run by onnxruntime on the rows of a file, and compared with the model.

    [bold]Examples[/bold]

    toprank export fraud.toprank --output fraud.onnx

    toprank export fraud.toprank -o fraud.onnx --check new.csv
    """
    from toprank.cli.model_files import check_writable, load_any
    from toprank.deployment import to_onnx
    from toprank.persistence.atomic import write_atomically

    output = Output(as_json=as_json, quiet=quiet)
    check_writable(result, "--output", model, check)
    fitted = load_any(model, output)
    graph = to_onnx(fitted, input_type=input_type)
    content = graph.SerializeToString()
    record: dict[str, Any] = {"output": result, "bytes": len(content), **_described(graph)}
    if check is not None:
        record["check"] = _checked(check, model, fitted, content)
    write_atomically(result, iter([content]))
    output.result(record, _text(record))


def _described(graph: Any) -> dict[str, Any]:
    """Inputs, outputs and metadata of a graph."""
    names = {1: "float32", 11: "float64", 8: "text", 7: "int64", 9: "bool"}
    told = {prop.key: prop.value for prop in graph.metadata_props}
    kinds = {one["name"]: one["kind"] for one in json.loads(told["columns"])}

    def values(infos: Any) -> list[dict[str, Any]]:
        found = []
        for one in infos:
            kind = one.type.tensor_type
            shape = [size.dim_value or size.dim_param for size in kind.shape.dim]
            found.append({"name": one.name, "type": names[kind.elem_type], "shape": shape, "kind": kinds.get(one.name)})
        return found

    return {"inputs": values(graph.graph.input), "outputs": values(graph.graph.output), "metadata": told}


def _checked(path: str, name: str, model: Any, content: bytes) -> dict[str, Any]:
    from toprank.deployment.checking import agreement
    from toprank.files import TableModel

    if not isinstance(model, TableModel):
        raise ValueError(f"--check is for models of toprank fit, and {name!r} holds a {type(model).__name__}")
    return {"file": path, **vars(agreement(path, model, content))}


def _text(record: dict[str, Any]) -> str:
    lines = [f"{record['output']}: ONNX, {record['bytes']:,} bytes"]
    for title in ("inputs", "outputs"):
        for number, one in enumerate(record[title][:_SHOWN]):
            shape = ", ".join(map(str, one["shape"]))
            kind = f", {one['kind']}" if one["kind"] else ""
            lines.append(f"  {title if not number else '':10}{printable(one['name'])}: {one['type']} ({shape}){kind}")
        if len(record[title]) > _SHOWN:
            lines.append(f"  {'':10}and {len(record[title]) - _SHOWN} more")
    told = record["metadata"]
    lines.append(f"  {'positive':10}{printable(told.get('positive', '-'))}: {told['rule']}")
    if "check" in record:
        check = record["check"]
        beside = f"{check['different']:,} decisions differ, of rows so close to the threshold"
        same = beside if check["different"] else "all decisions are equal"
        lines.append(f"  {'checked':10}{check['rows']:,} rows: scores differ by at most {check['largest']:.1e}, {same}")
    return "\n".join(lines)
