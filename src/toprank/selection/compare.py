"""Compare estimators by cross-validation, with paired tests and certificates."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, count
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed

from toprank.decision._labels import Coding, agreed
from toprank.decision._rows import check_rows, splits_of
from toprank.exceptions import Message
from toprank.inspection import certificate_of, model_name
from toprank.metrics.scorers import positive_of
from toprank.selection._progress import track
from toprank.selection._scorers import clone_for, named_scorer, scored
from toprank.selection.comparison import Comparison
from toprank.selection.paired_tests import corrected_t_test, holm

Estimators = Mapping[str, Any] | Sequence[Any]
Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


def compare(
    estimators: Estimators,
    X: Any,
    y: Any,
    *,
    metrics: Any = None,
    cv: Any = 5,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: int | None = 0,
    verbose: int = 0,
    pos_label: Any = None,
) -> Comparison:
    """Compare estimators on the same folds: means, paired tests, times, certificates.

    Parameters
    ----------
    estimators : dict or list
        Names and estimators; of a list the names are those of the classes, of a pipeline's last step, numbered where
        they repeat. They are cloned and not changed.
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels.
    metrics : str, tuple, list or dict, optional
        What to measure; the first one sorts the table. Each is a name of a scorer of `toprank.metrics` or scikit-learn,
        a tuple of a name and its parameters such as ``("tpr_at_fpr", {"max_fpr": 0.01})``, or a scorer; a dict gives
        them names, and names that repeat are numbered. By default the true positive rate at a false positive rate of
        1 %, the positives above the first negative and the area under the ROC curve. Whatever the two labels are,
        estimators and scorers by name get 1 and 0 for them; a function of your own gets your labels.
    cv : int, splitter or iterable of splits, default=5
        Folds, the same for all. A number makes shuffled folds, stratified for labels.
    groups : array-like of shape (n_samples,), optional
        Groups for the splitter.
    n_jobs : int, optional
        How many fits at the same time. The table is the same whatever it is, but for the times.
    random_state : int or None, default=0
        Seed of the folds that a number makes, and of every estimator whose own `random_state` is None. With None these
        stay random.
    verbose : int, default=0
        With 1 a progress bar on standard error if rich is installed, else lines to the logger "toprank".
    pos_label : label, optional
        The positive class, the one to find; an estimator or a metric that names it is enough. By default 1, for labels
        0 and 1, -1 and 1, or False and True. Of two other labels the last in sorted order is taken, with a
        `PositiveClassWarning`.

    Returns
    -------
    Comparison
        A table with a row for each estimator and metric: its `rows`, `to_pandas` and `to_polars`; it prints readably.

    Notes
    -----
    p-values are those of the corrected resampled t-test of Nadeau and Bengio, against the best mean of each metric.
    Which one is best is seen only afterwards, so `p_adjusted` is Holm's correction over the tests of *all* pairs:
    whatever the best is, the statements hold together.

    An estimator that fails in a fold has no mean and stands last, with the error; the others keep their results.
    Warnings are collected in the table instead of being shown.

    References
    ----------
    Nadeau and Bengio, Inference for the generalization error, Machine Learning 52, 2003.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from toprank import PatMatNP, compare
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, separation=3.0, random_state=0)
    >>> result = compare([PatMatNP(), LogisticRegression()], X, y, metrics=("tpr_at_fpr", {"max_fpr": 0.05}))
    >>> sorted(row["estimator"] for row in result.rows)
    ['LogisticRegression', 'PatMatNP']
    >>> all(0 <= row["p_adjusted"] <= 1 for row in result.rows if row["estimator"] != result.best())
    True
    """
    named = _named(estimators)
    scorers = _scorers(metrics)
    X, y = check_rows(X, y, "compare")
    coding = Coding()
    if pos_label is not None or type_of_target(y) == "binary":
        given = agreed([pos_label, *map(positive_of, scorers.values())])
        coding = Coding.of(y, "compare", named.values(), given)
        named = {name: coding.told(model) for name, model in named.items()}
    folds = _folds(cv, X, y, groups, random_state)
    tasks = [(name, fold) for name in named for fold in range(len(folds))]
    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_evaluate)(
            _seeded(clone_for(scorers.values(), named[name]), random_state), X, y, *folds[fold], scorers, coding
        )
        for name, fold in tasks
    )
    by_name: dict[str, list[dict[str, Any]]] = {name: [] for name in named}
    for (name, _), outcome in zip(tasks, track(outcomes, len(tasks), "compare", verbose), strict=True):
        by_name[name].append(outcome)
    test_share = float(np.mean([len(test) / len(train) for train, test in folds]))
    return _tabulate(by_name, list(scorers), test_share)


def _named(estimators: Estimators) -> dict[str, Any]:
    """Names and estimators."""
    if isinstance(estimators, Mapping):
        named = _numbered(list(estimators.items()))
    else:
        if not isinstance(estimators, list | tuple):
            estimators = [estimators]  # a single one
        named = _numbered([item if isinstance(item, tuple) else (model_name(item), item) for item in estimators])
    if not named:
        raise ValueError("estimators is empty; give at least one, for instance [PatMatNP(), TauFPL()]")
    for name, model in named.items():
        if not hasattr(model, "fit") or isinstance(model, type):
            raise ValueError(f"the estimator {name!r} must be an instance with a method fit, got {model!r}")
    return named


def _numbered(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """The pairs as a dict in which none is lost: names that repeat get the numbers that no other name has."""
    times = Counter(str(name) for name, _ in pairs)
    named: dict[str, Any] = {}
    for name, value in pairs:
        key = str(name)
        if times[key] > 1:
            candidates = (f"{name} {number}" for number in count(1))
            key = next(candidate for candidate in candidates if candidate not in times and candidate not in named)
        named[key] = value
    return named


def _scorers(metrics: Any) -> dict[str, Any]:
    """Names and scorers."""
    if metrics is None:
        metrics = [("tpr_at_fpr", {"max_fpr": 0.01}), "positives_at_top", "roc_auc"]
    if isinstance(metrics, Mapping):
        scorers = _numbered([(name, named_scorer(metric)[1]) for name, metric in metrics.items()])
    else:
        single = isinstance(metrics, str | tuple) or callable(metrics)
        scorers = _numbered([named_scorer(metric) for metric in ([metrics] if single else metrics)])
    if not scorers:
        raise ValueError("metrics is empty; give at least one, for instance ('tpr_at_fpr', {'max_fpr': 0.01})")
    return scorers


def _folds(cv: Any, X: Any, y: Any, groups: Any, random_state: int | None) -> Folds:
    """The splits, drawn once for all estimators."""
    discrete = type_of_target(y) in ("binary", "multiclass")
    if isinstance(cv, Integral):
        cv = (StratifiedKFold if discrete else KFold)(int(cv), shuffle=True, random_state=random_state)
    return splits_of(cv, X, y, classifier=discrete, groups=groups)


def _seeded(model: Any, seed: int | None) -> Any:
    """The model, in which every random state that was None is now the seed."""
    if seed is None:
        return model
    names = [name for name, value in model.get_params().items() if value is None]
    return model.set_params(**{name: seed for name in names if name.rsplit("__", 1)[-1] == "random_state"})


def _evaluate(
    model: Any, X: Any, y: Any, train: Any, test: Any, scorers: dict[str, Any], coding: Coding
) -> dict[str, Any]:
    """Fit to one fold and score: what was measured, or the error."""
    outcome: dict[str, Any] = {"scores": {}, "error": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            model.fit(*_safe_split(model, X, coding.codes(y), train))
            outcome["fit_seconds"] = time.perf_counter() - start
            outcome["certificate"] = certificate_of(model)
            rows, labels = _safe_split(model, X, y, test, train)
            outcome["scores"] = {name: scored(scorer, model, rows, labels, coding) for name, scorer in scorers.items()}
        except Exception as error:  # whatever it is, the other estimators keep their results
            outcome["error"] = _said(error)
    outcome["warnings"] = [_said(warning.message) for warning in caught]
    return outcome


def _said(problem: Warning | Exception | str) -> Message:
    return Message("{kind}: {problem}", kind=type(problem).__name__, problem=problem)


def _tabulate(by_name: dict[str, list[dict[str, Any]]], metrics: list[str], test_share: float) -> Comparison:
    """Rows of the table, sorted by the first metric."""
    fold_scores = {
        name: {metric: [outcome["scores"].get(metric, np.nan) for outcome in outcomes] for metric in metrics}
        for name, outcomes in by_name.items()
    }
    # the mean of folds of which one failed is nan, and last
    first = {name: float(np.mean(scores[metrics[0]])) for name, scores in fold_scores.items()}
    names = sorted(by_name, key=lambda name: (np.isnan(first[name]), -first[name] if first[name] == first[name] else 0))
    rows = []
    for metric in metrics:
        values = {name: np.array(fold_scores[name][metric]) for name in names}
        tests = _against_best(values, test_share)
        rows += [{"estimator": name, "metric": metric, **tests[name], **_described(by_name[name])} for name in names]
    return Comparison(rows, fold_scores, metrics)


def _against_best(values: dict[str, NDArray[np.float64]], test_share: float) -> dict[str, dict[str, float]]:
    """Mean, spread and tests of one metric for each estimator."""
    means = {name: float(scores.mean()) for name, scores in values.items()}
    complete = [name for name, mean in means.items() if not np.isnan(mean)]
    best = max(complete, key=means.__getitem__, default="")
    pairs = list(combinations(complete, 2)) if len(next(iter(values.values()))) > 1 else []
    single = [corrected_t_test(values[one] - values[other], test_share) for one, other in pairs]
    tests = {frozenset(pair): both for pair, *both in zip(pairs, single, holm(single).tolist(), strict=True)}
    table = {}
    for name, scores in values.items():
        p_value, p_adjusted = tests.get(frozenset((name, best)), (np.nan, np.nan))
        table[name] = {
            "mean": means[name],
            "std": float(scores.std(ddof=1)) if len(scores) > 1 else np.nan,
            "difference": means[name] - means.get(best, np.nan),
            "p_value": p_value,
            "p_adjusted": p_adjusted,
        }
    return table


def _described(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """What does not depend on the metric: times, the worst certificate, what went wrong."""
    seconds = [outcome["fit_seconds"] for outcome in outcomes if "fit_seconds" in outcome]
    gaps = [outcome["certificate"] for outcome in outcomes if outcome.get("certificate") is not None]
    errors = [outcome["error"] for outcome in outcomes if outcome["error"] is not None]
    texts = [text for outcome in outcomes for text in outcome["warnings"]]
    return {
        "fit_seconds": float(np.mean(seconds)) if seconds else np.nan,
        "dual_gap": float(max(gaps)) if gaps else np.nan,
        "n_failed": len(errors),
        "error": errors[0] if errors else "",
        "n_warnings": len(texts),
        "warning": texts[0] if texts else "",
    }
