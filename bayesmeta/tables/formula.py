"""Formulas in lme4's syntax: parts them into the reward, the fixed and the random terms, the task.

Only the bar is read here, ``( terms | task )``; the terms are formulaic's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bayesmeta.checks import InputError

PLAIN = re.compile(r"[^\W\d][\w.]*", re.UNICODE)
"""A name that needs no backticks."""


class Parts(NamedTuple):
    """``reward ~ fixed + ( random | task )``."""

    reward: str
    fixed: str
    random: str
    task: str


def quoted(name: str) -> str:
    """A column's name as it stands in a formula: in backticks where it is no plain word."""
    if PLAIN.fullmatch(name):
        return name
    if "`" in name:
        raise InputError(f"column {name!r} has a backtick in its name; give it another one")
    return f"`{name}`"


def parts_of(formula: str) -> Parts:
    """The parts of a formula; one that is not of a single grouping term is refused.

    >>> parts_of("Reaction ~ Days + (Days | Subject)")
    Parts(reward='Reaction', fixed='Days', random='Days', task='Subject')
    """
    if not isinstance(formula, str) or not formula.strip():
        raise InputError("formula is empty; write it as 'reward ~ x + (x | task)'")
    if any(not mark.isprintable() for mark in formula):
        raise InputError("formula must be one line of printable text")
    tildes = [at for at, mark, _ in _marks(formula) if mark == "~"]
    if len(tildes) != 1:
        raise _bad(formula, "must have one '~', as in 'reward ~ x + (x | task)'")
    left, right = formula[: tildes[0]], formula[tildes[0] + 1 :]
    groups = _groups(formula, right)
    if not groups:
        raise _bad(formula, "names no task; add a term such as '(1 | task)' or '(x | task)'")
    if len(groups) > 1:
        raise _bad(formula, f"has {len(groups)} terms with a bar; one task, in one term, is fitted")
    first, bar, end = groups[0]
    random, task = right[first + 1 : bar], right[bar + 1 : end]
    _refuse_r(formula, right)
    return Parts(
        _column(formula, left, "the reward"),
        _without(formula, right, first, end),
        random.strip() or "1",
        _column(formula, task, "the task"),
    )


def _bad(formula: str, problem: str) -> InputError:
    return InputError(f"formula {formula.strip()!r:.120} {problem}")


def _refuse_r(formula: str, right: str) -> None:
    """What R writes in another way than Python, with what to write instead."""
    plain = [(at, mark) for at, mark, _ in _marks(right)]
    bare = "".join(dict(plain).get(at, "_") for at in range(len(right)))  # quoted names are words
    if re.search(r"(?<![\w.)])\.(?![\w.(])", bare):
        raise _bad(
            formula, "has a '.': '.' (all other columns) is not supported; name the features"
        )
    for call in re.finditer(r"(?<![\w.])(?:as\.)?factor\s*\(", bare):
        inside = right[call.end() : _closing(bare, call.end())]
        raise _bad(formula, f"is R's: write C({inside}) in place of {call[0]}{inside})")
    for call in re.finditer(r"(?<![\w.])[^\W\d][\w.]*\(", bare):
        end = _closing(bare, call.end())
        if "^" in bare[call.end() : end]:
            written = right[call.start() : end + 1]
            python = written.replace("^", "**")
            raise _bad(formula, f"is R's: write {python} in place of {written}")


def _closing(text: str, begin: int) -> int:
    """Where the parenthesis that was opened before ``begin`` is closed."""
    depth = 1
    for at in range(begin, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    return len(text)


def _marks(text: str) -> Iterator[tuple[int, str, int]]:
    """Each character that is in no quotes, with its place and the depth of parentheses."""
    quote, depth = "", 0
    for at, mark in enumerate(text):
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "`'\"":
            quote = mark
        else:
            depth -= mark in ")]}"
            yield at, mark, depth
            depth += mark in "([{"


def _groups(formula: str, right: str) -> list[tuple[int, int, int]]:
    """Where each ``( … | … )`` begins, has its bar and ends."""
    found: list[tuple[int, int, int]] = []
    begin, bars = -1, list[int]()
    for at, mark, depth in _marks(right):
        if depth < 0:
            raise _bad(formula, "has a ')' too many")
        if mark == "(" and depth == 0:
            begin, bars = at, []
        elif mark == "|":
            if depth == 0:
                raise _bad(formula, "has a bar outside of parentheses; write '(x | task)'")
            if depth > 1 or re.search(r"[\w.]\s*$", right[:begin]):
                raise _bad(formula, "has a bar inside of another term; add '(x | task)' to it")
            bars.append(at)
        elif mark == ")" and depth == 0 and bars:
            if len(bars) > 1:
                raise _bad(
                    formula,
                    "has '||' (no correlations), which is not supported; write '|', which "
                    "estimates them",
                )
            found.append((begin, bars[0], at))
            bars = []
    if bars or right.count("(") != right.count(")"):
        raise _bad(formula, "has a parenthesis that is not closed")
    return found


def _column(formula: str, text: str, what: str) -> str:
    """The name of one column."""
    name = text.strip()
    if re.fullmatch(r"`[^`]+`", name):
        return name[1:-1]
    if PLAIN.fullmatch(name):
        return name
    if not name:
        raise _bad(formula, f"does not name {what}")
    if what == "the task" and re.search(r"[/:*+]", name):
        raise _bad(
            formula,
            f"has nested or crossed tasks, {name!r}, which are not supported; make one column of "
            "them, or choose one",
        )
    raise _bad(
        formula,
        f"has {name!r} for {what}; name a column (make one of it, or put an odd name in backticks)",
    )


def _without(formula: str, right: str, first: int, end: int) -> str:
    """The terms other than the random ones, which are added to them; at least the intercept."""
    before, after = right[:first].rstrip(), right[end + 1 :].lstrip()
    if (before and not before.endswith("+")) or (after and after[0] not in "+-"):
        raise _bad(formula, "must add the term with the bar by a '+'")
    if before:
        return f"{before[:-1].rstrip()} {after}".strip() or "1"
    return after.removeprefix("+").strip() or "1"
