"""The server of the page without a browser, and the command that starts it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest

from bayesmeta.cli import main
from bayesmeta.teach.questions import QUESTIONS
from bayesmeta.teach.server import Server, html, number
from bayesmeta.teach.setup import CONTROLS, Setup
from bayesmeta.teach.world import rows


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as one:
        thread = Thread(target=one.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def get(server: Server, path: str, host: str | None = None) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


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
        ("/view?name=other", 400, "name must be cloud, task or regret"),
        ("/answer?question=7", 400, "question must be below 7"),
        ("/etc/passwd", 404, "not found"),
    ],
)
def test_what_is_wrong_is_said(server: Server, path: str, status: int, said: str) -> None:
    found, text = get(server, path)
    assert found == status and said in text


def test_only_this_machine_is_served(server: Server) -> None:
    """Another name for this machine is refused: a page of the web could have one."""
    assert server.server_address[0] == "127.0.0.1"
    assert get(server, "/", host="localhost:1")[0] == 200
    assert get(server, "/", host="evil.example")[0] == 403


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It says where the page is, opens a browser unless told not to, and ends with Ctrl-C."""

    def ended(self: Server) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr(Server, "serve_forever", ended)
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["explore", "--port", "0"]) == 130
    (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", capsys.readouterr().out)
    assert opened == [address]
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
