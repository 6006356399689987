"""What is asked of a table: which columns are what, by their names or by a formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bayesmeta.checks import Advice, InputError
from bayesmeta.columns import check_columns
from bayesmeta.tables.categories import Categories
from bayesmeta.tables.coding import Coder, fit_coder
from bayesmeta.tables.formula import PLAIN, parts_of, quoted
from bayesmeta.tables.noise import Noise, noise_of
from bayesmeta.tables.terms import called_categories, parsed, variables


class Request(NamedTuple):
    """Columns and terms; ``fixed`` and ``random`` are those of a formula."""

    task: str
    reward: str
    features: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """features whose coefficients are the same in all tasks"""
    intercept: bool = False
    fixed: str = ""
    random: str = ""
    noise: Noise | None = None
    drop_missing: bool = False
    formula: str = ""

    def columns(self, known: Sequence[Any]) -> list[str]:
        """The columns that features are made of, all of which are there, once."""
        import pandas as pd

        names = [*self.features, *self.only]
        if self.fixed:
            texts = [str(one) for one in known]
            both = (variables(parsed(one), texts) for one in (self.fixed, self.random))
            names = list(dict.fromkeys(name for some in both for name in some))
        frame = pd.DataFrame(columns=pd.Index(list(known), dtype=object))
        check_columns(frame, self.task, self.reward, names)
        if self.noise is not None:
            check_columns(frame, self.task, self.reward, [self.noise.column])
        return names

    def may_be_dates(self) -> set[str]:
        """Columns whose text is categories, also dates and numbers, since the formula says C(…)."""
        return called_categories(parsed(self.fixed)) if self.fixed else set()

    def read(self, names: Sequence[str]) -> list[str]:
        """Every column that is read, once."""
        noise = [] if self.noise is None else [self.noise.column]
        return list(dict.fromkeys([self.task, self.reward, *names, *noise]))

    def coder(self, read: dict[str, Any], columns: dict[str, Categories]) -> Coder:
        """How to make features; ``read`` are columns as they are read."""
        if self.fixed:
            return fit_coder(self.fixed, self.random, read, columns)
        if any(columns.values()):
            mean = _sum(self.intercept, [*self.features, *self.only])
            return fit_coder(mean, _sum(self.intercept, self.features), read, columns)
        first: list[str | None] = [None] if self.intercept else []
        plain = (*first, *self.features, *self.only)
        names = tuple("intercept" if one is None else str(one) for one in plain)
        varying = tuple(one not in self.only for one in plain)
        return Coder(columns, names, varying, plain)


def request_of(
    formula: str | None,
    *,
    task: str | None,
    reward: str | None,
    features: str | Sequence[str],
    intercept: bool,
    fixed: str | Sequence[str],
    weights: str | None,
    noise_var: str | None,
    noise_se: str | None,
    drop_missing: bool,
) -> Request:
    """A formula, or columns: one of both."""
    noise = noise_of(weights, noise_var, noise_se)
    names, only = _several(features), _several(fixed)
    if formula is not None:
        parts = parts_of(formula)
        given = {"reward": reward, "features": names, "fixed": only, "intercept": intercept}
        also = [name for name, value in given.items() if value]
        if also or (task is not None and task != parts.task):
            name = also[0] if also else "task"
            raise InputError(Advice(f"{{formula}} says it all; leave out {{{name}}}"))
        return Request(
            parts.task,
            parts.reward,
            fixed=parts.fixed,
            random=parts.random,
            noise=noise,
            drop_missing=drop_missing,
            formula=formula.strip(),
        )
    for name, value in (("task", task), ("reward", reward)):
        if value is None:
            raise InputError(Advice(f"give {{{name}}}, a column, or {{formula}}"))
    assert task is not None and reward is not None
    twice = [name for name in names + only if (names + only).count(name) > 1]
    if twice:
        raise InputError(f"feature {twice[0]!r} is named twice")
    if not names and not intercept:
        raise InputError(
            Advice("{features} is empty; name at least one column, or ask for an {intercept}")
        )
    if intercept and "intercept" in names + only:
        raise InputError("there is a feature called 'intercept' already; rename it")
    request = Request(
        task, reward, tuple(names), tuple(only), bool(intercept), "", "", noise, drop_missing
    )
    return request._replace(formula=_written(request))


def _several(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _sum(intercept: bool, names: Sequence[str]) -> str:
    """Terms of a formula; without an intercept R's coding keeps all categories of the first."""
    return " + ".join(["1" if intercept else "0", *(quoted(str(name)) for name in names)])


def _written(request: Request) -> str:
    """The formula of plain columns, to be read by people."""

    def shown(names: Sequence[Any]) -> list[str]:
        return [n if PLAIN.fullmatch(n) else f"`{n}`" for n in map(str, names)]

    level = "1" if request.intercept else "0"
    random = " + ".join([level, *shown(request.features)])
    fixed = " + ".join([level, *shown([*request.features, *request.only])])
    (reward,), (task,) = shown([request.reward]), shown([request.task])
    return f"{reward} ~ {fixed} + ({random} | {task})"
