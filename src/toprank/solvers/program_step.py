"""A second-order step of the pair method: the best point over the u between their bounds and all b that matter.

It finds out by itself which b are zero and which are at their cap (`toprank.solvers.threshold_program`), so it may be
made after a few moves. It needs a loss that is curved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.thresholds import within_caps
from toprank.matrices._gather import gather
from toprank.solvers._pair_state import DELTA
from toprank.solvers.pair_dual import WorkingSetDual
from toprank.solvers.pair_newton import COST_OF_MOVE
from toprank.solvers.threshold_program import PROXIMITIES, Elimination, ProductsInType, Program, ThresholdProgram

# Rows without a multiplier that take part: so many and a share of those with one, and where more of them are above the
# threshold, at most so large a share.
_MORE_ROWS, _MORE_SHARE, _MOST_SHARE = 30, 0.2, 2.0
# Sum of the caps of the rows of a program, at least.
_CAPS = 1.5
# Part of the mean of what margins lack within which a positive at a bound is doubtful.
_DOUBT = 0.03
# Part of their mean up to which the slopes of the losses of positives are small.
_SMALL = 0.5
# Part of their mean within which eliminated u are near a bound, where others are beyond theirs.
_NEAR = 0.1
# Time of an operation of a matrix product, in those of a move, and of what a program takes whatever its size.
_COST_OF_BLAS, _COST_OF_STEP = 0.04, 1e7
# Part of the moves' cost that a step may have: the first one, which many moves a row precede, and the later ones.
_FIRST_SHARE, _FIRST_MOVES, _LATER_SHARE = 4.0, 0.5, 1.5
# Rows of products that are looked up at a time.
_BLOCK_ROWS = 64
# Programs of a step, and their gap as a part of the one that is asked for, where they are solved up to a gap.
_ROUNDS, _EXACTNESS = 8, 1e-3
# Single precision pays from so many eliminated positives on, for a gap of at least so much, where the rounding of their
# products is at most such a part of the least curvature of the loss; and the number of the first proximal term then.
_MANY, _SINGLE_GAP, _SINGLE_ROUNDING, _SINGLE_LEVEL = 400, 5e-6, 0.01, 2
# Share of the sure positives up to which others may be eliminated; part of a gap that the same program may leave, and,
# in single precision, any program below a gap.
_CHANGES, _PROGRESS, _NEARLY = 0.15, 0.5, 0.01


class ProgramStep:
    """Solve programs of the multipliers that may be at a bound, and move to their solutions as far as it pays.

    1. Positives that are between their bounds are eliminated. Those whose margins lack nothing, those that left their
       bounds in an earlier round, and those at one that may want to leave it are doubtful, the others stay where they
       are. The b are those that are not zero, and those of the rows next to them and above.
    2. The program. The factor of the eliminated positives is kept as long as most of these stay the same: what is no
       longer to be eliminated is projected out, what would be by now is doubtful. Where they are many, and the gap that
       is asked for is not tiny, it is of single precision, as long as that gets on.
    3. The dual is quadratic along the segment to the point found, so that the best of it is known in closed form.
    4. Stop at the gap that is asked for, or if the next program is the last one again.
    """

    most_share = _MOST_SHARE  # of rows above the threshold that take part
    is_exact = True  # so that the same program again, without a proximal term to speak of, leads nowhere

    def __init__(self) -> None:
        self.share, self.level, self._moves = _FIRST_SHARE, 0, _FIRST_MOVES
        self.may_be_single, self.is_single = True, False

    @property
    def settles(self) -> bool:
        """Whether guesses of the active set do."""
        return self.level < len(PROXIMITIES)

    def cost(self, dual: WorkingSetDual) -> float:
        """That of its products and factors."""
        if not dual.working.is_complete:
            return np.inf
        m = int(np.count_nonzero(dual.free()[0]))
        k = (1 + _MORE_SHARE) * np.count_nonzero(dual.b) + _MORE_ROWS
        cost = _COST_OF_STEP + _COST_OF_BLAS * float(m**3 / 3 + m**2 * k + m * k**2 + 5 * k**3)
        return max(cost, self.share * self._moves * COST_OF_MOVE * dual.size**2)

    def __call__(self, dual: WorkingSetDual, tol: float, scores: Floats | None = None) -> None:
        """Make a step towards a relative gap of `tol`; of the first program, `scores` may say which rows take part."""
        self.share, self._moves = _LATER_SHARE, 0.0
        self.may_be_single = self.may_be_single and tol >= _SINGLE_GAP
        left, last, gap = _may_leave(dual), None, np.inf
        for _ in range(_ROUNDS):
            # 1. Who takes part.
            sure = dual.free()[0] & ~left
            s = (dual.scores if scores is None or last is not None else scores)[dual.thresholds]
            parts = sure, left | self._is_doubtful(dual), self._threshold_rows(dual, s)
            is_last = last is not None and all(map(np.array_equal, parts, last))
            if not sure.any() or (is_last and not self.level and self.is_exact):
                return
            # 2. The program.
            found = self._solution(dual, *parts, tol)
            if found is None:
                return
            # 3. The segment.
            u, b, outside = found
            _move(dual, u, b)
            # 4. Stop, or go on.
            last, previous, gap = parts, gap, dual.gap()
            is_slow = gap > _PROGRESS * previous and (is_last or (self.is_single and gap < _NEARLY))
            stalls = not outside.any() and (not self.settles or is_slow)
            if gap <= tol or (stalls and not self.is_single):
                return
            if stalls:
                self.may_be_single, self.level = False, 0
            left |= outside

    @staticmethod
    def _is_doubtful(dual: WorkingSetDual) -> Mask:
        """Positives at a bound that want to leave it, or nearly so, at the threshold that the multipliers say."""
        (free, _), lacks = dual.free(), _lacks(dual)
        if not free.any():
            return free
        spread = _DOUBT * float(np.abs(lacks[free]).mean())
        most = dual.top / dual.share * dual.surrogate.width  # where u reaches its upper bound
        return np.asarray(np.where(dual.u <= 0, lacks > -spread, ~free & (lacks < most + spread)))

    def _threshold_rows(self, dual: WorkingSetDual, s: Floats) -> Rows:
        """Those with a b, and others that are near them or above by the scores `s` of all that there are."""
        with_b = np.flatnonzero(dual.b)
        order = np.argsort(-s, kind="stable")
        others = order[dual.b[order] == 0]
        free = dual.free()[1]
        level = float(np.median(s[free])) if free.any() else float(s[with_b].min())
        n_more = _MORE_ROWS + int(_MORE_SHARE * len(with_b))
        if self.settles:
            n_above = int(np.count_nonzero(s[others] > level))
            n_more = max(n_more, min(n_above, int(self.most_share * len(with_b))))
        if dual.terms.has_caps:
            reached = dual.caps[with_b].sum() + np.cumsum(dual.caps[others])
            n_more = max(n_more, int(np.searchsorted(reached, _CAPS)) + 1)
        return np.sort(np.concatenate([with_b, others[:n_more]]))

    def _solution(
        self, dual: WorkingSetDual, sure: Mask, doubtful: Mask, rows: Rows, tol: float
    ) -> tuple[Floats, Floats, Mask] | None:
        """The u and b of the program, and which u were to be eliminated and should not have been."""
        u, b, outside = dual.u, dual.b, np.zeros(len(dual.u), dtype=bool)
        for _ in range(_ROUNDS):
            found = self._solution_from(dual, u, b, sure & ~outside, doubtful | outside, rows, tol)
            if found is None:
                return None
            u, b, new, beyond = found
            outside[new] = True
            if not len(new) or not (sure & ~outside).any():
                break
            u[new] = beyond
            rows = np.union1d(rows, self._rows_above(dual, u, b))
            u = np.clip(u, 0.0, dual.top)
        return u, b, outside

    def _solution_from(
        self, dual: WorkingSetDual, u: Floats, b: Floats, sure: Mask, doubtful: Mask, rows: Rows, tol: float
    ) -> tuple[Floats, Floats, Rows, Floats] | None:
        """The same of one program, from a start; the last are the u that are not to be eliminated again, as they were.

        These are the ones that had to be put back onto a bound, and where there are any, those near one.
        """
        program, number, is_sure, some = self._program(dual, sure, doubtful, rows)
        caps = dual.caps[rows] if dual.terms.has_caps else None
        start = np.concatenate([u[some], b[rows]])
        least = _SINGLE_LEVEL if self.is_single else 0
        z, self.level = program.solve(start, caps, _EXACTNESS * tol, max(self.level - 1, least))
        on_rows = z[len(some) :]
        if not np.isfinite(z).all() or not on_rows.any():
            return None
        found, number = program.eliminated_at(z)[is_sure], number[is_sure]
        u, b, top = dual.u.copy(), np.zeros(len(dual.b)), dual.top[number]
        u[some] = np.minimum(z[: len(some)], dual.top[some])
        u[number] = np.clip(found, 0.0, top)
        total, is_beyond = float(u.sum()), (found < 0) | (found > top)
        if is_beyond.any():  # those near a bound would follow in the next program
            share = dual.share[number]
            near = _NEAR * float((u[number] / share).mean()) * share
            is_beyond = (found < near) | (found > top - near)
        b[rows] = on_rows * (total / float(on_rows.sum()))
        return u, within_caps(b, dual.caps * total, total), number[is_beyond], found[is_beyond]

    def _program(
        self, dual: WorkingSetDual, sure: Mask, doubtful: Mask, rows: Rows
    ) -> tuple[Program, Rows, Mask, Rows]:
        """The program, the positives of its elimination, which of them are sure, and the ones that are doubtful."""
        elimination, number = _elimination_for(dual, sure, self.may_be_single)
        self.is_single, is_sure = elimination.is_single, sure[number]
        doubtful = doubtful | sure
        doubtful[number[is_sure]] = False
        some = np.flatnonzero(doubtful)
        places = elimination.places(members_of(dual, some, rows), _products_of(dual))
        terms = terms_of(dual, number, is_sure, some, rows)
        return ThresholdProgram(elimination, places, *terms, np.flatnonzero(~is_sure)), number, is_sure, some

    def _combination(self, dual: WorkingSetDual, weights: Floats) -> Floats:
        """Products of all rows with a weighted sum of them, to find rows by."""
        return dual.combination(weights)

    def _rows_above(self, dual: WorkingSetDual, u: Floats, b: Floats) -> Rows:
        """Threshold rows above those that share the threshold at a point, the highest ones if they are many."""
        weights = np.zeros(dual.size)
        weights[dual.positives] = u
        weights[dual.thresholds] -= b * (float(u.sum()) / float(b.sum()))
        s, with_b = self._combination(dual, weights / dual.alpha)[dual.thresholds], np.flatnonzero(b)
        above = np.flatnonzero((b == 0) & (s > float(np.median(s[with_b]))))
        return above[np.argsort(-s[above], kind="stable")[: _MORE_ROWS + int(_MORE_SHARE * len(with_b))]]


def _lacks(dual: WorkingSetDual) -> Floats:
    """What the margins of the positives lack at the threshold that the multipliers say; zero where none says it."""
    slopes, (free, _) = dual.slopes()[0], dual.free()
    if not free.any():
        return np.zeros(len(slopes))
    return np.asarray(dual.surrogate.shift - float(np.median(slopes[free])) - dual.scores[dual.positives])


def _may_leave(dual: WorkingSetDual) -> Mask:
    """Positives of a small u whose margins lack nothing, as after a change of α; none if a known factor has them."""
    free, slopes = dual.free()[0], dual.u / dual.share
    is_small = free & (slopes < _SMALL * float(slopes[free].mean())) if free.any() else free
    return is_small & (_lacks(dual) < 0) & (_remembered_for(dual, free) is None)


def _remembered_for(dual: WorkingSetDual, sure: Mask) -> tuple[Elimination, Rows] | None:
    """The last elimination if it has most of the sure positives and few others, and its numbers."""
    number, bend = np.full(dual.size, -1), dual.surrogate.width / dual.share
    number[dual.positives] = np.arange(len(dual.positives))
    last: Elimination | None = dual.working.remembered.get("elimination")
    if last is None or (numbers := number[last.rows]).min() < 0 or not last.is_of(bend[numbers], dual.alpha):
        return None
    n_same = int(np.count_nonzero(sure[numbers]))
    changes = len(numbers) + np.count_nonzero(sure) - 2 * n_same
    return (last, numbers) if changes <= _CHANGES * n_same else None


def _elimination_for(dual: WorkingSetDual, sure: Mask, may_be_single: bool) -> tuple[Elimination, Rows]:
    """The last elimination if it is of use, else that of the sure positives; and its numbers."""
    remembered = _remembered_for(dual, sure)
    if remembered is not None and (may_be_single or not remembered[0].is_single):
        return remembered
    bend, rows = dual.surrogate.width / dual.share[sure], dual.positives[sure]
    is_single = may_be_single and _serves_in_single(bend, dual.diagonal[rows] / dual.alpha)
    elimination = Elimination(_products_of(dual), rows, bend, dual.alpha, dual.size, is_single=is_single)
    dual.working.remembered["elimination"] = elimination
    return elimination, np.flatnonzero(sure)


def _serves_in_single(bend: Floats, squares: Floats) -> bool:
    """Whether a factor in single precision is faster, and exact enough to lead to the optimum in a few programs."""
    rounding = float(np.finfo(np.float32).eps) * float(squares.sum())
    return len(bend) >= _MANY and rounding <= _SINGLE_ROUNDING * float(bend.min())


def _products_of(dual: WorkingSetDual) -> ProductsInType:
    """The products of some rows with others, over α, in a type."""

    def products(rows: Rows, others: Rows, dtype: Any) -> NDArray[Any]:
        found, room = np.empty((len(rows), len(others)), dtype), np.empty((_BLOCK_ROWS, len(others)))
        for start in range(0, len(rows), _BLOCK_ROWS):
            some = rows[start : start + _BLOCK_ROWS]
            gather(dual.working.buffer, some, others, 1 / dual.alpha, room)
            found[start : start + len(some)] = room[: len(some)]
        return found

    return products


def members_of(dual: WorkingSetDual, some: Rows, rows: Rows) -> Rows:
    """The rows of z in a program: those of some positives and of some threshold rows."""
    return np.concatenate([dual.positives[some], dual.thresholds[rows]])


def terms_of(
    dual: WorkingSetDual, number: Rows, is_sure: Mask, some: Rows, rows: Rows
) -> tuple[Floats, Floats, tuple[Floats, Floats], tuple[Floats, Floats], float]:
    """Signs, curvatures of the loss, slopes, base and fixed sum of a program, which its elimination does not decide.

    `number` are the positives of the elimination, of which not all are sure, and `some` are the doubtful ones.
    """
    m = len(some)
    bend = np.concatenate([dual.surrogate.width / dual.share[some], dual.d[rows] / dual.scalars[DELTA]])
    signs = np.ones(m + len(rows))
    signs[:m] = -1.0
    left_out = np.full(len(dual.u), True)
    left_out[some] = left_out[number[is_sure]] = False
    on_positives, on_thresholds = dual.slopes()
    slopes = on_positives[number], np.concatenate([on_positives[some], on_thresholds[rows]])
    base = np.where(is_sure, dual.u[number], 0.0), np.concatenate([dual.u[some], dual.b[rows]])
    return signs, bend, slopes, base, float(dual.u[left_out].sum())


def _move(dual: WorkingSetDual, u: Floats, b: Floats) -> None:
    """Go to the best point on the segment."""
    change_u, change_b, on_rows = u - dual.u, b - dual.b, np.zeros(dual.size)
    on_rows[dual.positives] = change_u
    on_rows[dual.thresholds] -= change_b
    on_positives, on_thresholds = dual.slopes()
    rise = float(on_positives @ change_u + on_thresholds @ change_b)
    on_scores = dual.combination(on_rows / dual.alpha)
    curvature = float(on_rows @ on_scores) + dual.surrogate.width * float((change_u**2 / dual.share).sum())
    curvature += float((dual.d * change_b**2).sum()) / float(dual.scalars[DELTA])
    if rise >= curvature:
        dual.take(u, b, dual.scores + on_scores)
    elif rise > 0:
        step = rise / curvature
        dual.take(dual.u + step * change_u, dual.b + step * change_b, dual.scores + step * on_scores)
