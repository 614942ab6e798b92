"""A service that scores rows: ``MODEL=fraud.toprank uvicorn service:app``, then POST rows to /score."""

import os
from typing import Any

import polars
from fastapi import FastAPI, HTTPException

import toprank

app = FastAPI(title="Alerts")
model = toprank.load(os.environ.get("MODEL", "fraud.toprank"))


@app.post("/score")
def score(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The score of each row, and whether it is an alert."""
    try:
        frame = polars.DataFrame(rows, infer_schema_length=None, strict=False)
        scores = model.decision_function(frame)
    except ValueError as error:  # a column that is missing, a text where a number should be
        raise HTTPException(422, str(error)) from None
    return [{"score": value, "alert": value > 0} for value in scores.tolist()]


@app.get("/health")
def health() -> dict[str, Any]:
    """Which columns the model takes, and when it was fitted."""
    return {"columns": model.columns, "fitted": model.summary_["fitted"]}
