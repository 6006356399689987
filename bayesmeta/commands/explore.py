"""``bayesmeta explore``: a page to play with, in a browser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bayesmeta.checks import InputError, whole

if TYPE_CHECKING:
    from bayesmeta.commands.parsing import Subparsers

PORT = 8501


def add(commands: Subparsers) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explore",
        help="a page to play with: learn a prior in two dimensions",
        description="Serve a page on this machine, with sliders for the prior, the noise and the "
        "tasks; pictures of estimates, of one task step by step and of regret; and seven questions "
        "for a class. Needs no network. Ctrl-C ends it.",
        example="bayesmeta explore --port 8600 --no-browser",
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help="default: %(default)s; 0 takes a free one"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, and open nothing"
    )
    parser.set_defaults(command=_explore)


def _explore(options: argparse.Namespace) -> int:
    import webbrowser
    from threading import Thread

    from bayesmeta.runner.progress import compiling
    from bayesmeta.teach.server import Server

    port = whole("--port", options.port)
    if port > 65535:
        raise InputError(f"--port must be at most 65535, got {port}")
    try:
        server = Server(port)
    except OSError as error:
        raise InputError(
            f"port {port} cannot be used ({error.strerror}); give another one with --port, or "
            "--port 0 for a free one"
        ) from None
    with server:
        print("preparing …", flush=True)
        with compiling():
            server.page.prepare()
        print(f"the page is at {server.address} (Ctrl-C ends it)", flush=True)
        if not options.no_browser:
            # beside the server: a browser in the terminal returns when it is closed
            Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()
        server.serve_forever()
    return 0
