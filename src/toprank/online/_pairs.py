"""What CBR and OAM share: the buffers, and the state of the loop over pairs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toprank.checks import require_choice, require_count
from toprank.online._base import OnlineRanker, seed_of, started_with
from toprank.online._pair_loop import Method, Options, Ranker, learn_pairs
from toprank.online._rows import RANDOM, SCALE, Rows, Scores
from toprank.online.buffers import POLICIES, Buffers, empty_buffers, with_capacity
from toprank.saved_state import LARGEST_COUNT, Array, Kind, Rule, Schema

STARTED_WITH = {"buffer": Kind((str,), POLICIES), "buffer_size": Rule()}


@dataclass(eq=False, repr=False, kw_only=True)
class PairRanker(OnlineRanker):
    """Base of the rankers that pair a new row with the buffer of the other class."""

    _lasting: ClassVar[tuple[str, ...]] = (*OnlineRanker._lasting, "buffer", "buffer_size")

    saved_state: ClassVar[Schema] = OnlineRanker.saved_state.extended(
        {
            "started_with_": started_with(**STARTED_WITH),
            "weights_": Array("f8", ("n_features_in_",)),
            "factor_": Array("f8", (0, 0)),
            "variances_": Array("f8", (0,)),
            "gained_": Array("f8", (0,)),
            "scale_": SCALE,
            "time_": Array("i8", (1,), low=0, high=LARGEST_COUNT),
            "row_": Array("f8", ("n_features_in_",), low=0, high=0),
            "buffer_length_": Array("i8", (2, "n_slots"), low=0, rowwise=True),
            "buffer_indices_": Array("i4", (2, "n_slots", "capacity"), low=0, below="n_features_in_", rowwise=True),
            "buffer_values_": Array("f8", (2, "n_slots", "capacity"), rowwise=True),
            "buffer_size_": Array("i8", (2,), low=1, high="n_slots"),
            "buffer_inserted_": Array("i8", (2,), low=0, high=LARGEST_COUNT),
            "buffer_seen_": Array("f8", (2,), low=0),
            "buffer_random_": RANDOM,
            "slot_score_": Array("f8", (2, "n_slots"), rowwise=True),
            "slot_spread_": Array("f8", (2, "n_slots"), low=0, rowwise=True),
            "slot_moved_": Array("f8", (2, "n_slots"), low=0, rowwise=True),
            "moved_": Array("f8", (1,), low=0),
            "has_negative_": Array("b1", (1,)),
        },
        {
            "rows in the buffers that fit their slots": lambda known: bool(
                (known["buffer_length_"] <= known["buffer_indices_"].shape[2]).all()
            )
        },
    )

    buffer: str = "fifo"
    buffer_size: int | tuple[int, int] = 50
    random_state: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("buffer", self.buffer, POLICIES)
        for size in self._sizes():
            require_count("buffer_size", size)

    def _sizes(self) -> tuple[int, int]:
        if isinstance(self.buffer_size, list | tuple):
            if len(self.buffer_size) != 2:
                raise ValueError(
                    f"buffer_size must be a number or a pair (for the negative class, for the positive class), got "
                    f"{self.buffer_size!r}"
                )
            return self.buffer_size[0], self.buffer_size[1]
        return self.buffer_size, self.buffer_size

    def _start(self, n_features: int) -> None:
        self.weights_ = np.zeros(n_features)
        self.factor_ = np.zeros((0, 0))
        self.variances_ = np.zeros(0)
        self.gained_ = np.zeros(0)
        self.scale_ = np.ones(1)
        self.time_ = np.zeros(1, np.int64)
        self.row_ = np.zeros(n_features)
        slots = (2, max(self._sizes()))
        self.slot_score_, self.slot_spread_, self.slot_moved_ = np.zeros(slots), np.zeros(slots), np.zeros(slots)
        self.moved_ = np.zeros(1)
        self.has_negative_ = np.zeros(1, np.bool_)
        seed = seed_of(self.random_state) if self.buffer == "reservoir" else 0  # a FIFO buffer draws nothing
        self._keep(empty_buffers(self._sizes(), seed), "buffer_")

    @abstractmethod
    def _options(self) -> Options:
        """Parameters for the compiled loop."""

    @abstractmethod
    def _method(self, capacity: int) -> Method:
        """What the method needs; the room for a pair is for rows of so many entries."""

    def _learn(self, rows: Rows, scores: Scores) -> None:
        longest = int(np.diff(rows.indptr).max(initial=0))
        buffers = with_capacity(self._state(Buffers, "buffer_"), longest)
        self._keep(buffers, "buffer_")
        method = self._method(buffers.indices.shape[2])
        learn_pairs(rows, self._state(Ranker), buffers, scores, self._options(), *method)
