"""Errors and warnings of the package, and messages that name parameters as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import Formatter
from typing import Any, NamedTuple, Self

_FORMATTER = Formatter()


class Parameter(NamedTuple):
    """A parameter in a message: its name, how Python writes it there, and the value given to it there, if any."""

    name: str
    python: str
    value: str | bool | None = None


class Message(str):
    """A text as Python users read it, which another front end can tell by the names that its own users know.

    The fields of a template are those of an f-string, with values given by keyword. A field without a value is a
    parameter: ``{tol}`` its name, ``{tol=}`` or ``{tol=0.1}`` its keyword; ``{tol=}`` shows a value that is given.
    A value that is a `Parameter`, a message, or an error with one, keeps its names. Text of unknown origin must be a
    value, never a part of a template. `elsewhere` is the template for front ends outside Python, if that is another.

    Examples
    --------
    >>> from toprank.exceptions import Message
    >>> message = Message("{kernel=} has no {what}; use a larger {alpha}", kernel="poly", what="bound")
    >>> print(message)
    kernel='poly' has no bound; use a larger alpha
    >>> print(message.told(lambda parameter: f"--{parameter.name} {parameter.value or ''}".rstrip()))
    --kernel poly has no bound; use a larger --alpha
    """

    parts: tuple[str | Parameter, ...]
    """What to say outside Python."""

    def __new__(cls, template: str, /, elsewhere: str | None = None, **values: Any) -> Self:
        """Fill in the values."""
        here = [part if isinstance(part, str) else part.python for part in _parts(template, values, in_python=True)]
        parts = tuple(_parts(template if elsewhere is None else elsewhere, values, in_python=False))
        return cls._of("".join(here), parts)

    @classmethod
    def _of(cls, text: str, parts: tuple[str | Parameter, ...]) -> Self:
        message = super().__new__(cls, text)
        message.parts = parts
        return message

    def __reduce__(self) -> Any:
        return self._of, (str(self), self.parts)

    def told(self, named: Callable[[Parameter], str]) -> str:
        """The message with parameters as `named` writes them."""
        return "".join(part if isinstance(part, str) else named(part) for part in self.parts)


def message_of(error: BaseException) -> str:
    """What an error or a warning says, as a `Message` if it has one."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, Message) else str(error)


def _parts(template: str, values: dict[str, Any], in_python: bool) -> Iterator[str | Parameter]:
    for text, field, form, conversion in _FORMATTER.parse(template):
        yield text
        if field is None:
            continue
        name, is_keyword, literal = field.partition("=")
        if not is_keyword and (name in values or form or conversion):
            value = message_of(values[name]) if isinstance(values[name], BaseException) else values[name]
            if isinstance(value, Parameter):
                yield value
            elif isinstance(value, Message) and not (in_python or form or conversion):
                yield from value.parts
            else:
                yield format(_FORMATTER.convert_field(value, conversion), form or "")
        elif is_keyword and name in values:
            value, shown = values[name], format(values[name], form or "")
            python = f"{name}={shown if form else repr(value)}"
            yield Parameter(name, python, value if isinstance(value, bool) else shown)
        else:
            yield Parameter(name, field, {"": None, "True": True, "False": False}.get(literal, literal.strip("'")))


class InputError(ValueError):
    """What the user gave cannot be used; the message says what it is, what would be right, and what helps.

    Attributes
    ----------
    parameter : str or None
        The name of the parameter that is wrong, if it is one.
    value : object
        What was given; of another process only its text, if it is no number and no text.
    rule, remedy : str
        What holds for the parameter, and what helps, as the message says it.
    """

    parameter: str | None = None
    value: Any = None
    rule: str = ""
    remedy: str = ""

    @classmethod
    def of(
        cls, parameter: str, value: Any, rule: str, remedy: str = "", /, elsewhere: str | None = None, **values: Any
    ) -> Self:
        """The error of a parameter that breaks a rule, by templates of a `Message`.

        The rule says for instance "must be positive" and the remedy "use a larger {tol}"; `elsewhere` is the remedy
        outside Python, if that is another.
        """
        about, broken = Parameter(parameter, parameter), Message(rule, **values)
        helps = Message(remedy, elsewhere=elsewhere, **values)
        text = "{about} {broken}, got {value!r}" + ("; {helps}" if helps else "")
        error = cls(Message(text, about=about, broken=broken, value=value, helps=helps))
        error.parameter, error.value, error.rule, error.remedy = parameter, value, broken, helps
        return error

    @classmethod
    def saying(cls, template: str, /, elsewhere: str | None = None, **values: Any) -> Self:
        """An error with a `Message` of these arguments."""
        return cls(Message(template, elsewhere=elsewhere, **values))

    def __reduce__(self) -> Any:
        value = self.value if isinstance(self.value, str | int | float | None) else repr(self.value)
        return type(self), self.args, {**self.__dict__, "value": value}


class DegenerateSolutionWarning(UserWarning):
    """The zero vector is optimal, or no better one was found: the model ranks nothing; the message names remedies."""


class PositiveClassWarning(UserWarning):
    """Which class is positive, or which order levels have, was guessed; the message names it and how to say it."""


class ApproximationWarning(UserWarning):
    """A kernel of very many rows, or of rows of Dask, was replaced by features; the message says what else there is."""


class CacheWarning(UserWarning):
    """Compiled loops cannot be kept on disk, so that every process compiles them again; the message says why."""
