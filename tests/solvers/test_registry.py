"""The records of the solvers: what fits, why not, what "auto" takes, and the table of the documentation."""

from pathlib import Path

import numpy as np
import pytest

import toprank
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES, get_surrogate
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.solvers import traits
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.problem import Problem
from toprank.solvers.registry import SOLVERS, check_solver, phases_for, require_fit, solver_names, solver_table

BOTH = ("rows", "kernel")
SETTINGS = {"random_state": 0, "cache_size": 10.0}


def formulation_of(kind, surrogate="quadratic"):
    loss = get_surrogate(surrogate)
    if kind == "grill":
        return Formulation(loss, Quantile(0.2), false_positives=True)
    return Formulation(loss, TopMean(k=2) if kind == "mean" else SurrogateQuantile(0.2, 0.5, loss))


def linear_problem(formulation):
    rng = np.random.default_rng(0)
    return Problem(rng.standard_normal((40, 3)), np.arange(40) % 3 == 0, np.ones(40), formulation, 0.1)


def kernel_problem(formulation, kernel="rbf", degree=3.0):
    linear = linear_problem(formulation)
    gram = Gram(Kernel.resolve(kernel, linear.X, "scale", degree, 1.0), linear.X, 10.0)
    return KernelProblem(gram, linear.positive, linear.weights, formulation, 0.1)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("kind", ["mean", "quantile", "grill"])
def test_what_fits_runs_and_gives_a_solution(kind, surrogate):
    formulation = formulation_of(kind, surrogate)
    for problem in (linear_problem(formulation), kernel_problem(formulation)):
        for name in solver_names(formulation, [problem.matrix]):
            phases = phases_for(name, problem, SETTINGS)
            if name == "auto" and kind == "grill" and problem.matrix == "kernel":
                assert not phases
                continue
            for phase in phases:
                solution = phase.solve(problem, tol=1e-2, start=None, max_iter=3, **phase.options)
                assert np.isfinite(solution.primal), phase.name
                assert solution.dual <= solution.primal * (1 + 1e-9), phase.name


@pytest.mark.parametrize(
    ("kind", "surrogate", "matrices", "expected"),
    [
        ("mean", "huber", ("rows",), "newton pairs apg sgd"),
        ("mean", "logistic", BOTH, "newton apg sgd low-rank"),
        ("mean", "hinge", ("kernel",), "pairs low-rank dual-cd"),
        ("quantile", "quadratic", BOTH, "newton pairs sgd low-rank dual-cd"),
        ("quantile", "huber", BOTH, "newton sgd low-rank"),
        ("grill", "quadratic", BOTH, "sgd"),
    ],
)
def test_names_that_fit(kind, surrogate, matrices, expected):
    assert solver_names(formulation_of(kind, surrogate), matrices) == ("auto", *expected.split())


@pytest.mark.parametrize(
    ("name", "kind", "surrogate", "matrices", "message"),
    [
        ("simplex", "mean", "hinge", BOTH, "'low-rank', 'dual-cd' for TopPush, got 'simplex'$"),
        ("restarts", "mean", "hinge", BOTH, "got 'restarts'$"),
        (["newton"], "mean", "hinge", BOTH, r"got \['newton'\]$"),
        (
            "pairs",
            "mean",
            "logistic",
            ("rows",),
            "'sgd' for TopPush, got 'pairs', which needs a piecewise .*quantile.$",
        ),
        ("pairs", "mean", "logistic", BOTH, r"which needs [^()]* \('quadratic' for the surrogate quantile\)$"),
        ("newton", "mean", "hinge", ("kernel",), "got 'newton', which works on rows of features$"),
        ("low-rank", "mean", "hinge", ("rows",), "got 'low-rank', which works on kernel values$"),
        (
            "newton",
            "grill",
            "hinge",
            ("rows",),
            "which needs a threshold that is the .* or the surrogate quantile",
        ),
    ],
)
def test_one_readable_error(name, kind, surrogate, matrices, message):
    with pytest.raises(ValueError, match=message):
        check_solver(name, formulation_of(kind, surrogate), matrices, "TopPush")


def test_a_problem_that_does_not_fit_is_refused_with_what_it_lacks():
    for name, problem in (
        ("apg", linear_problem(formulation_of("quantile"))),
        ("dual-cd", kernel_problem(formulation_of("mean", "huber"))),
        ("restarts", linear_problem(formulation_of("mean"))),
    ):
        with pytest.raises(
            ValueError, match=rf"solver='{name}' needs .*, got '{problem.formulation.surrogate.name}' with"
        ):
            require_fit(name, problem)
    require_fit("apg", linear_problem(formulation_of("mean")))


def test_auto_with_a_kernel(monkeypatch):
    def names(*args, **options):
        return [phase.name for phase in phases_for("auto", kernel_problem(*args, **options), SETTINGS)]

    assert names(formulation_of("mean")) == ["pairs", "low-rank"]
    assert names(formulation_of("mean", "logistic")) == ["low-rank"]
    assert names(formulation_of("quantile")) == ["pairs", "low-rank"]
    assert names(formulation_of("quantile", "hinge")) == ["low-rank"]
    assert names(formulation_of("mean"), "poly", 2) == ["low-rank"]  # 10 directions for 40 rows
    assert names(formulation_of("mean"), "poly", 4) == ["pairs", "low-rank"]
    monkeypatch.setattr(traits, "ROWS_IN_MEMORY", 39)
    assert names(formulation_of("mean")) == ["pairs", "low-rank"]
    assert names(formulation_of("quantile")) == ["low-rank"]
    first = phases_for("auto", kernel_problem(formulation_of("mean")), SETTINGS)[0]
    assert first.budget == 50_000 + 100 * 40
    assert first.options == {"cache_size": 10.0}


@pytest.mark.parametrize(
    ("surrogate", "n_features", "cache_size", "k", "expected"),
    [
        ("quadratic", 2, 0.1, None, ["low-rank"]),
        ("quadratic", 2, 50.0, None, ["pairs", "low-rank"]),  # all kernel values fit
        ("quadratic", 30, 0.1, None, ["pairs", "low-rank"]),  # hardly two rows are alike
        ("hinge", 2, 0.1, None, ["pairs", "low-rank"]),
        ("quadratic", 2, 0.1, 3.0, ["pairs", "low-rank"]),
    ],
)
def test_auto_for_a_largest_score_of_more_rows_than_fit(surrogate, n_features, cache_size, k, expected, rng):
    X = rng.standard_normal((400, n_features))
    formulation = Formulation(get_surrogate(surrogate), TopMean(k=k), "negatives")
    gram = Gram(Kernel.resolve("rbf", X, 1.0), X, cache_size)
    problem = KernelProblem(gram, np.arange(400) % 3 == 0, np.ones(400), formulation, 0.1)
    assert [phase.name for phase in phases_for("auto", problem, {"cache_size": cache_size})] == expected


def test_records_are_complete():
    for solver in SOLVERS:
        assert callable(solver.load())
        assert solver.idea
        assert all(turn.words for turn in solver.turns)


def test_docstrings_name_what_can_be_chosen():
    for model, kind in ((toprank.TauFPL, "mean"), (toprank.PatMat, "quantile"), (toprank.GrillNP, "grill")):
        matrices = BOTH if kind != "grill" else ("rows",)
        note = model.__doc__[model.__doc__.index("solver : ") : model.__doc__.index("tol : ")]
        fitting = {name for loss in SURROGATES for name in solver_names(formulation_of(kind, loss), matrices)}
        others = {solver.name for solver in SOLVERS} - fitting
        assert all(f'"{name}"' in note for name in fitting)
        assert not any(f'"{name}" (' in note for name in others)
        assert all(f'"{name}"' in model.__doc__ and loss.formula in model.__doc__ for name, loss in SURROGATES.items())


def test_the_page_has_the_table_of_the_records():
    page = Path(__file__).parents[2] / "docs" / "theory" / "solvers.md"
    assert solver_table() in page.read_text(encoding="utf-8"), f"paste this into {page.name}:\n{solver_table()}"
