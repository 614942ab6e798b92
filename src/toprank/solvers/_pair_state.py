"""What the compiled moves of the pair method work on, as tuples of arrays; `_pair_moves` has the mathematics."""

from __future__ import annotations

from typing import Any, NamedTuple

# Entries of `State.scalars`.
TOTAL, MASS, BOUND_NORM, DELTA, COST = range(5)
# Why a call ended.
STEPS_DONE, OPTIMAL, ROW_MISSING = range(3)


class Products(NamedTuple):
    """Products of rows x with all rows, `rows[place[x]]`, where the place is not −1; and `scale`, 1 / α."""

    rows: Any
    place: Any
    diagonal: Any
    scale: float


class Positives(NamedTuple):
    """Numbers and squared norms of their rows, the curvature width / a, the bounds of u and the shift of the loss.

    u and g change; `bits` is a view of g as integers.
    """

    rows: Any
    squares: Any
    curvature: Any
    top: Any
    shift: float
    u: Any
    g: Any
    bits: Any


class Thresholds(NamedTuple):
    """Numbers and squared norms of their rows, c, d, e and τ.

    b, which of them are `bound`, h and the room below c S change; `bits` is a view of h as integers.
    """

    rows: Any
    squares: Any
    caps: Any
    d: Any
    e: float
    tau: float
    b: Any
    bound: Any
    h: Any
    bits: Any
    room: Any


class State(NamedTuple):
    """What all moves change: the scores s, the products of the bound rows' sum Σ c x with all rows, and scalars."""

    s: Any
    bound_row: Any
    scalars: Any
