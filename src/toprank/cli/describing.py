"""Models and measures in words, for people."""

from __future__ import annotations

from typing import Any

from toprank.cli.output import table
from toprank.files.periods import per_words
from toprank.shown_text import printable, shell_word

MOST_COLUMNS = 25


def measures_text(record: dict[str, Any]) -> str:
    """Counts and a table of measures, of their plain record."""
    head = ["measure", "value", f"{100 * record['confidence']:g} % interval"]
    lines = [
        [
            one["title"],
            "nan" if one["value"] is None else f"{one['value']:.4f}",
            "" if one["lower"] is None else f"{one['lower']:.4f} to {one['upper']:.4f}",
        ]
        for one in record["measures"]
    ]
    counts = (
        f"  {record['alerts']:,} of {record['rows']:,} rows are above the threshold: {record['caught']:,} of "
        f"{record['positives']:,} positives caught, {record['alerts'] - record['caught']:,} false alarms\n"
    )
    return counts + _per_period_text(record.get("per_period")) + table([head, *lines])


def _per_period_text(record: dict[str, Any] | None) -> str:
    """A line on alerts a day."""
    if record is None:
        return ""
    per = per_words(record["per"])
    name = record["per"] if isinstance(record["per"], str) else "period"
    text = f"  {record['mean']:,.1f} alerts {per} on average over {record['periods']:,.1f} {name}s"
    if "largest" in record:
        text += (
            f"; {record['whole_periods']:,} whole {name}s have {record['smallest']:,} to {record['largest']:,}, half "
            f"of them at most {record['median']:,g}"
        )
    return f"{text}; {record['caught']:,.1f} positives {per} are among them\n"


def compared_text(record: dict[str, Any]) -> str:
    """Tables of the measures of columns of scores, and of the differences of the first to the others."""
    names = list(record["columns"])
    level = f"{100 * record['confidence']:g} %"
    text = _measure_table({printable(name): record["columns"][name] for name in names}, ".4f")
    others = {f"{printable(names[0])} - {printable(name)}": found for name, found in record["differences"].items()}
    lines = [text, f"  in brackets the {level} interval"]
    if others:
        lines += ["differences on the same rows, with paired intervals:", _measure_table(others, "+.4f")]
    return "\n".join(lines)


def _measure_table(columns: dict[str, list[dict[str, Any]]], form: str) -> str:
    """A line for each measure, with its value and interval in each column."""
    titles = [one["title"] for one in next(iter(columns.values()))]
    cells = [[_with_interval(found[i], form) for found in columns.values()] for i in range(len(titles))]
    return table([["measure", *columns], *([title, *row] for title, row in zip(titles, cells, strict=True))])


def _with_interval(one: dict[str, Any], form: str) -> str:
    if one["value"] is None:
        return "nan"
    limits = "" if one["lower"] is None else f" ({one['lower']:{form}} to {one['upper']:{form}})"
    return f"{one['value']:{form}}{limits}"


def described(model: Any, data: str, path: str, hint: str | None = None) -> str:
    """A short summary for people, with a hint before the last line."""
    summary = model.summary_
    rows = summary["data"]
    lines = [
        f"{summary['method']} fitted to {rows['learned_from']:,} of {rows['rows']:,} rows of {data}"
        f"{positives_text(model)}, in {summary['seconds']:.1f} s",
        *(f"  {title:13}{text}" for title, text in facts(summary) if text),
    ]
    if summary.get("table"):
        lines.append(columns_text(summary["table"], MOST_COLUMNS))
    if summary["held_out"] is not None:
        which = "last " if rows.get("in_order") else ""
        lines.append(f"measured on the {which}{summary['held_out']['rows']:,} rows{_by(model)} held out:")
        lines.append(measures_text(summary["held_out"]))
    lines += [] if hint is None else [hint]
    lines.append(f"saved to {path}; next: toprank report {shell_word(data)} --model {shell_word(path)}")
    return "\n".join(lines)


def positives_text(model: Any) -> str:
    """How many of the rows of a fit are positive, by the user's own label."""
    rows = model.summary_["data"]
    return f", of which {share_text(rows['positives'], rows['rows'], model.target, model.positive)}"


def share_text(positives: int, rows: int, target: str | None, positive: str | None) -> str:
    """How many rows are positive; by the label, unless it says no more than that."""
    label = (
        "" if target is None or positive in (None, "1", "true") else f" ({printable(target)} is {printable(positive)})"
    )
    return f"{positives:,} ({100 * positives / rows:.2g} %) are positive{label}"


def _by(model: Any) -> str:
    return "" if model.time is None else f" by {printable(model.time)}"


def facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Titles and texts about a model."""
    kinds = list(summary["columns"].values())
    names = {
        "number": ("number", "numbers"),
        "truth": ("true/false", "true/false"),
        "category": ("category", "categories"),
    }
    counted = [f"{kinds.count(kind)} {names[kind][kinds.count(kind) > 1]}" for kind in names if kind in kinds]
    used = ", ".join(counted) + f" → {summary['n_features']} features" if kinds else f"{summary['n_features']} features"
    apart = not summary.get("table")  # else the list of columns says it
    missing = ", ".join(f"{printable(name)} ({count:,} rows)" for name, count in _first(summary["missing"]))
    left_out = [printable(f"{name}: {reason}") for name, reason in _first(summary["left_out"]) if apart]
    parameters = ", ".join(
        f"{name}={f'{value:.4g}' if isinstance(value, float) else value}"
        for name, value in summary["parameters"].items()
    )
    searched = "" if summary["search"] is None else f", chosen by search (score {summary['search']['score']:.3f})"
    gap = summary["certificate"]
    certificate = "none for this method" if gap is None else (
        f"duality gap {gap:.1e}: no model of this kind has an objective lower by more than {100 * gap:.1g} %"
    )  # fmt: skip
    return [
        ("columns", used),
        ("missing in", missing),
        *(("left out", text) for text in left_out),
        ("parameters", parameters + searched),
        ("certificate", certificate),
        ("threshold", _threshold_text(summary["threshold"])),
    ]


def columns_text(listed: list[dict[str, Any]], most: int | None = None) -> str:
    """The list of columns as a table, of which the first so many are shown."""
    rows = [["column", "type", "missing", "what is done with it"]]
    for one in listed[:most]:
        missing = "" if one["missing"] is None else f"{one['missing']:,}"
        rows.append([printable(str(one["name"])), one["type"], missing, printable(str(one["done"]))])
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        f"  {name.ljust(widths[0])}  {kind.ljust(widths[1])}  {missing.rjust(widths[2])}  {done}".rstrip()
        for name, kind, missing, done in rows
    ]
    more = 0 if most is None else len(listed) - most
    return "\n".join([*lines, *([f"  … and {more:,} more, which toprank info MODEL lists"] if more > 0 else [])])


def _first(items: dict[str, Any], most: int = 8) -> list[tuple[str, Any]]:
    return list(items.items())[:most]


def _threshold_text(threshold: dict[str, Any]) -> str:
    latest = "latest " if threshold.get("latest") else ""
    if threshold["max_fpr"] is not None:
        return (
            f"at most {100 * threshold['max_fpr']:g} % false positives with {100 * threshold['confidence']:g} % "
            f"confidence, for rows like the {threshold['n_calibration']:,} {latest}negatives set aside for it"
        )
    if threshold.get("share") is None:
        return "the one of the method itself; for a bound on false alarms use toprank fit --max-fpr"
    share, of = f"{100 * threshold['share']:.2g} %", f"the {threshold['n_calibration']:,} {latest}rows set aside for it"
    if threshold.get("budget") is None:
        return f"{share} of the rows above it on average, for rows like {of}"
    per = per_words(threshold["per"])
    return (
        f"{threshold['budget']:,g} alerts {per} on average: {share} of the rows, for rows like {of}, of which there "
        f"are {threshold['rows_per_period']:,.0f} {per}"
    )
