"""The page in a real browser: sliders move, its numbers are the package's, nothing goes wrong."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

import pytest

from bayesmeta.teach.questions import QUESTIONS
from bayesmeta.teach.server import Server, number, plus_minus
from bayesmeta.teach.setup import CONTROLS, Setup
from bayesmeta.teach.world import METHODS, next_regret, one_task, rows
from tests.teach.browsing import WAIT, Slow, move, of_package, settled, shown, state, table

pytestmark = pytest.mark.slow


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
    answer.filter(has_text="No: ").wait_for(timeout=WAIT)
    assert answer.inner_text() == QUESTIONS[5].answered()


def test_a_phone_sees_everything(page: Any) -> None:
    """360 pixels wide: nothing is cut off, pictures fill the width, words are not shrunk, and
    sliders can be touched."""
    page.set_viewport_size({"width": 360, "height": 740})
    page.reload()
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for box in page.locator(".wide:has(table)").all():
        assert box.evaluate("one => one.scrollWidth <= one.clientWidth")  # no table is scrolled
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


def test_a_window_of_another_size_still_waits_for_the_posterior(page: Any, slow: Slow) -> None:
    """So does a move that leaves the data as they are; one that does not ends the waiting."""
    page.get_by_role("button", name="Draw the posterior").click()
    state(page, "drawing")
    before = page.locator("#cloud svg").get_attribute("width")
    page.set_viewport_size({"width": 900, "height": 700})
    page.locator(f"#cloud svg:not([width='{before}'])").wait_for(timeout=WAIT)
    settled(page)
    move(page, "widening", 0)
    slow.done = True
    state(page, "drawn")
    slow.done = False
    page.get_by_role("button", name="Draw the posterior").click()
    state(page, "drawing")
    move(page, "tasks", 0)
    assert page.locator("#state").inner_text() == ""
    assert Setup(tasks=5) not in slow.asked and Setup(widening=0.0) in slow.asked


def test_by_keyboard_and_ear(page: Any) -> None:
    """Every control has a name of its own; keys move sliders; what a move changes is said when it
    has come to rest, once, with the numbers of the tables."""
    for label in (*(one.label for one in CONTROLS), "before step"):
        assert page.get_by_role("slider", name=label, exact=True).count() == 1
    assert page.get_by_role("combobox", name="prior it is played with").count() == 1
    slider = page.get_by_role("slider", name="tasks N", exact=True)
    slider.focus()
    slider.press("ArrowLeft")
    settled(page)
    assert slider.get_attribute("aria-valuetext") == "20"
    said = f"REML: error of μ {number(rows(Setup(tasks=20))['reml'].mean_error)}, error of Σ"
    page.locator("#heard", has_text=said).wait_for(state="attached", timeout=WAIT)
    assert page.locator("#heard").get_attribute("role") == "status"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "explore"
    for view in ("cloud", "regret"):
        heads = page.locator(f"#{view} th[scope=col]").all_inner_texts()
        assert heads[1:] and page.locator(f"#{view} th[scope=row]").count() >= len(METHODS)
    repeated = page.evaluate(
        "() => { const ids = [...document.querySelectorAll('[id]')].map(one => one.id);"
        " return ids.filter((id, k) => ids.indexOf(id) !== k && !/^[mp][0-9a-f]+$/.test(id)); }"
    )
    assert repeated == []  # but for marks and clips, which are called by what they are


def colours(page: Any) -> tuple[str, set[str]]:
    """Of the page, and of the words of its pictures; marks are single letters to it."""
    fills = page.locator(".figure svg text").evaluate_all(
        "all => all.filter(one => one.textContent.length > 1).map("
        "one => getComputedStyle(one).fill)"
    )
    return page.evaluate("getComputedStyle(document.body).backgroundColor"), set(fills)


def test_a_dark_page(page: Any) -> None:
    """As the browser asks for it, also when it changes its mind; pictures follow."""
    page.emulate_media(color_scheme="light")
    page.reload()
    settled(page)
    light = colours(page)
    assert light[0] == "rgb(255, 255, 255)"
    with page.expect_request(lambda one: "dark=1" in one.url, timeout=WAIT):
        page.emulate_media(color_scheme="dark")
    settled(page)
    dark = colours(page)
    assert sum(map(int, re.findall(r"\d+", dark[0]))) < 120
    assert not light[1] & dark[1]
    assert all(sum(map(int, re.findall(r"\d+", one)[:3])) > 250 for one in dark[1])
    assert shown(page) == of_package(Setup())


def test_a_bookmark_opened_where_the_page_is_open(page: Any) -> None:
    """The sliders move, those that it does not name to where they stood; what is no number is
    passed over."""
    move(page, "correlation", 1)
    page.evaluate("location.hash = 'tasks=20&noise_sd=none&horizon=&seed=2'")
    page.locator("#python", has_text="Setup(tasks=20, seed=2)").wait_for(timeout=WAIT)
    settled(page)
    assert shown(page) == of_package(Setup(tasks=20, seed=2))


def test_the_page_answers_while_the_posterior_is_drawn(page: Any, server: Server) -> None:
    """A move during the drawing is answered before it is done; then draws are in table and
    picture, and gone with other data."""
    page.get_by_role("button", name="Draw the posterior").click()
    state(page, "drawing")
    move(page, "widening", 0)
    assert server.page.background.get(Setup()) is None  # still at work
    assert shown(page) == of_package(Setup(widening=0.0))
    page.get_by_role("button", name="Draw the posterior").click()
    state(page, "drawn")
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
