"""What the tests of the page share: its server, a browser, the page opened in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from bayesmeta.teach.server import Server
from tests.teach.browsing import Slow, settled

NAMES = ("chromium", "chromium-browser", "google-chrome")
NOT_TESTED = (
    "; the page of bayesmeta explore was not tested in a browser (make browser installs it)"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as one:
        one.page.prepare()  # kernels may have to be compiled
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
    expected: list[str] = []
    one.console_may_say = expected.append
    one.on("console", lambda message: said.append(message.text))
    one.on("pageerror", lambda error: said.append(str(error)))
    one.on("request", lambda asked: said.append(asked.url) if outside(asked.url, server) else None)
    one.goto(server.address)
    settled(one)
    yield one
    one.close()
    assert [text for text in said if not any(some in text for some in expected)] == []


def outside(url: str, server: Server) -> bool:
    return not url.startswith((server.address, "data:"))


@pytest.fixture
def slow(server: Server, monkeypatch: pytest.MonkeyPatch) -> Slow:
    one = Slow()
    monkeypatch.setattr(server.page, "background", one)
    return one
