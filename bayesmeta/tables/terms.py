"""The terms of a formula: formulaic's, with errors in one line, and the columns that they read."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from bayesmeta.checks import InputError

ALSO: dict[str, Callable[..., Any]] = {"sqrt": np.sqrt, "abs": np.abs}
"""Functions that R has, and formulaic has not."""


@contextmanager
def quiet() -> Iterator[None]:
    """formulaic without warnings, which are looked for afterwards; its errors in one line."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message="Data has categories outside")
            yield
    except InputError:
        raise
    except Warning as unseen:
        which = re.search(r"\{.*\}", str(unseen))
        raise InputError(
            f"formula: there are categories that were not in the table, {which and which[0]:.100}"
        ) from None
    except Exception as error:
        said = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]|\[[0-9;]+m", "", str(error))
        said = " ".join(said.split()) or type(error).__name__
        raise InputError(f"formula: {said:.300}") from None


def parsed(terms: str) -> Any:
    """The terms of one side of a formula."""
    from formulaic import Formula
    from formulaic.formula import SimpleFormula

    with quiet():
        found = Formula(terms)
    if not isinstance(found, SimpleFormula):
        raise InputError(f"formula: {terms!r:.80} must be terms with a '+' between them")
    return found


def variables(terms: Any, known: Sequence[str]) -> list[str]:
    """The columns that terms read; a name that is neither a column nor a function is refused."""
    from formulaic.transforms import TRANSFORMS

    found: list[str] = []
    for factor in (factor for term in terms for factor in term.factors):
        method = factor.eval_method.value
        if method == "lookup":
            found.append(factor.expr)
        elif method == "python":
            found += _names(factor.expr, set(known), {*TRANSFORMS, *ALSO})
    for name in dict.fromkeys(found):
        if name not in known:
            raise InputError(
                f"there is no column {name!r}; the columns are {', '.join(map(repr, known)):.200}"
            )
    return list(dict.fromkeys(found))


def called_categories(terms: Any) -> set[str]:
    """The columns that terms call categories: x of C(x)."""
    calls = (
        re.fullmatch(r"C\(\s*(`[^`]+`|[\w.]+)\s*(,.*)?\)", factor.expr)
        for term in terms
        for factor in term.factors
    )
    return {call[1].strip("`") for call in calls if call}


def _names(expression: str, known: set[str], functions: set[str]) -> list[str]:
    """The columns in a Python expression, some of them perhaps in backticks."""
    odd = re.findall(r"`([^`]*)`", expression)
    try:
        tree = ast.parse(re.sub(r"`[^`]*`", "_quoted", expression), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise InputError(f"formula: {expression!r:.80} is not an expression") from None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"_quoted"}
    if "lag" in names - known:
        raise InputError("formula: lag() reaches into rows of other tasks; make a column of it")
    return odd + sorted(names & known) + sorted(names - known - functions)


def plain_columns(terms: Any) -> tuple[str | None, ...]:
    """The columns where every term is one, None for the intercept; nothing otherwise."""
    found: list[str | None] = []
    for term in terms:
        if len(term.factors) != 1:
            return ()
        (factor,) = term.factors
        if str(factor) == "1" and factor.eval_method.value == "literal":
            found.append(None)
        elif factor.eval_method.value == "lookup":
            found.append(factor.expr)
        else:
            return ()
    return tuple(found)
