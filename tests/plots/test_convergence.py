"""Gaps of solvers as they are drawn."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import Grill, PatMatNP, TauFPL, WMWRanker
from toprank.plots import ConvergenceDisplay, ConvergenceTrace


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.3).astype(int)
    return rng.normal(size=(300, 4)) + y[:, None], y


def test_lines_are_the_histories(rows):
    models = {"first": PatMatNP(tau=0.1).fit(*rows), "second": TauFPL(tau=0.1, solver="apg", tol=1e-2).fit(*rows)}
    for x in ("iteration", "passes", "seconds"):
        display = ConvergenceDisplay.from_estimators(models, plot_kwargs={"x": x})
        for line, model in zip(display.lines_, models.values(), strict=True):
            np.testing.assert_array_equal(line.get_xdata(), model.history_[x])
            np.testing.assert_array_equal(line.get_ydata(), model.history_["gap"])
        assert display.ax_.get_yscale() == "log"
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels == ["first", "second", "tol 0.0001", "tol 0.01"]
    assert len({line.get_color() for line in display.lines_}) == 2
    assert len({line.get_marker() for line in display.lines_}) == 2


def test_pipeline_and_pairwise_ranker(rows):
    pipeline = make_pipeline(StandardScaler(), PatMatNP(tau=0.1)).fit(*rows)
    assert ConvergenceDisplay.from_estimator(pipeline).traces[0].name == "PatMatNP"
    ranker = WMWRanker().fit(*rows)
    trace = ConvergenceTrace.from_estimator(ranker, name="pairs")
    assert trace.name == "pairs"
    assert trace.gap[-1] == pytest.approx(ranker.suboptimality_ / ranker.objective_)


def test_folds(rows):
    results = cross_validate(PatMatNP(tau=0.1), *rows, cv=3, return_estimator=True)
    display = ConvergenceDisplay.from_cv_results(results)
    assert [trace.name for trace in display.traces] == ["fold 1", "fold 2", "fold 3"]
    with pytest.raises(ValueError, match="return_estimator=True"):
        ConvergenceDisplay.from_cv_results({})


def trace_of(gap, seconds=None):
    count = np.arange(float(len(gap)))
    history = {"iteration": count, "passes": count, "seconds": count if seconds is None else seconds, "gap": gap}
    return ConvergenceTrace.from_estimator(SimpleNamespace(history_=history))


def test_zero_and_unknown_gaps():
    display = ConvergenceDisplay([trace_of(np.array([np.inf, 1.0, 0.1, 0.0]))]).plot()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [1.0, 0.1, np.finfo(float).eps])
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [1, 2, 3])
    display.figure_.draw_without_rendering()
    log = display.plot(xscale="log", x="passes")
    np.testing.assert_array_equal(log.lines_[0].get_xdata(), [1, 2, 3])


def test_one_iteration_is_seen():
    (line,) = ConvergenceDisplay([trace_of(np.array([0.5]))]).plot().lines_
    assert line.get_markevery() is None
    assert line.get_marker() not in ("", "None", None)


def test_models_without_a_gap(rows):
    with pytest.raises(ValueError, match="LogisticRegression has no history_"):
        ConvergenceDisplay.from_estimator(LogisticRegression().fit(*rows))
    with pytest.warns(ConvergenceWarning):
        grill = Grill(tau=0.1, max_iter=20, threshold="trained", random_state=0).fit(*rows)
    with pytest.raises(ValueError, match="Grill has no lower bound"):
        ConvergenceDisplay.from_estimator(grill)
    with pytest.raises(ValueError, match="at least one"):
        ConvergenceDisplay([])


@pytest.mark.parametrize(("option", "value"), [("x", "epochs"), ("xscale", "symlog")])
def test_bad_options(option, value):
    with pytest.raises(ValueError, match=f"{option} must be .* got '{value}'"):
        ConvergenceDisplay([trace_of(np.array([0.5]))]).plot(**{option: value})
