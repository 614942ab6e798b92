"""Where a fit to rows in blocks is, in a file: after the client was killed, the same fit goes on from there."""

from __future__ import annotations

import json
import os
from io import BytesIO
from typing import Any

import numpy as np

from toprank.exceptions import InputError
from toprank.solvers.block_problem import BlockProblem
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import Solution

# Parameters that may be others when a fit goes on.
_FREE = ("tol", "max_iter", "verbose", "warm_start", "threshold")


class Checkpoint:
    """A file with the best point of a fit, written whole after each round, and what it is a fit of."""

    def __init__(self, path: str | os.PathLike[str], name: str, settings: Any, problem: BlockProblem) -> None:
        self.path = path
        known = {key: repr(value) for key, value in settings.items() if key not in _FREE}
        n_positive, weight = int(np.count_nonzero(problem.positive)), float(problem.weights.sum())
        facts = {"rows": list(problem.X.shape), "positives": n_positive, "weight": weight}
        self.about = {"model": name, "parameters": known, **facts}

    def start(self) -> Solution | None:
        """Where to go on from, if the file is there; one of another fit is an error."""
        if not os.path.exists(self.path):
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                about, coef = json.loads(str(file["about"])), np.asarray(file["coef"], dtype=np.float64)
                primal, dual, n_iter = float(file["primal"]), float(file["dual"]), int(file["n_iter"])
        except (ValueError, KeyError, OSError) as error:
            raise InputError.of(
                "checkpoint", str(self.path), "is no checkpoint of a fit", "use another path"
            ) from error
        others = [key for key in self.about if about.get(key) != self.about[key]]
        if others:
            raise InputError.of(
                "checkpoint",
                str(self.path),
                "is that of another fit, of which {others} differ",
                "remove the file, or use another path",
                others=", ".join(others),
            )
        return Solution(coef, 0.0, primal, dual, n_iter, False, {})

    def save(self, incumbent: Incumbent) -> None:
        """Write the best point of the problem itself; those of its parts are on the way to it."""
        if not isinstance(incumbent.problem, BlockProblem):
            return
        from toprank.persistence.atomic import write_atomically

        stream = BytesIO()
        known = {"primal": incumbent.primal, "dual": incumbent.dual, "n_iter": incumbent.n_iter}
        np.savez(stream, about=json.dumps(self.about), coef=incumbent.coef, **known)  # type: ignore[arg-type]
        write_atomically(self.path, [stream.getvalue()])

    def remove(self) -> None:
        """Remove the file of a fit that is complete."""
        if os.path.exists(self.path):
            os.unlink(self.path)
