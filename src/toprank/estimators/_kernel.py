"""Kernels for the top family: parameters, the choice of a solver, and models that are sums over training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from toprank.checks import require_count, require_positive, require_share
from toprank.estimators._base import COMMON_STATE, TopClassifier, keep, without_offset
from toprank.exceptions import InputError
from toprank.formulations.formulation import Formulation, Over
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import SurrogateQuantile, TopMean
from toprank.matrices.dense_or_sparse import transpose_matvec
from toprank.matrices.features import FourierFeatures, NystroemFeatures, both_dense_or_sparse, in_blocks
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.saved_state import LARGEST_COUNT, Array, Kind, Known, Schema
from toprank.solvers.choice import supports_pairs
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.phases import Phase, solve_in_phases
from toprank.solvers.problem import Solution, WeightedRows, without_noise

KernelName = str | Callable[[Any, Any], Any]
_EXPANSION_SOLVERS = ("pairs", "low-rank", "dual-cd")
_SMALLEST_TAU = 1e-12
_LARGEST_LOSS = 1e50
# Rows up to which the pair method is chosen where all rows have multipliers.
_FEW_ROWS = 8000
# Moves of the pair method after which "auto" takes the low-rank route, in all and for each row.
_MOVES, _MOVES_A_ROW = 50_000, 100
# Rounding of kernel values, as a part of alpha, with which single precision is no use.
_MOST_ROUNDING = 0.1


def _is_expansion(known: Known) -> bool:
    return "dual_coef_" in known


def _is_direction(known: Known) -> bool:
    return not _is_expansion(known)


def _is_precomputed(known: Known) -> bool:
    return bool(known["_kernel"].name == "precomputed")


def _n_of_direction(known: Known) -> int:
    return int(known["feature_map_"].shape[1] if "feature_map_" in known else known["n_features_in_"])


class KernelClassifier(TopClassifier):
    """Base of the estimators with a convex formulation: linear, or with a kernel."""

    saved_state: ClassVar[Schema] = Schema(
        {
            **COMMON_STATE,
            "dual_coef_": Array("f", (1, "n_support"), optional=True),
            "_kernel": Kind((Kernel,), when=_is_expansion),
            "support_": Array(
                "i",
                ("n_support",),
                low=0,
                below=lambda known: known["n_features_in_"] if _is_precomputed(known) else LARGEST_COUNT,
                when=_is_expansion,
            ),
            "support_vectors_": Array(
                "f",
                (
                    lambda known: 0 if _is_precomputed(known) else known["n_support"],
                    lambda known: 0 if _is_precomputed(known) else known["n_features_in_"],
                ),
                sparse=True,
                when=_is_expansion,
            ),
            "feature_map_": Kind((NystroemFeatures, FourierFeatures), optional=True, when=_is_direction),
            "coef_": Array("f", (1, _n_of_direction), when=_is_direction),
        },
        relations={
            "a feature map for its number of features": lambda known: (
                "feature_map_" not in known or known["feature_map_"].shape[0] == known["n_features_in_"]
            )
        },
    )

    kernel: KernelName
    gamma: str | float
    degree: float
    coef0: float
    approximation: str | None
    n_components: int
    cache_size: float

    def __init__(
        self,
        *,
        alpha: float = 0.1,
        surrogate: str = "quadratic",
        kernel: KernelName = "linear",
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        approximation: str | None = None,
        n_components: int = 500,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        cache_size: float = 500,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("cache_size", self.cache_size, "use a number of megabytes such as 500")
        if self.approximation not in (None, "nystroem", "fourier"):
            raise ValueError(
                f"approximation must be None, 'nystroem' or 'fourier', got {self.approximation!r}; None is exact"
            )
        if self.approximation is not None:
            require_count("n_components", self.n_components)
            if self.kernel == "precomputed":
                raise ValueError(
                    "approximation needs rows, but kernel='precomputed' has none; use approximation=None or another "
                    "kernel"
                )
        if self.approximation == "fourier" and self.kernel != "rbf":
            raise ValueError(
                f"approximation='fourier' is for kernel='rbf' only, got kernel={self.kernel!r}; use 'nystroem' instead"
            )

    def _solvers(self) -> tuple[str, ...]:
        linear = super()._solvers()
        pairs = ("pairs",) if "pairs" in linear else ()
        dual_cd = ("dual-cd",) if self.surrogate in ("quadratic", "hinge") else ()
        expansion = ("low-rank", *dual_cd)
        if self.approximation is not None:
            return linear
        return (*linear, *expansion) if self.kernel == "linear" else ("auto", *pairs, *expansion)

    def _encode(self, y: NDArray[Any]) -> NDArray[np.bool_]:
        positive = super()._encode(y)
        if self.kernel == "precomputed" and self.n_features_in_ != len(y):
            raise InputError.saying(
                "{kernel='precomputed'} needs the square matrix of all training rows, got {found}; pass the kernel of "
                "the training rows with themselves",
                found=f"{len(y)} rows and {self.n_features_in_} columns",
            )
        return positive

    def _fit_rows(self, X: Any, positive: NDArray[np.bool_], weights: NDArray[Any], rows: NDArray[np.intp]) -> None:
        if self.approximation is None and (self.kernel != "linear" or self.solver in ("low-rank", "dual-cd")):
            self._fit_expansion(X, positive, weights, rows)
            return
        if self.approximation is not None:
            kernel = Kernel.resolve(self.kernel, X, self.gamma, self.degree, self.coef0, weights)
            random_state, size = check_random_state(self.random_state), min(int(self.n_components), X.shape[0])
            if self.approximation == "nystroem":
                self.feature_map_: Any = NystroemFeatures.fit(kernel, X, size, random_state, weights)
            else:
                self.feature_map_ = FourierFeatures.fit(kernel.gamma, X, int(self.n_components), random_state)
            X = self.feature_map_(X)
        super()._fit_rows(X, positive, weights, rows)

    def _fit_expansion(
        self, X: Any, positive: NDArray[np.bool_], weights: NDArray[Any], rows: NDArray[np.intp]
    ) -> None:
        """Fit w = Σ c φ(x), positives first, which keeps the rows of a class together in memory."""
        order = np.argsort(~positive, kind="stable")
        if self.kernel == "precomputed":
            if issparse(X):
                raise InputError.saying(
                    "{kernel='precomputed'} needs a dense matrix, got a sparse one; use X.toarray()"
                )
            X = X[:, rows][np.ix_(order, order)]
        else:
            X = X[order]
        given, X = X, without_offset(X) if self.kernel == "linear" else X
        kernel = Kernel.resolve(self.kernel, X, self.gamma, self.degree, self.coef0, weights[order])
        formulation = self._formulation()
        self.solver_ = self._kernel_solver_for(formulation, kernel, X) if self.solver == "auto" else self.solver
        gram = self._gram(kernel, X)
        problem = KernelProblem(
            gram=gram,
            positive=positive[order],
            weights=weights[order],
            formulation=formulation,
            alpha=float(self.alpha),
            precision=0.5 * float(np.finfo(X.dtype).eps) if gram.is_precomputed else 0.0,
        )
        gram.check_definite()
        solution = self._solve_expansion(problem, self._start(X.shape[0], "rows"))
        solution = without_noise(problem, self._certified(problem, solution, X.dtype))
        if solution.excess > 0 and not gram.is_definite:
            raise gram.not_definite("the lower bound is above the objective")
        c = solution.coef
        self._set_expansion(kernel, X, c, rows[order])
        if kernel.name == "linear":
            self._set_linear_attributes(given, problem, solution)
            return
        scores = problem.scores(c) if solution.scores is None else solution.scores
        scores = scores.astype(X.dtype)
        margin = 8 * float(np.finfo(X.dtype).eps) * float(np.abs(c).sum()) * float(np.abs(gram.diagonal).max())
        self._set_attributes(problem, solution, scores, margin)

    def _gram(self, kernel: Kernel, X: Any) -> Gram:
        """The kernel matrix; in double precision if that fits, or if single precision leaves no digit of the dual."""
        n, room = X.shape[0], self.cache_size * 2**20
        if X.dtype == np.float32:
            rounding = float(np.finfo(np.float32).eps) * float(np.abs(kernel.diagonal(X)).max())
            if 8 * n * (n + X.shape[1]) <= room or rounding > _MOST_ROUNDING * self.alpha:
                X = X.astype(np.float64)
        # The pair method keeps products of its own; rows of the whole matrix are of use to it only if all fit.
        fits = n**2 * X.dtype.itemsize <= room
        return Gram(kernel, X, self.cache_size if fits or self.solver_ == "dual-cd" else 1.0)

    def _kernel_solver_for(self, formulation: Formulation, kernel: Kernel, X: Any) -> str:
        """The solver that "auto" stands for; pairs are slow where the kernel matrix has a low rank."""
        n, d = X.shape
        low_rank = kernel.name == "poly" and 2 * comb(d + int(kernel.degree), d) <= n
        if low_rank or not supports_pairs(formulation):
            return "low-rank"
        return "pairs" if isinstance(formulation.threshold, TopMean) or n <= _FEW_ROWS else "low-rank"

    def _solve_expansion(self, problem: KernelProblem, start: Solution | None) -> Solution:
        """Solve for c; pairs that "auto" chose may stall where the kernel has directions of hardly any weight."""
        may_change = self.solver == "auto" and self.solver_ == "pairs"
        phases = [self._kernel_phase(self.solver_, problem)]
        if may_change:
            budget = _MOVES + _MOVES_A_ROW * problem.gram.n
            phases = [replace(phases[0], budget=budget), self._kernel_phase("low-rank", problem)]
        common: dict[str, Any] = {"tol": self.tol, "verbose": self.verbose, "max_iter": self.max_iter}
        solution, self.solver_ = solve_in_phases(phases, problem, start=start, **common)
        return solution

    def _kernel_phase(self, name: str, problem: KernelProblem) -> Phase:
        if name == "pairs":
            from toprank.solvers.pair_ascent import solve_pairs

            return Phase(name, solve_pairs, None, {"products": problem.gram, "cache_size": float(self.cache_size)})
        if name == "low-rank":
            from toprank.solvers.low_rank import solve_low_rank

            return Phase(name, solve_low_rank)
        from toprank.solvers.dual_cd import solve_dual_cd

        return Phase(name, solve_dual_cd, None, {"random_state": check_random_state(self.random_state)})

    def _certified(self, problem: KernelProblem, solution: Solution, dtype: Any) -> Solution:
        """A solution as it is stored, with a certificate in double precision.

        Where single precision did not reach the tolerance, double precision goes on from there.
        """
        if dtype == np.float64:
            return solution
        if problem.gram.kernel.name == "linear":  # not c is stored, but w
            dtype = np.dtype(np.float64)
        if problem.gram.dtype == np.float32:
            problem = replace(problem, gram=self._gram(problem.gram.kernel, problem.gram.X.astype(np.float64)))
            stored = problem.certified(solution, dtype, self.tol)
            if stored.converged or solution.n_iter >= (self.max_iter or np.inf):
                return stored
            further = self._solve_expansion(problem, solution)
            solution = replace(further, n_iter=solution.n_iter + further.n_iter)
        return problem.certified(solution, dtype, self.tol)

    def _set_expansion(self, kernel: Kernel, X: Any, c: NDArray[Any], rows: NDArray[np.intp]) -> None:
        """Keep the rows that w is made of; of a linear kernel w itself."""
        if kernel.name == "linear":
            self.coef_ = transpose_matvec(X, c).astype(X.dtype)[None, :]
            return
        support = np.flatnonzero(c)
        support = support[np.argsort(rows[support])]
        self.support_ = rows[support]
        self.dual_coef_ = c[support].astype(X.dtype)[None, :]
        self.support_vectors_ = np.zeros((0, 0), X.dtype) if kernel.name == "precomputed" else X[support]
        self._kernel = kernel

    def _set_attributes(self, problem: WeightedRows, solution: Solution, scores: NDArray[Any], margin: float) -> None:
        if hasattr(self, "feature_map_"):
            margin += self.feature_map_.rounding(self.coef_[0])
        super()._set_attributes(problem, solution, scores, margin)

    def _scores(self, X: Any) -> NDArray[Any]:
        if hasattr(self, "dual_coef_"):
            if self._kernel.name == "precomputed":
                return np.asarray(X[:, self.support_] @ self.dual_coef_[0])
            vectors, coefficients = self.support_vectors_, self.dual_coef_[0]
            if not len(coefficients):  # w = 0; a kernel function of a user need not take no rows
                return np.zeros(X.shape[0], vectors.dtype)
            X, vectors = both_dense_or_sparse(X, vectors)
            return in_blocks(lambda block: self._kernel.block(block, vectors) @ coefficients, X, len(coefficients))
        if hasattr(self, "feature_map_"):
            return in_blocks(lambda block: self.feature_map_(block) @ self.coef_[0], X, self.coef_.shape[1])
        return super()._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags


class TopMeanClassifier(KernelClassifier):
    """Base of the estimators with the mean of a share τ of the highest scores."""

    tau: float

    def __init__(
        self,
        tau: float = 0.05,
        *,
        alpha: float = 0.1,
        surrogate: str = "quadratic",
        kernel: KernelName = "linear",
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        approximation: str | None = None,
        n_components: int = 500,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        cache_size: float = 500,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(locals())

    def _check_parameters(self) -> None:
        require_share("tau", self.tau)
        super()._check_parameters()

    def _top_share(self, over: Over) -> Formulation:
        return Formulation(get_surrogate(self.surrogate), TopMean(share=float(self.tau)), over=over)


class SurrogateQuantileClassifier(KernelClassifier):
    """Base of PatMat and PatMatNP, which have a share τ and a scaling β."""

    tau: float
    beta: float

    def __init__(
        self,
        tau: float = 0.05,
        beta: float = 0.1,
        *,
        alpha: float = 0.1,
        surrogate: str = "quadratic",
        kernel: KernelName = "linear",
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        approximation: str | None = None,
        n_components: int = 500,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        cache_size: float = 500,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(locals())

    def _check_parameters(self) -> None:
        require_share("tau", self.tau)
        require_positive("beta", self.beta, "use a value such as 0.1")
        super()._check_parameters()
        if self.tau < _SMALLEST_TAU:
            raise InputError.of(
                "tau", self.tau, "must be at least {t:.0e}", "use a share such as 0.05", t=_SMALLEST_TAU
            )
        surrogate = get_surrogate(self.surrogate)
        at_zero = -surrogate.inverse(np.array(float(self.tau))) / float(self.beta)
        with np.errstate(over="ignore"):
            loss = float(surrogate.value(at_zero))
        if not loss < _LARGEST_LOSS:
            raise InputError.saying(
                "with {beta=}, {tau=} and {surrogate=} even w = 0 has a loss of {loss:.0e}; use a larger beta, such as "
                "1.0",
                beta=self.beta,
                tau=self.tau,
                surrogate=self.surrogate,
                loss=loss,
            )

    def _surrogate_quantile(self, over: Over) -> Formulation:
        surrogate = get_surrogate(self.surrogate)
        return Formulation(surrogate, SurrogateQuantile(float(self.tau), float(self.beta), surrogate), over=over)
