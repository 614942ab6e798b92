"""Messages that name parameters, and errors with them: told by any front end, and the same in another process."""

import copy
import pickle
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel, delayed

from templates import templates
from toprank.checks import (
    require_choice,
    require_count,
    require_moderate,
    require_number,
    require_positive,
    require_share,
)
from toprank.exceptions import InputError, Message, message_of

VALUES = st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none(), st.lists(st.text()))


def option(parameter):
    """A parameter as a command line might show it."""
    return f"<{parameter.name}>" if parameter.value is None else f"<{parameter.name} {parameter.value}>"


@given(value=VALUES, name=st.text())
def test_values_are_shown_as_they_are(value, name):
    """Braces, keywords and whatever else stands in a value name nothing."""
    message = Message("{name!r} has {value!r}; lower {alpha} or {tol=}", name=name, value=value)
    assert message == f"{name!r} has {value!r}; lower alpha or tol="
    assert message.told(option) == f"{name!r} has {value!r}; lower <alpha> or <tol>"


@given(value=VALUES)
def test_keywords_with_values(value):
    message = Message("{tau=} is too much", tau=value)
    assert message == f"tau={value!r} is too much"
    assert message.told(option) == f"<tau {value}> is too much"


def test_keywords_with_constants():
    message = Message("use {kernel='rbf'}, {tol=1e-4}, {resume=False} or {zero_based=True}")
    assert message == "use kernel='rbf', tol=1e-4, resume=False or zero_based=True"
    assert message.told(option) == "use <kernel rbf>, <tol 1e-4>, <resume False> or <zero_based True>"


def test_forms_of_numbers():
    assert Message("{tau=:g}, {n:,} rows", tau=1e-3, n=1000).told(option) == "<tau 0.001>, 1,000 rows"


def test_elsewhere_something_else_may_be_said():
    message = Message("hold out {n}", elsewhere="give {n} rows, or a larger {max_fpr}", n=3)
    assert message == "hold out 3"
    assert message.told(option) == "give 3 rows, or a larger <max_fpr>"


def test_a_message_in_a_message_keeps_its_parameters():
    inner = InputError(Message("no {k=}", elsewhere="no {n=}", n=2))
    outer = Message("{path!r}: {inner}; {other}", path="{k=}", inner=inner, other=ValueError("k=3"))
    assert outer == "'{k=}': no k=; k=3"
    assert outer.told(option) == "'{k=}': no <n 2>; k=3"
    assert Message("{inner:.2}", inner=inner).told(option) == "no"


def test_a_value_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match="path"):
        Message("{path!r} is bad")


@given(value=VALUES, text=st.text())
def test_errors_survive_pickling(value, text):
    error = InputError.of("alpha", value, "must be {text!r}", "use {tol=}", elsewhere="use {max_fpr}", text=text)
    error.add_note("this happened in line 3")
    assert str(error) == f"alpha must be {text!r}, got {value!r}; use tol="
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is InputError
        assert str(again) == str(error)
        assert message_of(again).told(option) == f"<alpha> must be {text!r}, got {value!r}; use <max_fpr>"
        assert (again.parameter, again.rule, again.remedy) == ("alpha", f"must be {text!r}", "use tol=")
        assert repr(again.value) in (repr(value), repr(repr(value)))
        assert again.__notes__ == error.__notes__


def test_a_value_that_cannot_be_pickled_becomes_its_text():
    value = lambda: None  # noqa: E731
    assert pickle.loads(pickle.dumps(InputError.of("kernel", value, "is wrong"))).value == repr(value)


def _failing():
    raise InputError.of("alpha", -1.0, "must be positive", "use {tol=}") from KeyError("cause")


def test_errors_come_back_from_workers():
    with pytest.raises(InputError, match=r"alpha must be positive, got -1\.0; use tol=") as caught:
        Parallel(n_jobs=2)(delayed(_failing)() for _ in range(2))
    assert message_of(caught.value).told(option) == "<alpha> must be positive, got -1.0; use <tol>"


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: require_count("k", 0), "k must be a whole number of at least 1, got 0"),
        (lambda: require_number("k", -1, 0), "k must be a finite number of at least 0, got -1"),
        (lambda: require_share("k", 2), "k must be strictly between 0 and 1, got 2; use a share such as 0.05"),
        (lambda: require_positive("k", 0, "use 1"), "k must be positive and finite, got 0; use 1"),
        (lambda: require_moderate("k", 1e50, "use 1"), r"k must be between 1e-40 and 1e+40, got 1e+50; use 1"),
        (lambda: require_choice("k", "c", ("a", "b")), "k must be one of 'a', 'b', got 'c'"),
    ],
)
def test_checks_raise_objects(check, message):
    with pytest.raises(InputError) as caught:
        check()
    assert str(caught.value) == message
    assert message_of(caught.value).told(option) == message.replace("k", "<k>", 1)
    assert caught.value.parameter == "k"


def test_templates_hold_no_text_of_unknown_origin():
    """They are constants, and what is no value in them is the plain name of a parameter."""
    found = list(templates())
    assert found
    for place, texts, _, values in found:
        for template in texts:
            assert isinstance(template, str), place
            for _, field, form, conversion in Formatter().parse(template):
                if field is not None and field.partition("=")[0] not in values:
                    assert field.partition("=")[0].isidentifier(), (place, field)
                    assert not form, (place, field)
                    assert not conversion, (place, field)
