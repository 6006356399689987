"""The server of the page without a browser, and the command that starts it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from multiprocessing import active_children
from pathlib import Path
from threading import Barrier
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest

from bayesmeta.cli import main
from bayesmeta.teach import figures
from bayesmeta.teach.figures import PAGES
from bayesmeta.teach.posterior import Background, Draws
from bayesmeta.teach.questions import QUESTIONS, Question
from bayesmeta.teach.server import HOST, POLICY, Page, Server, html, number
from bayesmeta.teach.setup import CONTROLS, Setup
from bayesmeta.teach.world import rows
from tests.helpers import hear_ctrl_c, in_session, wait_until


def get(server: Server, path: str, **headers: str) -> tuple[int, str]:
    """Ask, with headers whose names have _ in place of -."""
    answer, text = asked(server, path, **headers)
    return answer.status, text


def asked(server: Server, path: str, **headers: str) -> tuple[HTTPResponse, str]:
    """The same, with all of the answer."""
    with closing(HTTPConnection(HOST, server.server_port, timeout=60)) as connection:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request("GET", path, headers=named)
        answer = connection.getresponse()
        return answer, answer.read().decode()


def test_the_page_is_complete() -> None:
    """All it needs is in it: no address of another machine, every slider, every question."""
    page = html()
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert set(re.findall(r"https?://[\w.]+", page)) == set()
    told = json.loads(re.findall(r'id="told">(.*?)</script>', page, flags=re.DOTALL)[0])
    assert [one["name"] for one in told["controls"]] == [one.name for one in CONTROLS]
    assert len(told["questions"]) == len(QUESTIONS) == 7


@pytest.mark.parametrize("name", ["cloud", "task", "regret"])
def test_views(server: Server, name: str) -> None:
    """A picture and, of the cloud, the package's numbers."""
    status, text = get(server, f"/view?name={name}&tasks=20&width=400")
    found: dict[str, Any] = json.loads(text)
    assert status == 200 and found["svg"].startswith("<svg") and found["alt"]
    if name == "cloud":
        expected = [[*map(number, row)] for row in rows(Setup(tasks=20)).values()]
        assert [row[1:] for row in found["rows"]] == expected


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/view?name=cloud&tasks=1000000", 400, "tasks must be from 5 to 500"),
        ("/view?name=task&step=x", 400, "'x'"),
        ("/view?name=cloud&width=nan", 400, "width"),
        ("/view?name=other", 400, "unknown name 'other' (choose from cloud, task, regret)"),
        ("/view", 400, "unknown name None"),
        ("/answer?question=7", 400, "question must be below 7"),
        ("/etc/passwd", 404, "not found"),
    ],
)
def test_what_is_wrong_is_said(server: Server, path: str, status: int, said: str) -> None:
    found, text = get(server, path)
    assert found == status and said in text


def test_only_this_machine_is_served(server: Server) -> None:
    """Another name for this machine is refused: a page of the web could have one."""
    assert server.server_address[0] == HOST == "127.0.0.1"
    for host in ("localhost:1", "LOCALHOST", "127.0.0.1:9000"):  # as through a tunnel
        assert get(server, "/", Host=host)[0] == 200
    for host in ("evil.example", "evil.example:8501", "127.0.0.1.evil.example", "[::1]:1", ""):
        for path in ("/", "/view?name=cloud"):
            assert get(server, path, Host=host)[0] == 403


@pytest.mark.parametrize("path", ["/", "/view?name=task", "/posterior?tasks=x", "/other"])
def test_every_answer_has_the_policy(server: Server, path: str) -> None:
    """What a browser lets the page do: nothing comes from elsewhere, no text is run as code."""
    answer, _ = asked(server, path)
    assert answer.headers["Content-Security-Policy"] == POLICY
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
    assert rules["connect-src"] == "'self'" and rules["img-src"] == "data:"
    assert rules["script-src"] == "'unsafe-inline'"  # and not 'unsafe-eval'
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("headers", "page", "data"),
    [
        ({"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Dest": "empty"}, 200, 200),
        ({"Sec_Fetch_Site": "none", "Sec_Fetch_Dest": "document"}, 200, 200),  # typed
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document"}, 200, 403),  # a link
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "iframe"}, 403, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "image"}, 403, 403),
        ({"Sec_Fetch_Site": "same-site", "Sec_Fetch_Dest": "empty"}, 403, 403),  # another port
        ({"Origin": "http://evil.example"}, 403, 403),
        ({"Origin": "null"}, 403, 403),
        ({"Origin": "http://localhost:7", "Host": "localhost:7"}, 200, 200),
        ({"Origin": "http://localhost:8", "Host": "localhost:7"}, 403, 403),
    ],
)
def test_no_work_is_done_for_other_pages(
    server: Server,
    headers: dict[str, str],
    page: int,
    data: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Browsers say which page asks; whatever starts work is for the page itself."""
    begun: list[object] = []
    monkeypatch.setattr(server.page.background, "ask", lambda setup: begun.append(setup))
    assert get(server, "/", **headers)[0] == page
    assert get(server, "/posterior", **headers)[0] == data
    assert len(begun) == (data == 200)


def test_answers_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two who ask at once get the same, computed once; after a failure it is tried again."""
    begun: list[Setup] = []
    both = Barrier(2)

    def facts(setup: Setup) -> dict[str, float]:
        begun.append(setup)
        if len(begun) == 1:
            raise ValueError("not yet")
        time.sleep(0.2)  # the other one asks meanwhile
        return {"n": float(len(begun))}

    def ask() -> dict[str, Any]:
        both.wait(10)
        return page.answer({"question": "0"})

    one = Question("title", "ask", Setup(), facts, "{n:g}")
    monkeypatch.setattr("bayesmeta.teach.server.QUESTIONS", (one,))
    page = Page()
    with pytest.raises(ValueError, match="not yet"):
        page.answer({"question": "0"})
    with ThreadPoolExecutor(2) as two:
        found = [one.result() for one in [two.submit(ask), two.submit(ask)]]
    assert found == [{"text": "2"}] * 2 and len(begun) == 2


class Drawn:
    """In place of the pipe to the process that draws."""

    def __init__(self) -> None:
        self.asked: list[Setup] = []

    def send(self, setup: Setup) -> None:
        self.asked.append(setup)

    def recv(self) -> Draws | str:
        return Draws(np.zeros((1, 2)), np.eye(2)[None], True) if self.asked[-1].seed else "no"


def test_posteriors_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those asked for last; what failed is said once, and then tried again."""

    def drawn(seed: int) -> str:
        while (state := background.ask(Setup(seed=seed))) == "running":
            time.sleep(0.01)
        return state

    monkeypatch.setattr("bayesmeta.teach.posterior.KEPT", 2)
    background, pipe = Background(), Drawn()
    monkeypatch.setattr(background, "_pipe", pipe)
    assert [drawn(seed) for seed in (1, 2, 1, 3)] == ["done"] * 4
    assert [one.seed for one in pipe.asked] == [1, 2, 3]
    assert background.get(Setup(seed=2)) is None
    assert background.get(Setup(seed=1, widening=3.0)) is not None
    assert [drawn(0), drawn(0)] == ["no", "no"] and background.get(Setup(seed=0)) is None
    assert [one.seed for one in pipe.asked[3:]] == [0, 0]


def test_no_process_is_left_when_the_server_is_closed() -> None:
    """The one that draws ends with it, also when it is at work."""
    before = {*active_children()}
    with Server() as one:
        assert one.page.posterior({}) == {"state": "running"}
        assert wait_until(lambda: len({*active_children()} - before) == 1, 60)
        (process,) = {*active_children()} - before
        assert process.is_alive()
    assert not process.is_alive() and process not in active_children()


def test_what_is_not_foreseen_is_said(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is told, rather than left without an answer, as if the server had ended."""

    def broken(setup: Setup) -> str:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(server.page.background, "ask", broken)
    status, text = get(server, "/posterior")
    assert status == 500 and json.loads(text) == {"error": "ZeroDivisionError: a slip"}


def test_a_browser_that_leaves_is_no_error(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    """It resets its connection while it is answered, and nothing is printed; errors are."""
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.server_port)) as leaving:
            leaving.sendall(b"GET /view?name=cloud HTTP/1.1\r\nHost: localhost\r\n\r\n")
            now = struct.pack("ii", 1, 0)
            leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
    assert get(server, "/view?name=cloud")[0] == 200  # one after another: all have been answered
    assert capfd.readouterr().err == ""
    for error, shown in ((ConnectionResetError(), False), (RuntimeError("a slip"), True)):
        try:
            raise error
        except Exception:
            server.handle_error(None, ("127.0.0.1", 1))
        assert ("Traceback" in capfd.readouterr().err) is shown


def contrast(color: str, page: str) -> float:
    """As WCAG 2 defines it."""

    def light(text: str) -> float:
        parts = np.array([int(text[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    ends = sorted((light(color), light(page)))
    return (ends[1] + 0.05) / (ends[0] + 0.05)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["cloud", "task", "regret"])
def test_pictures_are_readable_on_both_pages(server: Server, name: str, dark: bool) -> None:
    """Nothing is drawn behind them, and words contrast with the page as WCAG 2 asks; marks, which
    are symbols, as it asks of graphics."""
    page = PAGES[dark][0]
    svg = json.loads(get(server, f"/view?name={name}&step=9&dark={int(dark)}")[1])["svg"]
    texts = re.findall(r"<text style=\"([^\"]*)\"[^>]*>([^<]*)</text>", svg)
    words = [text for _, text in texts]
    assert "truth" in words or "steps" in words
    for style, text in texts:
        found = re.search(r"fill: (#\w{6})", style)
        color = found[1] if found else "#000000"
        assert contrast(color, page) >= (4.5 if len(text) > 1 else 3.0), text
    strokes = set(re.findall(r"stroke: (#\w{6})", svg))
    assert strokes and all(one != page for one in strokes)
    assert f"fill: {page}" not in svg and "fill: #ffffff" not in svg


@pytest.mark.parametrize("dark", [False, True])
def test_ellipses_show_on_both_pages(dark: bool) -> None:
    """Also where matplotlib's own settings ask for another page."""
    with mpl.style.context("default" if dark else "dark_background"), figures.on_page(dark):
        colors = {name: figures.look(name).color for name in figures.LABELS}
    assert all(contrast(color, PAGES[dark][0]) >= 2.6 for color in colors.values()), colors
    assert len(set(colors.values())) == len(colors)


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It says where the page is, opens a browser unless told not to, and ends with Ctrl-C."""

    def ended(self: Server) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr(Server, "serve_forever", ended)
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["explore", "--port", "0"]) == 130
    (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", capsys.readouterr().out)
    assert wait_until(lambda: opened == [address], 10)  # by a thread of its own
    assert main(["explore", "--port", "0", "--no-browser"]) == 130
    assert opened == [address]


def test_a_port_that_cannot_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and exit code 2."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for given, said in ((str(port), f"port {port} cannot be used"), ("70000", "at most 65535")):
            assert main(["explore", "--no-browser", "--port", given]) == 2
            error = capsys.readouterr().err
            assert said in error and error.count("\n") == 1


def test_a_second_start(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """At the port where the page is served already: refused at once, and the first one goes on."""
    command = ["explore", "--no-browser", "--port", str(server.server_port)]
    assert main(command) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "--port 0" in said.err
    assert get(server, "/")[0] == 200


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_while_it_computes(server: Server, kind: signal.Signals) -> None:
    """An answer is computed and a posterior drawn: one line, code 130, and no process is left.
    (``server`` has compiled what would be said to be compiled.)"""
    command = [sys.executable, "-m", "bayesmeta", "explore", "--port", "0", "--no-browser"]
    page = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )
    try:
        assert page.stdout is not None
        lines = iter(page.stdout.readline, "")
        address = next(filter(None, (re.search(r"http://\S+:(\d+)/", line) for line in lines)))
        port = int(address[1])
        with closing(HTTPConnection(HOST, port)) as one, closing(HTTPConnection(HOST, port)) as two:
            one.request("GET", "/posterior")
            two.request("GET", "/answer?question=2")
            assert b"running" in one.getresponse().read()
            assert wait_until(lambda: len(in_session(page.pid)) > 1, 60)  # the one that draws
            os.killpg(page.pid, kind)
            _, said = page.communicate(timeout=60)
        assert page.returncode == 130 and said == "bayesmeta: interrupted\n"
        assert wait_until(lambda: not in_session(page.pid), 20), in_session(page.pid)
    finally:
        if in_session(page.pid):
            os.killpg(page.pid, signal.SIGKILL)
        page.wait(30)
