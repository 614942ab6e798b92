"""The parts of the docstrings that the estimators of the top family share."""

from textwrap import fill

from toprank.docstrings import filled
from toprank.formulations.surrogates import SURROGATES, get_surrogate
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean
from toprank.solvers.problem import Matrix
from toprank.solvers.registry import solver_notes

_PARAMETERS = """\
alpha : float, default=0.1
    Weight of the penalty ``alpha / 2 * ||w||²``, against the *mean* loss; λ of the papers, and ``C = 1 / (alpha * m)``
    of support vector machines with m positives. The default is for standardised features: on nine data sets it cost
    0.01 to 0.05 of the true positive rate against the best penalty of each set (``benchmarks/default_alpha.py``).
surrogate : {surrogates}, default="quadratic"
    The loss ℓ, scaled to 1 at zero:
    {formulas}.
    With a loss ℓ(ϑz) of another scale the ranking is that of alpha / ϑ² here.
{kernel}solver : str, default="auto"
    {solvers}
tol : float, default=1e-4
    Stop when the duality gap is at most `tol` times the objective.
max_iter : int, optional
    Limit of iterations, of several solvers in turn together; by default that of the solver.
{cache}{budget}warm_start : bool, default=False
    Start from the last solution.
random_state : int, RandomState or None, default=None
    Seed of the stochastic parts; the default solver of a convex formulation has none.
verbose : int, default=0
    With 1, log the progress to the logger "toprank".
{pos_label}""".replace("{surrogates}", "{" + ", ".join(f'"{name}"' for name in SURROGATES) + "}").replace(
    "{formulas}", ", ".join(loss.formula for loss in SURROGATES.values())
)

_KERNEL = """\
kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
    Kernel k(x, x'); a function of two blocks of rows returns the matrix of their values. For "precomputed" X is that
    matrix. With a kernel of values about 1 smaller penalties are of use, such as alpha = 1e-3.
gamma : {"scale", "auto"} or float, default="scale"
    Parameter of "rbf", ``exp(-gamma * ||x - x'||²)``, "poly" and "sigmoid"; "scale" is ``1 / (n_features * X.var())``,
    where rows count by their weights, "auto" is ``1 / n_features``.
degree, coef0 : float, default=3 and 0.0
    Parameters of "poly", ``(gamma * x·x' + coef0) ** degree``, and "sigmoid", ``tanh(gamma * x·x' + coef0)``. The
    latter is seldom positive semidefinite; then `fit` says so, and an approximation takes its positive part.
approximation : {"auto", None, "nystroem", "fourier"}, default="auto"
    None is exact. Otherwise the kernel is replaced by features, as many as `n_components`, and the model is linear in
    them: it predicts without its training rows. "fourier" is for "rbf" only. "auto" is exact up to 50,000 rows; beyond,
    with ``solver="auto"``, and on Dask arrays it is "nystroem", which an `ApproximationWarning` says.
n_components : int, default=500
    Number of features of the approximation.
"""

_CACHE = """\
cache_size : float, default=500
    Megabytes for kernel values that are kept; of a Dask array for features in place of a kernel, in all blocks.
"""

_BUDGET = """\
threshold : {"budget", "trained"}, default="budget"
    What `predict` takes for the threshold, whatever the direction w. "budget": one above which the share of the budget
    lies, of rows that were not learned from: it is set on out-of-fold scores, by five more fits that start from the
    solution and take two to three times as long as the fit alone, on Dask arrays two to five times. "trained": the
    threshold of the formulation, at no cost; it may spend much less than the budget, or more. Scores rank the rows in
    the same way with both, so searches and classifiers that set a threshold of their own leave it at "trained". With
    fewer than five rows of a class that the budget counts, or w = 0, it is the trained one.
"""

_BUDGET_ATTRIBUTES = """\
trained_threshold_ : float
    The threshold t of the formulation.
threshold_from_ : {"out-of-fold scores", "training scores", "trained"}
    What `threshold_` was set on; "training scores" if the fit was interrupted.
"""

_ATTRIBUTES = """\
Attributes
----------
coef_ : ndarray of shape (1, n_features)
    The direction w{coef_note}.
{expansion}solver_ : str
    The solver that ran; of several in turn, the last.
intercept_ : ndarray of shape (1,)
    Minus the threshold.
threshold_ : float
    The threshold on the scores ``X @ w`` that `predict` and `decision_function` use{threshold_note}.
{budget_attributes}objective_ : float
    The value that was minimised.
dual_objective_ : float
    A lower bound of the optimum{bound_note}.
dual_gap_ : float
    ``(objective_ - dual_objective_) / objective_``: no model has an objective lower by more than this share.
n_iter_ : int
    Number of iterations.
interrupted_ : bool
    Whether Ctrl-C ended the fit, so that this is the best model so far, as a `ConvergenceWarning` says. Ctrl-C is
    raised where nothing was found yet, and in a search or a cross-validation, which then ends as a whole.
history_ : dict of ndarray
    One entry an iteration: ``iteration``, ``passes`` over the data, ``seconds``, ``primal``, ``dual``, ``gap``.
classes_ : ndarray of shape (2,)
    The labels; the second one is the positive class.
n_features_in_ : int
    Number of features seen in `fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X had names."""

_EXPANSION = """\
support_ : ndarray of shape (n_support,)
    With a kernel: numbers of the training rows that w is made of.
support_vectors_ : {ndarray, CSR} of shape (n_support, n_features)
    With a kernel: these rows; empty if the kernel is precomputed.
dual_coef_ : ndarray of shape (1, n_support)
    With a kernel: their coefficients, w = Σ dual_coef · φ(x).
feature_map_ : callable
    With an approximation: the features of a block of rows. The certificate is that of the problem with these features.
"""

_AUTO = '"auto" takes what fits formulation and data, one after the other where one does not arrive. There are '
_BOTH: tuple[Matrix, ...] = ("rows", "kernel")
_SOLVERS = {
    kind: fill(_AUTO + solver_notes(threshold, matrices) + ".", 116, subsequent_indent="    ", break_on_hyphens=False)
    for kind, threshold, matrices in (
        ("mean", TopMean(), _BOTH),
        ("smooth", SurrogateQuantile(0.1, 1.0, get_surrogate("quadratic")), _BOTH),
        ("quantile", Quantile(0.1), _BOTH[:1]),
    )
}
_NO_BOUND = ": minus infinity, as the problem is not convex"


def _texts() -> dict[str, str]:
    """The texts that stand for {shared:kind} in a class docstring: the last parameters, and all attributes."""
    texts = {}
    for kind, solvers in {"top": _SOLVERS["mean"], **_SOLVERS}.items():
        has_kernel, has_budget = kind != "quantile", kind != "top"
        filling = {
            "solvers": solvers,
            "kernel": _KERNEL if has_kernel else "",
            "cache": _CACHE if has_kernel else "",
            "bound_note": "" if has_kernel else _NO_BOUND,
            "coef_note": ", of a linear model" if has_kernel else "",
            "expansion": _EXPANSION if has_kernel else "",
            "budget": _BUDGET if has_budget else "",
            "budget_attributes": _BUDGET_ATTRIBUTES if has_budget else "",
            "threshold_note": "" if has_budget else ": the t of the formulation",
        }
        texts[f"shared:{kind}"] = filled(_PARAMETERS + "\n\n" + _ATTRIBUTES, filling)
    return texts


SHARED_TEXT = _texts()
