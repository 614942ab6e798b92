"""The displays as a user meets them: ways to build them, what is drawn, what is left alone."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PositiveClassWarning, TauFPL, WMWRanker
from toprank.metrics import positives_at_top, precision_at_k, tpr_at_fpr
from toprank.plots import (
    GainDisplay,
    LiftDisplay,
    NeymanPearsonDisplay,
    PrecisionAtKDisplay,
    PrecisionRecallAtTopDisplay,
    RocAtTopDisplay,
    ScoreDensityDisplay,
)

CURVES = [RocAtTopDisplay, PrecisionAtKDisplay, PrecisionRecallAtTopDisplay, GainDisplay, LiftDisplay]
ALL = [*CURVES, ScoreDensityDisplay, NeymanPearsonDisplay]
each_curve = pytest.mark.parametrize("display", CURVES, ids=lambda display: display.__name__)
each_display = pytest.mark.parametrize("display", ALL, ids=lambda display: display.__name__)


def sample(n=400, rate=0.2, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    return rng.normal(size=(n, 3)) + y[:, None], y


@pytest.fixture(scope="module")
def model():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(*sample(seed=1))


def data_of(display):
    return display.curves[0] if hasattr(display, "curves") else display.data


@each_display
def test_from_estimator_is_from_predictions(display, model):
    X, y = sample()
    one = display.from_estimator(model, X, y, threshold=0.0)
    other = display.from_predictions(y, model.decision_function(X), threshold=0.0)
    assert one.name == "LogisticRegression"
    for name in ("x", "y", "point", "edges", "positives", "thresholds", "fpr", "upper"):
        if hasattr(data_of(one), name):
            np.testing.assert_array_equal(getattr(data_of(one), name), getattr(data_of(other), name))


@each_curve
def test_drawn_line_is_the_curve(display):
    X, y = sample()
    drawn = display.from_predictions(y, X[:, 0], name="first feature", k=20)
    curve = drawn.curves[0]
    start = (
        1 if display is PrecisionRecallAtTopDisplay else 0
    )  # it starts at recall 0, at the height of the first point
    np.testing.assert_array_equal(drawn.line_.get_xdata()[start:], curve.x)
    np.testing.assert_array_equal(drawn.line_.get_ydata()[start:], curve.y)
    expected = {"RocAtTopDisplay": "steps-post", "PrecisionRecallAtTopDisplay": "steps-pre"}
    assert drawn.line_.get_drawstyle() == expected.get(display.__name__, "default")
    assert (drawn.point_.get_xdata()[0], drawn.point_.get_ydata()[0]) == curve.locate(curve.point)
    assert drawn.line_.get_label().replace("\n", " ").startswith("first feature, 20 alerts")
    assert drawn.ax_.get_xlabel()
    assert drawn.ax_.get_ylabel()


def test_zero_is_on_the_logarithmic_axis():
    y, score = sample()[1], sample()[0][:, 0]
    display = RocAtTopDisplay.from_predictions(y, score, max_fpr=0.01)
    ax, line = display.ax_, display.line_
    negatives = np.count_nonzero(y == 0)
    assert ax.get_xscale() == "symlog"
    assert ax.xaxis.get_transform().linthresh == pytest.approx(1 / negatives)
    assert ax.get_xlim()[0] < 0 < 1 < ax.get_xlim()[1]
    assert ax.get_xticks()[0] == 0
    assert ax.get_xticklabels()[0].get_text() == "0"
    at_zero = line.get_ydata()[line.get_xdata() == 0].max()
    assert at_zero == positives_at_top(y, score)
    assert not np.any((line.get_xdata() > 0) & (line.get_xdata() < ax.xaxis.get_transform().linthresh))
    place = ax.transData.transform([(0, 0), (1 / negatives, 0), (10 / negatives, 0), (100 / negatives, 0)])[:, 0]
    assert np.all(np.diff(place) > 0)
    assert place[3] - place[2] == pytest.approx(place[2] - place[1])
    assert f"TPR {tpr_at_fpr(y, score, max_fpr=0.01):.3g}" in line.get_label()


def test_second_model_with_more_negatives_widens_the_axis():
    first = RocAtTopDisplay.from_predictions([1, 0, 0, 1, 0], [5, 4, 3, 2, 1], name="a", max_fpr=0.1)
    X, y = sample()
    second = RocAtTopDisplay.from_predictions(y, X[:, 0], name="b", max_fpr=0.1, ax=first.ax_)
    negatives = np.count_nonzero(y == 0)
    assert second.ax_.xaxis.get_transform().linthresh == pytest.approx(1 / negatives)
    third = RocAtTopDisplay.from_predictions([1, 0, 0, 1, 0], [5, 4, 3, 2, 1], name="c", max_fpr=0.1, ax=first.ax_)
    assert third.ax_.xaxis.get_transform().linthresh == pytest.approx(1 / negatives)
    lines = [first.line_, second.line_, third.line_]
    for look in ("_color", "_unscaled_dash_pattern", "_marker"):
        looks = {str(getattr(line, look)) if look != "_marker" else line.get_marker() for line in lines}
        assert len(looks) == 3, look
    labels = first.ax_.get_legend_handles_labels()[1]
    assert labels.count("chance") == 1
    assert sum(line.get_gid() == "toprank reference max_fpr 0.1" for line in first.ax_.get_lines()) == 1


@each_curve
@pytest.mark.parametrize("xscale", ["log", "linear"])
def test_two_models_on_either_scale(display, xscale):
    X, y = sample(100)
    ax = Figure().add_subplot()
    for feature in range(2):
        drawn = display.from_predictions(y, X[:, feature], k=10, ax=ax, plot_kwargs={"xscale": xscale})
        low, high = ax.get_xlim()
        shown = drawn.line_.get_xdata()
        assert low < shown.min() <= shown.max() < high
    assert (ax.get_xscale() == "linear") == (xscale == "linear")
    ax.figure.draw_without_rendering()


def test_budget_of_k_alerts_is_a_line_through_the_points():
    X, y = sample()
    display = RocAtTopDisplay.from_predictions(y, X[:, 0], k=30)
    (budget,) = [line for line in display.ax_.get_lines() if line.get_gid() == "toprank reference k 30"]
    alerts = budget.get_xdata() * np.count_nonzero(y == 0) + budget.get_ydata() * np.count_nonzero(y)
    np.testing.assert_allclose(alerts, 30)
    point = display.curves[0].point
    assert np.interp(point.recall, budget.get_ydata(), budget.get_xdata()) == pytest.approx(point.fpr, abs=1e-3)


@each_curve
def test_folds(display):
    X, y = sample(302)  # folds of 76 and 75 rows
    results = cross_validate(LogisticRegression(), X, y, cv=4, return_estimator=True, return_indices=True)
    drawn = display.from_cv_results(results, X, y, k=15, confidence=0.8)
    band = drawn.band
    assert len(drawn.curves) == 4
    assert drawn.confidence == 0.8
    parts = zip(results["indices"]["test"], results["indices"]["train"], strict=True)
    assert drawn.test_over_train == pytest.approx(np.mean([len(test) / len(train) for test, train in parts]))
    assert band.x[-1] == min(curve.x[-1] for curve in drawn.curves)
    values = np.array([curve.at(band.x) for curve in drawn.curves])
    np.testing.assert_allclose(band.mean, values.mean(axis=0))
    assert np.all(band.lower <= band.mean + 1e-12)
    assert np.all(band.mean <= band.upper + 1e-12)
    assert np.any(band.lower < band.mean)
    for curve, estimator, rows in zip(drawn.curves, results["estimator"], results["indices"]["test"], strict=True):
        expected = precision_at_k(y[rows], estimator.decision_function(X[rows]), k=15)
        assert curve.point.precision == pytest.approx(expected)
    place = np.mean([curve.locate(curve.point) for curve in drawn.curves], axis=0)
    np.testing.assert_allclose([drawn.point_.get_xdata()[0], drawn.point_.get_ydata()[0]], place)
    assert drawn.band_ is not None
    assert "80 % band, mean of 4 folds" in drawn.ax_.get_legend_handles_labels()[1]
    for xscale in ("log", "linear"):
        drawn.plot(xscale=xscale).figure_.draw_without_rendering()


def test_bands_over_each_other_differ():
    """In edges and hatches, not only in colours, and none hides what is below."""
    X, y = sample(200)
    ax = None
    bands = []
    for column in range(3):
        display = PrecisionAtKDisplay.from_predictions(y, X[:, column], ax=ax)
        ax = display.ax_
        bands.append(display.band_)
    looks = {(band.get_hatch(), str(band.get_linestyle())) for band in bands}
    assert len(looks) == 3
    assert all(band.get_facecolor()[0, 3] < 0.2 < band.get_edgecolor()[0, 3] for band in bands)
    display.figure_.draw_without_rendering()


def test_folds_with_dataframe_weights_and_strings():
    X, y = sample(300)
    frame, labels = pd.DataFrame(X, columns=list("abc")), np.where(y == 1, "yes", "no")
    weight = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    results = cross_validate(LogisticRegression(), frame, labels, cv=3, return_estimator=True, return_indices=True)
    drawn = RocAtTopDisplay.from_cv_results(results, frame, labels, sample_weight=weight, pos_label="yes")
    kept = [np.count_nonzero(weight[rows]) for rows in results["indices"]["test"]]
    assert [curve.ranked.total for curve in drawn.curves] == kept


def test_bad_folds():
    X, y = sample(60)
    results = cross_validate(LogisticRegression(), X, y, cv=2, return_estimator=True, return_indices=True)
    with pytest.raises(ValueError, match="cv_results has no 'indices'; call cross_validate"):
        RocAtTopDisplay.from_cv_results({"estimator": []}, X, y)
    with pytest.raises(ValueError, match="X has 30 rows, but the folds name row 59"):
        RocAtTopDisplay.from_cv_results(results, X[:30], y[:30])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        RocAtTopDisplay.from_cv_results(results, X, y[:30])
    one = {"estimator": results["estimator"][:1], "indices": {k: v[:1] for k, v in results["indices"].items()}}
    with pytest.raises(ValueError, match="at least two folds, got 1"):
        RocAtTopDisplay.from_cv_results(one, X, y)
    curves = [RocAtTopDisplay.from_predictions(y, X[:, i]).curves[0] for i in range(2)]
    with pytest.raises(ValueError, match="need test_over_train"):
        RocAtTopDisplay(curves)


def test_nothing_global_changes():
    """In a new process, as another test may have loaded pyplot."""
    code = (
        "import sys, toprank.plots as plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import matplotlib\n"
        "keys = set(matplotlib.rcParams) - {'backend'}  # to read it loads pyplot\n"
        "before = {key: matplotlib.rcParams[key] for key in keys}\n"
        "for name in sys.argv[1:]:\n"
        "    display = getattr(plots, name).from_predictions([1, 0, 1, 0], [4, 3, 2, 1])\n"
        "    assert display._repr_png_()\n"
        "assert {key: matplotlib.rcParams[key] for key in keys} == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, *(display.__name__ for display in ALL)], check=True)


def test_matplotlib_is_named_when_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"RocAtTopDisplay.plot needs matplotlib; .*toprank\[plot\]"):
        RocAtTopDisplay.from_predictions([0, 1], [0, 1])


@each_display
def test_plot_again_and_on_given_axes(display):
    X, y = sample(60)
    drawn = display.from_predictions(y, X[:, 0])
    first = drawn.figure_
    assert drawn._repr_png_().startswith(b"\x89PNG")
    ax = Figure().add_subplot()
    assert drawn.plot(ax) is drawn
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure is not first
    assert drawn._repr_png_() is None
    assert drawn.plot(legend=None).ax_.get_legend() is None
    assert drawn.plot(name="other", legend="upper right").ax_.get_legend() is not None


@each_display
def test_legend_does_not_cover_the_axes_of_a_new_figure(display):
    X, y = sample(300)
    figure = Figure(figsize=(3.5, 2.6), layout="constrained")
    drawn = display.from_predictions(y, X[:, 0], name="a model", max_fpr=0.05, ax=figure.add_subplot())
    figure.draw_without_rendering()
    legend = drawn.ax_.get_legend().get_window_extent()
    assert legend.y0 >= drawn.ax_.get_window_extent().y1 - 1
    assert legend.x1 <= figure.bbox.x1
    assert legend.y1 <= figure.bbox.y1
    assert drawn.ax_.get_window_extent().height > 0.4 * figure.bbox.height


@pytest.mark.covering(1)
@each_display
@pytest.mark.parametrize(
    "rows",
    [
        ([1, 0], [0.0, 1.0]),
        ([1, 0], [0.5, 0.5]),
        ([1] + [0] * 30, np.arange(31)),
        (np.arange(100) % 2, np.arange(100) // 50),
    ],
    ids=["wrong", "tied", "one positive", "two scores"],
)
def test_small_and_tied_lists_are_drawn(display, rows):
    drawn = display.from_predictions(*rows, name="model")
    drawn.figure_.draw_without_rendering()
    if display in CURVES and display.xscale == "log":
        drawn.plot(xscale="linear").figure_.draw_without_rendering()


@each_curve
def test_a_million_rows_are_few_vertices(display):
    rng = np.random.default_rng(0)
    y = (rng.random(1_000_000) < 0.01).astype(np.int8)
    score = rng.normal(size=1_000_000).astype(np.float32) + 2 * y
    drawn = display.from_predictions(y, score, max_fpr=0.001)
    assert len(drawn.line_.get_xdata()) <= 8001
    if display is RocAtTopDisplay:
        assert positives_at_top(y, score) in drawn.line_.get_ydata()
        assert drawn.point_.get_ydata()[0] == tpr_at_fpr(y, score, max_fpr=0.001)


def test_gain_on_a_logarithmic_axis_bends_with_the_straight_line():
    """Half of the list is one tie run: its straight line is no straight line over log x."""
    y = np.array([1, 0] * 50)
    drawn = GainDisplay.from_predictions(y, np.arange(100) < 50, plot_kwargs={"xscale": "log"})
    x, height = drawn.line_.get_xdata(), drawn.line_.get_ydata()
    assert x.min() > 0
    np.testing.assert_allclose(height, x, rtol=1e-12)
    assert len(x) >= 100


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_labels_of_strings(positive):
    X, y = sample()
    labels = np.where(y == 1, "yes", "no")
    model = LogisticRegression().fit(X, labels)
    drawn = RocAtTopDisplay.from_estimator(model, X, labels, pos_label=positive, max_fpr=0.1)
    score = model.decision_function(X) * (1 if positive == "yes" else -1)
    assert drawn.curves[0].point.recall == tpr_at_fpr(labels, score, max_fpr=0.1, pos_label=positive)
    if positive == "yes":
        with pytest.warns(PositiveClassWarning, match="LogisticRegression takes 'yes'"):
            default = RocAtTopDisplay.from_estimator(model, X, labels, max_fpr=0.1)
        assert default.curves[0].point == drawn.curves[0].point


def test_threshold_of_the_model_is_marked():
    X, y = sample()
    for model, threshold in ((LogisticRegression(), 0.0), (RandomForestClassifier(10, random_state=0), 0.5)):
        model.fit(X[:200], y[:200])
        alerts = np.count_nonzero(model.predict(X[200:]))
        for display in (PrecisionRecallAtTopDisplay, ScoreDensityDisplay):
            point = data_of(display.from_estimator(model, X[200:], y[200:])).point
            assert (point.kind, point.threshold) == ("threshold", threshold)
            if threshold == 0.0:
                assert point.alerts == alerts
        other = PrecisionRecallAtTopDisplay.from_estimator(model, X[200:], y[200:], k=5)
        assert other.curves[0].point.kind == "k"
        assert RocAtTopDisplay.from_estimator(model, X[200:], y[200:]).curves[0].point is None


def test_rankers_regressors_and_sparse_rows():
    X, y = sample()
    ranker = WMWRanker().fit(X, y)
    assert RocAtTopDisplay.from_estimator(ranker, X, y).name == "WMWRanker"
    regressor = LinearRegression().fit(X, y)
    drawn = PrecisionRecallAtTopDisplay.from_estimator(regressor, X, y)
    assert drawn.curves[0].point is None
    sparse = TauFPL(tau=0.5).fit(csr_array(X), y)
    one, other = (GainDisplay.from_estimator(sparse, rows, y, k=9) for rows in (csr_array(X), X))
    assert one.curves[0].point.recall == pytest.approx(other.curves[0].point.recall)
    with pytest.raises(TypeError, match="StandardScaler has neither decision_function nor predict"):
        RocAtTopDisplay.from_estimator(StandardScaler().fit(X), X, y)
    with pytest.raises(ValueError, match="Got 3 classes"):
        RocAtTopDisplay.from_estimator(LogisticRegression().fit(X, np.arange(400) % 3), X, y)


@each_display
def test_bad_input(display):
    with pytest.raises(ValueError, match="not finite"):
        display.from_predictions([0, 1, 1], [0.0, np.nan, 1.0])
    with pytest.raises(ValueError, match="empty"):
        display.from_predictions([], [])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        display.from_predictions([0, 1, 1], [0.0, 1.0])
    with pytest.raises(ValueError, match="without pos_label they must be"):
        display.from_predictions(["a", "b"], [0.0, 1.0])
    with pytest.raises(
        TypeError, match=f"{display.__name__} has no parameter 'colour'; the computation takes .*thresh"
    ):
        display.from_predictions([0, 1], [0.0, 1.0], colour="red")


def test_bad_scale():
    with pytest.raises(ValueError, match="xscale must be 'log' or 'linear', got 'symlog'"):
        RocAtTopDisplay.from_predictions([0, 1], [0, 1], plot_kwargs={"xscale": "symlog"})


def test_no_alerts_are_said():
    drawn = PrecisionRecallAtTopDisplay.from_predictions([0, 1], [0, 1], name="model", threshold=7)
    assert drawn.line_.get_label() == "model, score > 7: no alerts"
    drawn.figure_.draw_without_rendering()


def test_no_alerts_in_a_fold_are_said():
    X, y = sample(60)
    results = cross_validate(LogisticRegression(), X, y, cv=2, return_estimator=True, return_indices=True)
    drawn = PrecisionRecallAtTopDisplay.from_cv_results(results, X, y, name="model", threshold=1e9)
    assert drawn.line_.get_label() == "model, score > 1e+09: no alerts in a fold".replace(", ", ",\n")


def test_legend_above_in_a_part_of_a_figure():
    X, y = sample(60)
    for layout, place in (("constrained", "above"), (None, "inside")):
        left, _ = Figure(figsize=(8, 3), layout=layout).subfigures(1, 2)
        drawn = GainDisplay.from_predictions(y, X[:, 0], name="model", ax=left.add_subplot())
        drawn.ax_.figure.figure.draw_without_rendering()
        above = drawn.ax_.get_legend().get_window_extent().y0 >= drawn.ax_.get_window_extent().y1 - 1
        assert above == (place == "above")


def test_properties_of_the_line():
    style = {"c": "red", "lw": 3, "label": "mine", "gid": "mine"}
    drawn = GainDisplay.from_predictions(
        [0, 1], [0, 1], plot_kwargs={"curve_kwargs": style, "plot_chance_level": False}
    )
    assert (drawn.line_.get_color(), drawn.line_.get_linewidth(), drawn.line_.get_label()) == ("red", 3, "mine")
    assert len(drawn.ax_.get_lines()) == 1


def test_other_artists_on_the_axes():
    ax = Figure().add_subplot()
    ax.bar([0.2, 0.4], [0.1, 0.2], width=0.05, label="bars of the user")
    drawn = GainDisplay.from_predictions([0, 1], [0, 1], name="model", ax=ax)
    assert drawn.ax_.get_legend().get_texts()[0].get_text() == "model"
    assert "bars of the user" in drawn.ax_.get_legend_handles_labels()[1]


def test_docstrings_have_their_shared_part():
    for display in CURVES:
        assert "{curves}" not in display.__doc__
        assert f"curves : {display.data_class.__name__} or list of" in display.__doc__
