"""Solver races: objectives are those that estimators minimise, only the run is timed, and limits grow to the end."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def importable():
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, X.sum(axis=1) + 0.5 * rng.normal(size=80)


@pytest.mark.parametrize("formulation", ["TopPush", "TopPushK", "Pat&Mat"])
@pytest.mark.parametrize("is_kernel", [False, True])
def test_the_objective_of_a_top_problem_is_the_estimators(rows, formulation, is_kernel):
    from benchmarks.races.contenders import Clarabel, Toprank
    from benchmarks.races.problems import TopProblem

    X, noisy = rows
    problem = TopProblem(X, noisy > 1, 0.1, formulation, is_kernel)
    contender, rival = Toprank(problem), Clarabel(problem)
    model = contender.run(1000)
    objective = problem.objective(contender.read(model))
    assert objective == pytest.approx(model.objective_, rel=1e-9)
    assert problem.objective(rival.read(rival.run(200))) == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_the_objective_of_a_pair_problem_is_the_estimators(rows, loss):
    from benchmarks.races.contenders import OnPairs, Toprank
    from benchmarks.races.problems import PairProblem

    X, noisy = rows
    problem = PairProblem(X, np.digitize(noisy, [-1, 1]), 0.1, loss)
    contender, rival = Toprank(problem), OnPairs(problem)
    model = contender.run(1000)
    objective = problem.objective(contender.read(model))
    assert objective == pytest.approx(model.objective_, rel=1e-9)
    assert problem.objective(rival.read(rival.run(100_000))) == pytest.approx(objective, rel=1e-6)


@pytest.mark.filterwarnings("ignore")  # those of skglm
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.slow
def test_skglm_solves_the_problem_of_the_pairs(rows, loss):
    pytest.importorskip("skglm")
    from benchmarks.races.contenders import SkglmOnPairs, Toprank
    from benchmarks.races.problems import PairProblem

    X, noisy = rows
    problem = PairProblem(X[:30], np.digitize(noisy[:30], [-1, 1]), 0.1, loss)
    contender, rival = Toprank(problem), SkglmOnPairs(problem)
    objective = problem.objective(contender.read(contender.run(1000)))
    assert problem.objective(rival.read(rival.run(1000))) == pytest.approx(objective, rel=1e-5)


class Halving:
    """Halves its distance in each iteration; reading it takes long."""

    def run(self, limit):
        return limit

    def read(self, limit):
        from benchmarks.races.problems import Point

        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return Point(np.zeros(1), 2.0**-limit, passes=2.0 * limit, n_iter=limit)


def test_only_the_run_is_timed_and_limits_grow_until_it_arrives():
    from benchmarks.races.race import run_curves, won

    curves = run_curves(Halving(), 1, lambda point: point.squared_norm)
    assert curves["limits"] == [1, 2, 3, 4, 6, 9, 13, 19, 28, 42]  # 2⁻⁴² is below 1e-9, 2⁻²⁸ is not
    assert max(curves["seconds"]) < 0.01
    assert won(curves)["passes_to_target"] == 38  # 2⁻¹⁹ is the first below 1e-4
    assert won(curves)["last_excess"] == pytest.approx(2.0**-42, rel=1e-3)
