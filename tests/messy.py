"""Tables as real exports are: identifiers, dates, separators, spellings of missing, stray marks, a leak.

A table is a dict of columns, each a list of the texts that stand in the file. `cards` makes one of payments, `bank` one
of the bank marketing data; the functions `with_…` make a copy messier, `write` writes it in one of the ways of the
world, and `write_all` writes a file of each kind. As a script: ``python tests/messy.py FOLDER [--rows 20000]``.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import gzip
import io
import os
from pathlib import Path

import numpy as np

Table = dict[str, list[str]]
FIVE_MISSING = ("", "N/A", "None", "?", "-")
_START = datetime.datetime(2026, 3, 1)
_CARD_NUMBERS = ("amount", "balance", "age", "minutes_since_last")


def cards(n_rows: int = 20_000, seed: int = 0, share: float = 0.02) -> Table:
    """Payments in the order of time, with numbers, text, a code, true and false, an identifier, and labels fraud/ok."""
    random = np.random.default_rng(seed)
    fraud = random.random(n_rows) < share
    hours = np.sort(random.random(n_rows)) * 24 * 30
    amount = np.exp(random.normal(3.5 + 1.2 * fraud, 1.0))
    balance = np.exp(random.normal(7.5 - 0.8 * fraud, 0.8))
    age = np.clip(random.normal(45 - 4 * fraud, 15), 18, 95).astype(int)
    minutes = random.exponential(np.where(fraud, 60.0, 600.0))
    chosen = random.random((3, n_rows))
    country = np.where(chosen[0] < np.where(fraud, 0.45, 0.06), "RO", np.where(chosen[0] < 0.7, "DE", "FR"))
    channel = np.where(chosen[1] < np.where(fraud, 0.75, 0.3), "online", np.where(chosen[1] < 0.8, "shop", "cash"))
    code = random.choice(["5411", "5812", "5999", "4829", "7995"], n_rows)
    return {
        "payment": [f"P{i:07d}" for i in random.permutation(n_rows)],
        "time": [f"{_START + datetime.timedelta(hours=float(hour)):%Y-%m-%d %H:%M:%S}" for hour in hours],
        "amount": [f"{value:.2f}" for value in amount],
        "balance": [f"{value:.2f}" for value in balance],
        "age": [str(value) for value in age],
        "minutes_since_last": [f"{value:.1f}" for value in minutes],
        "merchant_code": [str(value) for value in code],
        "country": country.tolist(),
        "channel": channel.tolist(),
        "abroad": ["true" if value else "false" for value in chosen[2] < np.where(fraud, 0.5, 0.1)],
        "label": ["fraud" if value else "ok" for value in fraud],
    }


def bank(folder: str | os.PathLike[str] | None = None) -> Table:
    """The bank marketing data, with text where the file of numbers has a column of 0 and 1 for each value."""
    folder = Path(folder or os.environ["TOPRANK_DATA"])
    with np.load(folder / "bank_marketing.npz", allow_pickle=False) as content:
        X, y, names = content["X"], content["y"], content["feature_names"].tolist()
    table: Table = {}
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        groups.setdefault(name.partition("=")[0], []).append(place)
    for name, places in groups.items():
        if len(places) == 1:
            table[name] = [f"{value:g}" if abs(value) < 1e5 else f"{value:.0f}" for value in X[:, places[0]]]
        else:
            values = np.array([names[place].partition("=")[2] for place in places])
            table[name] = values[X[:, places].argmax(axis=1)].tolist()
    return {**table, "subscribed": y.tolist()}


def part(table: Table, rows: slice) -> Table:
    """Some of the rows."""
    return {name: values[rows] for name, values in table.items()}


def with_ids(table: Table, name: str = "id") -> Table:
    """A first column with another number in each row."""
    n_rows = len(next(iter(table.values())))
    return {name: [str(100_000 + i) for i in range(n_rows)], **table}


def with_dates(table: Table, name: str = "when") -> Table:
    """A column of dates that rise, over three months."""
    n_rows = len(next(iter(table.values())))
    days = (np.arange(n_rows) * 90 // max(n_rows, 1)).tolist()
    return {**table, name: [f"{_START + datetime.timedelta(days=day):%Y-%m-%d}" for day in days]}


def with_stray_marks(table: Table, marks: dict[str, str], n_rows: int = 1, seed: int = 0) -> Table:
    """A mark in a few rows of some columns: ``{"age": "?", "duration": "-"}``."""
    random, messy = np.random.default_rng([seed, 1]), dict(table)  # not that of `cards`
    for name, mark in marks.items():
        messy[name] = list(table[name])
        for row in random.choice(len(messy[name]), n_rows, replace=False):
            messy[name][row] = mark
    return messy


def with_missing(
    table: Table, columns: tuple[str, ...], spellings: tuple[str, ...] = FIVE_MISSING, share: float = 0.1, seed: int = 0
) -> Table:
    """Missing values in some columns, spelled in several ways."""
    random, messy = np.random.default_rng([seed, 1]), dict(table)  # not that of `cards`
    for name in columns:
        absent, word = random.random(len(table[name])) < share, random.integers(len(spellings), size=len(table[name]))
        messy[name] = [
            spellings[w] if is_absent else value for value, is_absent, w in zip(table[name], absent, word, strict=True)
        ]
    return messy


def with_separators(table: Table, columns: tuple[str, ...], thousands: str = ",", decimal: str = ".") -> Table:
    """Numbers as 1,234.56, or as 1.234,56 with ``thousands=".", decimal=","``."""
    swap = str.maketrans({",": thousands, ".": decimal})
    messy = dict(table)
    for name in columns:
        messy[name] = [_grouped(value).translate(swap) for value in table[name]]
    return messy


def _grouped(value: str) -> str:
    try:
        float(value)
    except ValueError:
        return value
    whole, point, digits = value.partition(".")
    return f"{int(whole):,}{point}{digits}"


def with_leak(table: Table, target: str, positive: str, name: str = "chargeback", noise: float = 0.002) -> Table:
    """A column that is known only afterwards: it says the label in all but a few rows."""
    wrong = np.random.default_rng([0, 2]).random(len(table[target])) < noise
    leak = [str(int((label == positive) != flipped)) for label, flipped in zip(table[target], wrong, strict=True)]
    return {**{key: values for key, values in table.items() if key != target}, name: leak, target: table[target]}


def write(
    path: str | os.PathLike[str], table: Table, delimiter: str = ",", *, bom=False, crlf=False, encoding="utf-8"
) -> Path:
    """Write a CSV file; one whose name ends in .gz is compressed."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\r\n" if crlf else "\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    content = (("\ufeff" if bom else "") + stream.getvalue()).encode(encoding)
    path = Path(path)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def write_all(
    folder: str | os.PathLike[str], table: Table, numbers: tuple[str, ...], target: str, positive: str
) -> dict[str, Path]:
    """A file of each kind: clean, one kind of mess each, and "all" with everything at once; by name.

    `numbers` names at least two columns of numbers, the first of which gets ``?`` once and the second ``-``.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    marks = dict(zip(numbers, ("?", "-"), strict=False))
    comma = {"thousands": ".", "decimal": ","}
    every = with_leak(with_missing(with_dates(with_ids(table)), numbers), target, positive)
    every = with_separators(with_stray_marks(every, dict.fromkeys(numbers, "see file")), numbers)
    kinds = {
        "clean": table,
        "ids": with_ids(table),
        "dates": with_dates(table),
        "stray": with_stray_marks(table, marks),
        "stray_words": with_stray_marks(table, dict.fromkeys(numbers, "see file"), 3),
        "missing": with_missing(table, numbers),
        "thousands": with_separators(table, numbers),
        "leak": with_leak(table, target, positive),
    }
    written = {name: write(folder / f"{name}.csv", kind) for name, kind in kinds.items()}
    written["bom"] = write(folder / "bom.csv", table, bom=True)
    written["crlf"] = write(folder / "crlf.csv", table, crlf=True)
    written["semicolon"] = write(folder / "semicolon.csv", table, ";")
    written["decimal_comma"] = write(folder / "decimal_comma.csv", with_separators(table, numbers, **comma), ";")
    written["gz"] = write(folder / "packed.csv.gz", table)
    latin = {**table, "größe": [("groß", "klein")[i % 2] for i in range(len(table[target]))]}
    written["latin1"] = write(folder / "latin1.csv", latin, encoding="latin-1")
    written["all"] = write(folder / "all.csv.gz", every, ";", bom=True, crlf=True)
    return written


def main() -> None:
    """Write the files of payments, and those of bank marketing where TOPRANK_DATA is known."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = Path(arguments.folder)
    write_all(folder / "cards", cards(arguments.rows, arguments.seed), _CARD_NUMBERS, "label", "fraud")
    if os.environ.get("TOPRANK_DATA"):
        write_all(folder / "bank", bank(), ("age", "duration", "balance"), "subscribed", "yes")


if __name__ == "__main__":
    main()
