"""The parts of the docstrings that the estimators of the top family share."""

_PARAMETERS = """\
alpha : float, default=0.1
    Weight of the penalty ``alpha / 2 * ||w||²``, against the *mean* loss; λ of the papers, and ``C = 1 / (alpha * m)``
    of support vector machines with m positives. The default is for standardised features: on nine data sets it cost
    0.01 to 0.05 of the true positive rate against the best penalty of each set (``benchmarks/default_alpha.py``).
surrogate : {"quadratic", "hinge", "huber", "logistic", "exponential"}, default="quadratic"
    The loss ℓ, scaled to 1 at zero: ``(1 + z)₊²``, ``(1 + z)₊``, the hinge with a rounded corner,
    ``log2(1 + exp(z))``, ``exp(z)``.
solver : str, default="auto"
    {solvers}
tol : float, default=1e-4
    Stop when the duality gap is at most `tol` times the objective.
max_iter : int, optional
    Limit of iterations; by default that of the solver.
warm_start : bool, default=False
    Start from the last solution.
random_state : int, RandomState or None, default=None
    Seed of the stochastic parts; the default solver of a convex formulation has none.
verbose : int, default=0
    With 1, log the progress to the logger "toprank"."""

_ATTRIBUTES = """\
coef_ : ndarray of shape (1, n_features)
    The direction w.
intercept_ : ndarray of shape (1,)
    Minus the threshold.
threshold_ : float
    The threshold t on the scores ``X @ w``.
objective_ : float
    The value that was minimised.
dual_objective_ : float
    A lower bound of the optimum{bound_note}.
dual_gap_ : float
    ``(objective_ - dual_objective_) / objective_``: no model has an objective lower by more than this share.
n_iter_ : int
    Number of iterations.
history_ : dict of ndarray
    One entry an iteration: ``iteration``, ``passes`` over the data, ``seconds``, ``primal``, ``dual``, ``gap``.
classes_ : ndarray of shape (2,)
    The labels; the second one is the positive class.
n_features_in_ : int
    Number of features seen in `fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X had names."""

_SOLVERS = {
    "mean": '"auto" is "newton", a certified interior-point method with working sets; "apg" is the accelerated\n'
    '    gradient method of the TopPush paper; "sgd" the basic stochastic gradient of the framework paper.',
    "smooth": '"auto" is "newton", Newton\'s method with a certificate; "sgd" is the stochastic gradient with delayed\n'
    "    scores of the framework paper (Algorithm 3.1).",
    "quantile": '"auto" descends from several starting points and keeps the best; "sgd" is the basic stochastic\n'
    "    gradient of the framework paper.",
}
_NO_BOUND = ": minus infinity, as the problem is not convex"


def document(text: str) -> str:
    """Fill the placeholders {parameters:kind} and {attributes:kind} of a class docstring."""
    for kind, solvers in _SOLVERS.items():
        note = _NO_BOUND if kind == "quantile" else ""
        text = text.replace("{parameters:" + kind + "}", _PARAMETERS.replace("{solvers}", solvers))
        text = text.replace("{attributes:" + kind + "}", _ATTRIBUTES.replace("{bound_note}", note))
    return text
