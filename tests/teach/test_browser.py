"""The page in a real browser: sliders move, its numbers are the package's, nothing goes wrong."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest

from bayesmeta.teach.questions import QUESTIONS
from bayesmeta.teach.server import Server, number, plus_minus
from bayesmeta.teach.setup import Setup
from bayesmeta.teach.world import METHODS, PRIORS, next_regret, one_task, rows

pytestmark = pytest.mark.slow
NAMES = ("chromium", "chromium-browser", "google-chrome")
NOT_TESTED = (
    "; the page of bayesmeta explore was not tested in a browser (make browser installs it)"
)
WAIT = 300_000
"""Milliseconds until a page that does not answer has failed; others may share the machine."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as one:
        thread = Thread(target=one.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, headless, as the package playwright drives it."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on the path" + NOT_TESTED)
    api = pytest.importorskip("playwright.sync_api", reason="no playwright" + NOT_TESTED)
    with api.sync_playwright() as driver:
        try:
            one = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except api.Error as error:
            pytest.skip(f"{found} does not start: {str(error).splitlines()[0]}{NOT_TESTED}")
        yield one
        one.close()


@pytest.fixture
def page(server: Server, browser: Any) -> Iterator[Any]:
    """The page, opened; whatever it says in the console or asks of another machine is a failure."""
    one = browser.new_page(viewport={"width": 1200, "height": 900})
    said: list[str] = []
    one.on("console", lambda message: said.append(message.text))
    one.on("pageerror", lambda error: said.append(str(error)))
    one.on("request", lambda asked: said.append(asked.url) if outside(asked.url, server) else None)
    one.goto(server.address)
    settled(one)
    yield one
    one.close()
    assert said == []


def outside(url: str, server: Server) -> bool:
    return not url.startswith((server.address, "data:"))


def settled(page: Any) -> None:
    """Until every view has been answered."""
    page.wait_for_function("document.body.dataset.waiting === '0'", timeout=WAIT)


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


def test_numbers_are_the_packages_wherever_sliders_stand(page: Any) -> None:
    """As opened, and after moves of sliders; also in its address, which opens at the same place."""
    setup = Setup()
    assert shown(page) == of_package(setup)
    for name, stop, value in (("correlation", 1, -0.9), ("tasks", 2, 20), ("explore", 0, 0)):
        before = page.locator("#cloud svg").inner_html()
        move(page, name, stop)
        setup = replace(setup, **{name: value})
        assert shown(page) == of_package(setup)
        assert page.locator("#cloud svg").inner_html() != before
    assert "Setup(correlation=-0.9, tasks=20, explore=0)" in page.locator("#python").inner_text()
    page.get_by_role("button", name="New data").click()
    settled(page)
    assert shown(page) == of_package(replace(setup, seed=1))
    page.reload()
    settled(page)
    assert shown(page) == of_package(replace(setup, seed=1))


def test_one_task_step_by_step(page: Any) -> None:
    """The regret that is said is that of the task, for every prior it can be played with."""
    for prior, step in (("truth", 30), ("nothing", 30), ("reml", 100)):
        page.locator("#prior").select_option(prior)
        move(page, "step", step)
        said = page.locator("#task p.note").inner_text()
        expected = one_task(Setup(), prior).regret[step]
        assert said == f"After {step} of 100 steps: regret {expected:.3f}."
        assert page.locator("#task svg").get_attribute("aria-label").endswith(said)


def test_questions_set_the_sliders_and_have_answers(page: Any) -> None:
    """Seven of them; an answer is folded until it is asked for, and then as the package has it."""
    folds = page.locator("#questions > details")
    assert folds.count() == len(QUESTIONS) == 7
    one = folds.nth(5)
    answer = one.locator("details p")
    assert not answer.is_visible()
    one.locator("summary").first.click()
    one.get_by_role("button", name="Set the sliders").click()
    settled(page)
    assert shown(page) == of_package(QUESTIONS[5].setup)
    one.locator("details summary").click()
    page.wait_for_function(
        "text => document.body.innerText.includes(text)", arg="No: ", timeout=WAIT
    )
    assert answer.inner_text() == QUESTIONS[5].answered()


def test_a_phone_sees_everything(page: Any) -> None:
    """360 pixels wide: nothing is cut off, pictures fill the width, words are not shrunk, and
    sliders can be touched."""
    page.set_viewport_size({"width": 360, "height": 740})
    page.reload()
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for svg in page.locator(".figure svg").all():
        assert 300 <= svg.bounding_box()["width"] <= 360
    assert page.locator("#controls").bounding_box()["height"] <= 0.42 * 740 + 1
    sizes = page.locator(".figure svg text").evaluate_all(
        "all => all.filter(one => one.textContent.trim()).map("
        "one => parseFloat(getComputedStyle(one).fontSize) "
        "* Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b))"
    )
    assert min(sizes) >= 9.5  # pixels; indices of symbols are the smallest
    for slider in page.locator("#controls input").all():
        box = slider.bounding_box()
        assert box["width"] >= 120 and box["height"] >= 24


def test_the_page_answers_while_the_posterior_is_drawn(page: Any, server: Server) -> None:
    """A move during the drawing is answered before it is done; then draws are in table and
    picture, and gone with other data."""
    page.get_by_role("button", name="Draw the posterior").click()
    page.wait_for_function(
        "document.getElementById('state').textContent.startsWith('drawing')", timeout=WAIT
    )
    move(page, "widening", 0)
    assert server.page.background.get(Setup()) is None  # still at work
    assert shown(page) == of_package(Setup(widening=0.0))
    page.get_by_role("button", name="Draw the posterior").click()
    page.wait_for_function("document.getElementById('state').textContent === 'drawn'", timeout=WAIT)
    settled(page)
    draws = server.page.background.get(Setup())
    assert draws is not None and draws.trusted
    assert "posterior" in [line[0] for line in table(page, "cloud")]
    low, high = draws.interval()
    assert f"[{low:.2f}, {high:.2f}]" in page.locator("#cloud p.note").inner_text()
    with_draws = next_regret(Setup(widening=0.0), draws.predicted())["posterior"]
    assert table(page, "regret")[-2][1:] == [
        plus_minus(with_draws.regret),
        plus_minus(with_draws.more),
    ]
    page.get_by_role("button", name="New data").click()
    settled(page)
    assert "posterior" not in [line[0] for line in table(page, "cloud")]


def test_a_posterior_shows_what_other_data_sets_would(server: Server) -> None:
    """The answer of the last question: with five tasks its interval of the correlation is at least
    twice as wide as with 200, and draws do not depend on what does not change the data."""
    background, few = server.page.background, QUESTIONS[6].setup
    widths = []
    for setup in (few, replace(few, tasks=200)):
        while background.ask(setup) == "running":
            time.sleep(0.05)
        assert background.ask(setup) == "done"
        draws = background.get(replace(setup, widening=10.0))
        assert draws is not None
        low, high = draws.interval()
        widths.append(high - low)
    assert widths[0] > 2 * widths[1]
