"""Hostile problems: data, weights and an estimator, drawn from one seed."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from toprank import PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK, WMWRanker
from toprank.solvers.registry import solver_names

SURROGATES = ("quadratic", "hinge", "huber", "logistic", "exponential")


@dataclass
class Case:
    """One problem; `traits` say what is hostile about it, `like` names the cases whose time it is compared with."""

    seed: int
    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    estimator: Any
    traits: list[str] = field(default_factory=list)

    @property
    def like(self) -> tuple:
        """Family, loss, kernel, and the size in powers of four."""
        e = self.estimator
        size = int(np.log(self.X.shape[0] * self.X.shape[1]) / np.log(4))
        return type(e).__name__, getattr(e, "surrogate", "logistic"), kernel_name(e), e.solver, size

    @property
    def dense(self) -> np.ndarray:
        """The rows as float64."""
        return np.asarray(self.X.toarray() if hasattr(self.X, "toarray") else self.X, dtype=np.float64)

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.estimator}, {self.X.shape} {self.X.dtype}, {', '.join(self.traits)}"


def kernel_name(estimator: Any) -> str:
    """The kernel, with its approximation if it has one."""
    return f"{estimator.kernel}{'' if getattr(estimator, 'approximation', None) is None else '+features'}"


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    traits: list[str] = []
    kernel = str(rng.choice(["linear", "linear", "linear", "rbf", "poly"]))
    X = _rows(rng, traits, kernel)
    y = _labels(rng, X, traits)
    X = _hostile_scale(rng, X, y, traits, kernel)
    weights = _weights(rng, len(y), traits)
    estimator = _estimator(rng, len(y), int(y.sum()), X.shape[1], kernel)
    dtype = np.float32 if rng.random() < 0.2 else np.float64
    X = X.astype(dtype)
    if rng.random() < 0.25:
        X = csr_array(X)
        traits.append("CSR")
    return Case(seed, X, y, weights, estimator, traits)


def _rows(rng: np.random.Generator, traits: list[str], kernel: str) -> np.ndarray:
    n = int(np.exp(rng.uniform(np.log(6), np.log(120))))
    d = int(np.exp(rng.uniform(0, np.log(12))))
    if kernel == "linear" and rng.random() < 0.15:
        d = int(rng.integers(60, 250))
        traits.append("wide")
    X = rng.standard_normal((n, d))
    kind = rng.choice(["normal", "heavy tails", "counts", "binary", "few distinct rows"], p=[0.5, 0.2, 0.1, 0.1, 0.1])
    if kind == "heavy tails":
        X = rng.standard_t(rng.uniform(1, 2), (n, d))
    elif kind == "counts":
        X = np.round(np.exp(X))
    elif kind == "binary":
        X = (rng.random((n, d)) < rng.uniform(0.05, 0.5)).astype(float)
    elif kind == "few distinct rows":
        X = X[rng.integers(0, max(2, n // 5), n)]
    if kind != "normal":
        traits.append(str(kind))
    if rng.random() < 0.1:
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, -3.0])
        traits.append("constant column")
    return X


def _labels(rng: np.random.Generator, X: np.ndarray, traits: list[str]) -> np.ndarray:
    n = len(X)
    score = X @ rng.standard_normal(X.shape[1])
    score /= max(np.abs(score).max(), 1e-300)
    noise = rng.choice([0.0, 0.3, 3.0])
    share = rng.choice([0.05, 0.2, 0.5, 0.8])
    order = np.argsort(score + noise * rng.standard_normal(n), kind="stable")
    y = np.zeros(n, dtype=bool)
    y[order[n - min(max(1, int(share * n)), n - 1) :]] = True
    traits.append({0.0: "separable", 0.3: "some noise", 3.0: "hardly any signal"}[float(noise)])
    return y


def _hostile_scale(
    rng: np.random.Generator, X: np.ndarray, y: np.ndarray, traits: list[str], kernel: str
) -> np.ndarray:
    n, d = X.shape
    if rng.random() < 0.2:
        X[rng.integers(n)] *= 10 ** rng.uniform(1, 6 if kernel != "poly" else 2)
        traits.append("outlier")
    if rng.random() < 0.2:
        spread = 4 if kernel != "poly" else 1.5
        X = X * 10 ** rng.uniform(-spread, spread, d)
        traits.append("unscaled columns")
    if rng.random() < 0.15:
        X = X * 10 ** rng.uniform(-6, 6) if kernel != "poly" else X * 10 ** rng.uniform(-2, 2)
        traits.append("unscaled")
    if rng.random() < 0.15:
        X = X + 10 ** rng.uniform(0, 4 if kernel != "poly" else 1) * X.std()
        traits.append("offset")
    return X


def _weights(rng: np.random.Generator, n: int, traits: list[str]) -> np.ndarray | None:
    kind = rng.choice(
        ["none", "counts", "spread", "decaying", "one tiny", "some zero"], p=[0.6, 0.1, 0.1, 0.1, 0.05, 0.05]
    )
    if kind == "none":
        return None
    traits.append(f"weights: {kind}")
    if kind == "counts":
        return rng.integers(1, 5, n).astype(float)
    if kind == "spread":
        return np.exp(rng.uniform(1, 5) * rng.standard_normal(n))
    if kind == "decaying":
        return 0.5 ** (rng.permutation(n) / 10 ** rng.uniform(-1, 2))
    weights = np.ones(n)
    chosen = rng.integers(0, n, 1 if kind == "one tiny" else n // 4)
    weights[chosen] = 10 ** rng.uniform(-310, -5) if kind == "one tiny" else 0.0
    return weights


def _estimator(rng: np.random.Generator, n: int, m: int, d: int, kernel: str) -> Any:
    common = {"alpha": 10 ** rng.uniform(-5, 1), "kernel": kernel, "random_state": 0}
    if kernel == "rbf":
        common["gamma"] = ("scale", "auto", 10 ** rng.uniform(-2, 2))[int(rng.integers(3))]
    if kernel == "poly":
        common |= {"degree": int(rng.integers(2, 4)), "coef0": float(rng.integers(0, 2))}
    if rng.random() < 0.06:
        return WMWRanker(**common, solver=str(rng.choice(["newton-cg", "newton-cg", "ncg"])))
    common["surrogate"] = str(rng.choice(SURROGATES))
    common["tol"] = float(rng.choice([1e-2, 1e-4, 1e-4, 1e-6]))
    if kernel != "linear" and rng.random() < 0.15:
        common |= {"approximation": "nystroem", "n_components": int(rng.integers(2, 100))}
    tau = float(10 ** rng.uniform(-2.5, -0.3))
    family = rng.choice(6)
    if family == 0:
        estimator = TopPush(**common)
    elif family == 1:
        estimator = TopPushK(k=int(rng.integers(1, max(2, (n - m) // 2))), **common)
    elif family in (2, 3):
        estimator = (TauFPL, TopMeanK)[family - 2](tau=tau, **common)
    else:
        beta = float(rng.choice([0.1, 0.1, 1.0, 10 ** rng.uniform(-2, 1)]))
        estimator = (PatMat, PatMatNP)[family - 4](tau=tau, beta=beta, **common)
    if rng.random() < 0.25:  # another solver than the default
        fitting = solver_names(estimator._formulation(), [one.matrix for one in estimator._back_ends()])
        others = [name for name in fitting if name in ("newton", "pairs", "low-rank")]
        estimator.set_params(solver=str(rng.choice(others)))
    return estimator
