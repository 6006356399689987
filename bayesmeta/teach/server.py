"""The server of the page: one file of HTML, and numbers and pictures for where its sliders stand.

Only Python's own HTTP server, on this machine alone; nothing is loaded from a network.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from bayesmeta.checks import InputError, is_covariance, one_of, real, whole
from bayesmeta.runner.cell import one_line
from bayesmeta.simulation.summaries import Interval
from bayesmeta.teach import figures
from bayesmeta.teach.figures import LABELS, PAGES, on_page, to_svg
from bayesmeta.teach.posterior import Background, Draws
from bayesmeta.teach.questions import QUESTIONS
from bayesmeta.teach.setup import CONTROLS, SAME_DATA, Setup, shown
from bayesmeta.teach.world import METHODS, NEXT, PRIORS, cloud, compare, next_regret, one_task, rows

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""What this machine may be called by who asks."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a browser lets the page do: nothing that is not in it, and in no frame of another page."""
VIEWS = ("cloud", "task", "regret")
Query = Mapping[str, str]


def number(value: float) -> str:
    """As the page writes numbers; "none" where there is none."""
    return "none" if math.isnan(value) else f"{value:.3f}"


def plus_minus(value: Interval) -> str:
    """A mean with half its interval."""
    return f"{value.mean:.3f} ± {(value.high - value.low) / 2:.3f}"


def cloud_view(setup: Setup, width: float, draws: Draws | None) -> dict[str, Any]:
    """View (a): its picture, its table and a sentence about it."""
    found = cloud(setup)
    figure = figures.figure_cloud(found, draws, width)
    table = rows(setup)
    if draws is not None:
        centre = draws.predicted().mean, draws.covs.mean(axis=0)
        table["posterior"] = compare(*centre, found.family.prior)
    beyond = figures.outside(found, figure.axes[0])
    none = [LABELS[name] for name in METHODS if not is_covariance(found.fit(name).prior.cov)]
    said = [f"A task explored {found.steps.mean():.1f} steps on average."]
    if beyond:
        said.append(f"{beyond} of {len(found.thetas)} least squares outside the picture.")
    if none:
        said.append(f"No covariance, so no ellipse: {', '.join(none)}.")
    if draws is not None:
        low, high = draws.interval()
        said.append(f"Posterior: the correlation is in [{low:.2f}, {high:.2f}] with 95%.")
        said += [] if draws.trusted else ["Do not trust these draws: their checks failed."]
    return {
        "svg": to_svg(figure),
        "alt": "Thetas of tasks, their least squares, and ellipses of true and estimated priors.",
        "note": " ".join(said),
        "head": ["", "error of μ", "error of Σ", "correlation", "smallest λ"],
        "rows": [[LABELS[name], *map(number, one)] for name, one in table.items()],
    }


def task_view(setup: Setup, width: float, query: Query) -> dict[str, Any]:
    """View (b): one task before a step."""
    steps = one_task(setup, query.get("prior", "truth"))
    step = min(whole("step", int(query.get("step", "0"))), setup.horizon)
    figure = figures.figure_step(steps, step, width)
    note = f"After {step} of {setup.horizon} steps: regret {steps.regret[step]:.3f}."
    return {
        "svg": to_svg(figure),
        "alt": "Belief about theta, actions on offer, and regret so far and to come.",
        "note": note,
    }


def regret_view(setup: Setup, width: float, draws: Draws | None) -> dict[str, Any]:
    """View (c): the next task's regret by prior."""
    found = next_regret(setup, None if draws is None else draws.predicted())
    return {
        "svg": to_svg(figures.figure_regret(found, width)),
        "alt": "Regret of the next task by the prior it is played with.",
        "note": f"Means over {NEXT} next tasks, the same for all, with 95% intervals. Thompson "
        "Sampling explores more than is best: a prior too narrow may do better than the truth.",
        "head": ["played with", "regret", "more than with the truth"],
        "rows": [
            [LABELS[name], plus_minus(one.regret), plus_minus(one.more)]
            for name, one in found.items()
        ],
    }


class Page:
    """What the page asks for, by address; one picture is drawn and one answer found at a time."""

    def __init__(self) -> None:
        self.background = Background()
        self._drawing, self._answering = Lock(), Lock()
        self._answers: dict[int, str] = {}

    def view(self, query: Query) -> dict[str, Any]:
        """Picture and table of ``name``, as wide as ``width`` (pixels of CSS), for a light page or,
        where ``dark`` is 1, a dark one."""
        setup = Setup.of(query)
        width = min(max(real("width", float(query.get("width", "700"))), 280.0), 1000.0) / 96
        draws = self.background.get(setup)
        with self._drawing, on_page(query.get("dark") == "1"):
            match one_of("name", query.get("name"), VIEWS):
                case "cloud":
                    return cloud_view(setup, width, draws)
                case "task":
                    return task_view(setup, width, query)
                case _:
                    return regret_view(setup, width, draws)

    def prepare(self) -> None:
        """Compile and load what a move needs."""
        for name in VIEWS:
            self.view({"name": name})

    def posterior(self, query: Query) -> dict[str, Any]:
        """Whether the posterior of these data is drawn; it is begun if not."""
        return {"state": self.background.ask(Setup.of(query))}

    def answer(self, query: Query) -> dict[str, Any]:
        """The answer of a question, its numbers computed when it is first asked for: whoever asks
        meanwhile waits for the same."""
        k = whole("question", int(query.get("question", "0")))
        if k >= len(QUESTIONS):
            raise InputError(f"question must be below {len(QUESTIONS)}")
        with self._answering:
            if k not in self._answers:
                self._answers[k] = QUESTIONS[k].answered()
            return {"text": self._answers[k]}


def html() -> str:
    """The page, with its sliders and questions."""
    default = Setup()
    told = {
        "controls": [
            {
                "name": control.name,
                "label": control.label,
                "stops": control.stops,
                "shown": [shown(control.name, stop) for stop in control.stops],
                "start": getattr(default, control.name),
            }
            for control in CONTROLS
        ],
        "same_data": SAME_DATA,
        "priors": [[name, LABELS[name]] for name in PRIORS],
        "questions": [
            {"title": one.title, "ask": one.ask, "setup": one.setup.changed()} for one in QUESTIONS
        ],
    }
    page = files("bayesmeta.teach").joinpath("page.html").read_text(encoding="utf-8")
    parts = {"told": json.dumps(told).replace("<", "\\u003c")}
    for dark, prefix in ((False, "light"), (True, "dark")):
        parts[f"{prefix} page"], parts[f"{prefix} text"] = PAGES[dark]
    for name, text in parts.items():
        page = page.replace(f"{{{{ {name} }}}}", text)
    return page


def refusal(path: str, headers: Message) -> str:
    """Why a request is not the page's own; empty where it is.

    Any page of the web may make a browser ask this machine: under a name of its own that it points
    here (the Host is another then), or under ours (browsers say that it was another page). It could
    not read the answer in the second case, but work would be done for it.
    """
    host = headers.get("Host", "").lower()
    if host.rsplit(":", 1)[0] not in NAMES:
        return "this page is for this machine"
    if path == "/" and headers.get("Sec-Fetch-Dest") == "document":
        return ""  # a link to the page, wherever it is
    if headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        return "this is for the page itself"
    if headers.get("Origin", f"http://{host}").lower() != f"http://{host}":
        return "this is for the page itself"
    return ""


class Server(ThreadingHTTPServer):
    """Serves the page on this machine; ``port`` 0 takes a free one."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        self.page = Page()
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://{HOST}:{self.server_port}/"

    def server_close(self) -> None:
        """Free the port, and end the process that draws."""
        super().server_close()
        self.page.background.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing where a browser has closed its connection, as it does with every page it leaves;
        a traceback otherwise."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        """Answer; what is wrong with a setting is said with status 400."""
        where = urlsplit(self.path)
        refused = refusal(where.path, self.headers)
        if refused:
            return self._send(HTTPStatus.FORBIDDEN, "text/plain", refused)
        if where.path == "/":
            return self._send(HTTPStatus.OK, "text/html", html())
        page = self.server.page
        answers: dict[str, Callable[[Query], dict[str, Any]]] = {
            "/view": page.view,
            "/posterior": page.posterior,
            "/answer": page.answer,
        }
        if where.path not in answers:
            return self._send(HTTPStatus.NOT_FOUND, "text/plain", "not found")
        try:
            status, found = HTTPStatus.OK, answers[where.path](dict(parse_qsl(where.query)))
        except ValueError as error:  # an InputError is one
            status, found = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except Exception as error:  # the page says it; otherwise it would say the server has ended
            status, found = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": one_line(error)}
        return self._send(status, "application/json", json.dumps(found))

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        try:
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the page has moved on

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a line for every move of a slider helps nobody."""
