"""Run the command line inside the test process."""

import os

import numpy as np
import polars as pl

from commands import invoke


def run(*arguments, input=None):
    """The result of a command; a traceback is a failure whatever the exit code."""
    result = invoke(*arguments, input=input, prog_name="toprank")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    assert "should not happen" not in result.output
    return result


def transactions(n_rows, seed=0):
    """A table with numbers, categories, truth values, dates, free text, missing values and labels yes and no."""
    random = np.random.default_rng(seed)
    positive = random.random(n_rows) < 0.1
    country = np.where(positive & (random.random(n_rows) < 0.6), "NG", random.choice(["DE", "FR", "US"], n_rows))
    table = pl.DataFrame(
        {
            "transaction": [f"T{i:05d}" for i in range(n_rows)],
            "date": [f"2026-01-{1 + i % 28:02d}" for i in range(n_rows)],
            "amount": np.exp(random.normal(3 + 1.5 * positive, 1)),
            "age": random.normal(40 - 8 * positive, 12).round(),
            "country": country,
            "abroad": np.where(random.random(n_rows) < 0.3 + 0.4 * positive, "true", "false"),
            "note": [f"payment {i}, shop {random.integers(1000)}" for i in range(n_rows)],
            "fraud": np.where(positive, "yes", "no"),
        }
    )
    hidden = pl.Series(random.random(n_rows) < 0.1)
    return table.with_columns(
        age=pl.when(hidden).then(None).otherwise(pl.col("age")),
        country=pl.when(hidden.reverse()).then(pl.lit("NA")).otherwise(pl.col("country")),
    )


def files_in(folder):
    """Names of all files, hidden ones too."""
    return sorted(os.listdir(folder))
