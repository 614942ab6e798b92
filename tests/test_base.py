"""What every estimator shares."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import toprank
from toprank.base import Estimator, anew_or_unchanged, check_square, is_positive, two_classes

ESTIMATORS = [
    item
    for item in (getattr(toprank, name) for name in toprank.__all__)
    if isinstance(item, type) and issubclass(item, Estimator)
]


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_constructors_are_those_of_scikit_learn(cls):
    wrapped = {"estimator": toprank.PatMat(), "estimators": [("one", toprank.PatMat())]}
    given = {name: value for name, value in wrapped.items() if name in inspect.signature(cls).parameters}
    model = cls(**given)
    assert set(vars(model)) == set(model.get_params(deep=False)) == set(inspect.signature(cls).parameters)
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert model != cls(**given)  # compared by identity, as scikit-learn does
    assert cls.__repr__ is BaseEstimator.__repr__
    with pytest.raises(TypeError, match="nothing"):
        cls(**given, nothing=1)


def test_only_the_first_parameters_may_be_given_by_place():
    assert (toprank.PatMat(0.2, 0.3).tau, toprank.PatMat(0.2, 0.3).beta, toprank.TopPushK(3).k) == (0.2, 0.3, 3)
    for call in (lambda: toprank.TopPush(0.1), lambda: toprank.TauFPL(0.1, 0.1), lambda: toprank.CBR("full")):
        with pytest.raises(TypeError, match="positional"):
            call()


def test_two_classes():
    owner = toprank.PatMat()
    for labels in ([-1, 1, -1], [0.0, 1.0], np.array([True, False])):
        classes = two_classes(labels, owner)
        assert classes.tolist() == sorted(set(np.asarray(labels).tolist()))
        assert is_positive(np.asarray(labels), classes).tolist() == [label == classes[1] for label in labels]
    with pytest.raises(ValueError, match=r"Only binary .* multiclass, with 3 classes; reduce it with .*binarize"):
        two_classes([1, 2, 3], owner)
    with pytest.raises(ValueError, match=r"PatMat needs two classes, got only one class: \[1\]; so$"):
        two_classes([1, 1], owner, remedy="; so")
    with pytest.raises(ValueError, match="label 7, which is not one of the classes"):
        is_positive(np.array([0, 7, 1]), np.array([0, 1]))


def test_a_guarded_fit_starts_anew_or_changes_nothing():
    model = toprank.PatMat()
    model.coef_, model._kernel, model._solution = 1, 2, 3
    with anew_or_unchanged(model):
        assert not hasattr(model, "coef_")
        assert not hasattr(model, "_kernel")
        assert model._solution == 3  # for a warm start
        model.threshold_ = 4
    assert model.threshold_ == 4
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        interrupted_fit(model)
    assert vars(model) == before


def interrupted_fit(model):
    with anew_or_unchanged(model):
        model.coef_ = 5
        raise KeyboardInterrupt


def test_square_matrices():
    check_square(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="square matrix of all training rows, got 2 rows and 3 columns"):
        check_square(np.zeros((2, 3)))
