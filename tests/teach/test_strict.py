"""What the page in a browser does when it is not answered, and what other pages get of it."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from bayesmeta.teach.server import Server
from bayesmeta.teach.setup import Setup
from tests.teach.browsing import WAIT, Slow, move, of_package, settled, shown, table

pytestmark = pytest.mark.slow


def test_what_goes_wrong_is_said_and_taken_back(
    page: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the view that it concerns, which shows nothing rather than what is of other settings,
    whatever the others answer; a move later all is well."""
    view = server.page.view

    def broken(query: Any) -> dict[str, Any]:
        if query["name"] == "cloud":
            raise ValueError("out of order")
        return view(query)

    monkeypatch.setattr(server.page, "view", broken)
    with page.expect_response(lambda answer: answer.status == 400):
        move(page, "tasks", 2)
    settled(page)
    alert = page.get_by_role("alert")
    assert alert.inner_text() == "out of order"
    assert alert.bounding_box()["y"] < 900  # in sight, wherever the page is scrolled
    assert page.locator("#cloud svg").count() == 0 and table(page, "cloud") == []
    assert page.locator("#cloud p.note").inner_text() == ""
    assert table(page, "regret") and page.locator("#regret svg").count() == 1
    monkeypatch.undo()
    move(page, "tasks", 1)
    assert alert.inner_text() == ""
    assert shown(page) == of_package(Setup(tasks=10))
    page.console_may_say("400 (Bad Request)")


def test_a_server_that_ends_and_starts_again(page: Any, server: Server) -> None:
    """Nothing is left of what it no longer answers; when it is back a move shows everything."""
    with Server() as first:
        port = first.server_port
        thread = Thread(target=first.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        page.goto(first.address)
        settled(page)
        first.shutdown()
        thread.join()
    page.get_by_role("button", name="Draw the posterior").click()
    alert = page.locator("#trouble", has_text="The server has ended; start bayesmeta explore again")
    alert.wait_for(timeout=WAIT)
    assert page.locator("#state").inner_text() == ""
    move(page, "tasks", 2)
    assert page.locator(".figure svg").count() == 0 and shown(page) == ([], [])
    with Server(port) as second:
        thread = Thread(target=second.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        move(page, "tasks", 1)
        assert page.get_by_role("alert").inner_text() == ""
        assert shown(page) == of_package(Setup(tasks=10))
        second.shutdown()
        thread.join()
    page.console_may_say("net::ERR_CONNECTION_REFUSED")
    page.console_may_say(f":{port}/")


class _Another(BaseHTTPRequestHandler):
    """A page of somebody else, with a link to ours."""

    ours = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f'<!doctype html><a href="{self.ours}">there</a>'.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def another(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server of another page."""
    monkeypatch.setattr(_Another, "ours", server.address)
    with HTTPServer(("127.0.0.1", 0), _Another) as one:
        thread = Thread(target=one.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield one.server_port
        one.shutdown()
        thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])  # the same site, and another one
def test_another_page_gets_nothing(
    server: Server,
    browser: Any,
    slow: Slow,
    another: int,
    host: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page of another origin in the same browser has this one asked, in vain; nor can it show it
    in a frame. A link opens it."""
    answered: list[tuple[str, int]] = []
    monkeypatch.setattr(
        server.RequestHandlerClass,
        "log_request",
        lambda one, code="-", size="-": answered.append((one.path, int(code))),
    )
    other = browser.new_page()
    other.goto(f"http://{host}:{another}/")
    for mode in ("no-cors", "cors"):
        other.evaluate(
            "([url, mode]) => fetch(url, {mode}).then(() => false, () => true)",
            [server.address + "posterior", mode],
        )
    for tag, path in (("iframe", ""), ("img", "posterior")):
        other.evaluate(
            "([tag, url]) => new Promise(done => { const one = document.createElement(tag);"
            " one.onload = one.onerror = done; one.src = url; document.body.append(one); })",
            [tag, server.address + path],
        )
    refused = [("/posterior", 403), ("/posterior", 403), ("/", 403), ("/posterior", 403)]
    assert answered == refused and slow.asked == []
    other.get_by_role("link").click()
    settled(other)
    assert other.url.startswith(server.address) and answered[4] == ("/", 200)
    assert table(other, "regret")
    other.close()


def test_the_page_asks_nobody_else(page: Any, another: int) -> None:
    """The browser holds it to the policy that is sent with it, even if a script in it tried."""
    directive = page.evaluate(
        "url => new Promise(done => { document.addEventListener('securitypolicyviolation',"
        " found => done(found.effectiveDirective));"
        " fetch(url).then(() => done('nothing'), () => setTimeout(done, 5000, 'nothing')); })",
        f"http://127.0.0.1:{another}/",
    )
    assert directive == "connect-src"
    page.console_may_say("Content Security Policy")
