"""What tests do with the page in a browser, and what it must show."""

from __future__ import annotations

from typing import Any

from bayesmeta.teach.server import number, plus_minus
from bayesmeta.teach.setup import Setup
from bayesmeta.teach.world import METHODS, PRIORS, next_regret, rows

WAIT = 300_000
"""Milliseconds until a page that does not answer has failed; others may share the machine."""


def settled(page: Any) -> None:
    """Wait until every view has been answered: by selectors, as the page's policy lets nobody
    evaluate text as code in it."""
    page.locator("body[data-waiting='0']").wait_for(timeout=WAIT)


def move(page: Any, name: str, stop: int) -> None:
    """Move a slider as a hand does; the page hears an input event."""
    page.evaluate(
        "([name, stop]) => { const one = document.getElementById(name); one.value = stop; "
        "one.dispatchEvent(new Event('input')); }",
        [name, stop],
    )
    settled(page)


def table(page: Any, view: str) -> list[list[str]]:
    """The cells of a view's table, without its head."""
    found: list[list[str]] = page.locator(f"#{view} tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return found[1:]


def of_package(setup: Setup) -> tuple[list[list[str]], list[list[str]]]:
    """What the tables must hold, without their names."""
    regret = next_regret(setup)
    return (
        [[*map(number, rows(setup)[method])] for method in METHODS],
        [[plus_minus(regret[name].regret), plus_minus(regret[name].more)] for name in PRIORS],
    )


def shown(page: Any) -> tuple[list[list[str]], list[list[str]]]:
    return tuple([line[1:] for line in table(page, view)] for view in ("cloud", "regret"))  # type: ignore[return-value]


class Slow:
    """In place of the process that draws posteriors: at work until it is told to be done."""

    def __init__(self) -> None:
        self.asked: list[Setup] = []
        self.done = False

    def ask(self, setup: Setup) -> str:
        self.asked.append(setup)
        return "done" if self.done else "running"

    def get(self, setup: Setup) -> None:
        return None


def state(page: Any, text: str) -> None:
    """Wait until the page says so of the posterior."""
    page.locator("#state", has_text=text).wait_for(timeout=WAIT)
