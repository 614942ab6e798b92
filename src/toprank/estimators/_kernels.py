"""What the estimators with a convex formulation share: linear, or with a kernel, which features may stand for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from toprank.checks import require_count, require_positive
from toprank.estimators._base import COMMON_STATE, TopClassifier
from toprank.estimators.back_ends import KEPT, KEPT_RELATIONS, BackEnd, Expansion, Features, Linear
from toprank.exceptions import ApproximationWarning, InputError, Message
from toprank.formulations.formulation import Formulation
from toprank.saved_state import Schema

# Rows beyond which "auto" replaces a kernel by features.
MOST_ROWS_OF_A_KERNEL = 50_000


@dataclass(eq=False, repr=False, kw_only=True)
class KernelClassifier(TopClassifier):
    """Base of the estimators with a convex formulation: linear, or with a kernel."""

    saved_state: ClassVar[Schema] = Schema({**COMMON_STATE, **KEPT}, relations=KEPT_RELATIONS)

    kernel: str | Callable[[Any, Any], Any] = "linear"
    gamma: str | float = "scale"
    degree: float = 3
    coef0: float = 0.0
    approximation: str | None = "auto"
    n_components: int = 500
    cache_size: float = 500

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("cache_size", self.cache_size, "use a number of megabytes such as 500")
        if self.approximation not in ("auto", None, "nystroem", "fourier"):
            raise ValueError(
                f"approximation must be 'auto', None, 'nystroem' or 'fourier', got {self.approximation!r}; None is "
                "exact"
            )
        if self.approximation is not None:
            require_count("n_components", self.n_components)
        if self.approximation not in ("auto", None) and self.kernel == "precomputed":
            raise ValueError(
                "approximation needs rows, but kernel='precomputed' has none; use approximation=None or another kernel"
            )
        if self.approximation == "fourier" and self.kernel != "rbf":
            raise ValueError(
                f"approximation='fourier' is for kernel='rbf' only, got kernel={self.kernel!r}; use 'nystroem' instead"
            )

    def _back_ends(self) -> tuple[type[BackEnd], ...]:
        if self.approximation not in ("auto", None):
            return (Features,)
        return (Linear, Expansion) if self.kernel == "linear" else (Expansion,)

    def _back_end(self, formulation: Formulation, n_rows: int) -> type[BackEnd]:
        """What was asked for, or features in place of the kernel of very many rows; a warning says so."""
        is_free = self.approximation == "auto" and self.solver == "auto"
        if not is_free or n_rows <= MOST_ROWS_OF_A_KERNEL or self.kernel in ("linear", "precomputed"):
            return super()._back_end(formulation, n_rows)
        why = Message("the {kernel} of {n_rows:,} rows would take very long", n_rows=n_rows)
        self._warn_of_features(why, Message(", and {approximation=None} is exact"))
        return Features

    def _warn_of_features(self, why: Message, other: str = "") -> None:
        """Say that features take the place of the kernel, and what else there is."""
        replaced = Message("{why}, so it is replaced by {n:,} Nyström features", why=why, n=self.n_components)
        message = Message(
            "{replaced}; a larger {n_components} is closer to it{other}",
            elsewhere="{replaced}",
            replaced=replaced,
            other=other,
        )
        warnings.warn(message, ApproximationWarning, stacklevel=6)

    @property
    def takes_blocks(self) -> bool:
        """Whether, with its parameters, it learns from rows in blocks: linear, or by features in place of a kernel."""
        by_features = self.approximation is not None and self.kernel != "precomputed"
        return super().takes_blocks and (self.kernel == "linear" or by_features)

    @property
    def n_features_in_blocks(self) -> int:
        """Number of features that a row in blocks gets in place of a kernel, if it is not linear."""
        return 0 if self._is_linear else int(self.n_components)

    @property
    def _is_linear(self) -> bool:
        return self.kernel == "linear" and self.approximation in ("auto", None)

    def _no_blocks(self) -> InputError:
        if not super().takes_blocks:
            return super()._no_blocks()
        if self.kernel == "precomputed":
            return InputError.saying(
                "{kernel='precomputed'} is a matrix in one memory, and no Dask array; give the rows themselves, with "
                "another kernel"
            )
        return InputError.saying(
            "the {kernel} {name!r} of rows of Dask has no exact form, and {approximation=None} asks for it; use "
            "{approximation='nystroem'}, or {kernel='linear'}",
            name=self.kernel,
        )

    def _block_back_end(self) -> type[BackEnd]:
        """Features in place of a kernel, of which a warning speaks where they were not asked for."""
        if self._is_linear:
            return super()._block_back_end()
        from toprank.estimators.block_back_end import BlockFeatures

        if self.approximation == "auto":
            self._warn_of_features(Message("the {kernel} of rows of Dask has no exact form"))
        return BlockFeatures

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags
