"""The rule of the fuzzer: a right answer, or InputError with one line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis.strategies import SearchStrategy

from bayesmeta.checks import InputError

RIGHT, REFUSED, UNJUDGED = "right", "refused", "unjudged"
"""How a case may end."""


class Refused(Exception):
    """The package said, in one line, that it cannot use its arguments."""


class Unjudged(Exception):
    """The package answered where the oracle has no word to compare: counted apart."""


class Property(NamedTuple):
    """Cases, and a check that compares what the package answers with an oracle."""

    cases: SearchStrategy[Any]
    check: Callable[[Any], None]
    weight: int
    """its share of a long run"""
    examples: int
    """of the suite's quick version"""


PROPERTIES: dict[str, Property] = {}
"""Every property by the name of its check."""


def holds_for(
    cases: SearchStrategy[Any], *, weight: int = 4, examples: int = 25
) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Enter a check among the properties."""

    def enter(check: Callable[[Any], None]) -> Callable[[Any], None]:
        PROPERTIES[check.__name__] = Property(cases, check, weight, examples)
        return check

    return enter


def ask[**P, R](function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call the function that a case is about: its InputError, of one line, ends the case.

    Every other call is made directly: an InputError there is a failure.
    """
    try:
        return function(*args, **kwargs)
    except InputError as error:
        refuse(str(error))


def refuse(message: str) -> Any:
    """End the case as refused, if the message is one line that says something."""
    assert 10 <= len(message) <= 2000, f"a message of {len(message)} characters: {message!r:.300}"
    assert message.isprintable(), f"not one printable line: {message!r:.300}"
    raise Refused(message)


def judge(check: Callable[[Any], None], case: Any) -> str:
    """How a case ends; every other error than a refusal, and every warning, is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(case)
        except Refused:
            return REFUSED
        except Unjudged:
            return UNJUDGED
    return RIGHT
