"""The command line: parses options, and loads a command's modules only when it is run."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress

from bayesmeta.checks import InputError
from bayesmeta.commands import agents, check, fit, reproduce, sample, study, theory
from bayesmeta.commands.parsing import Parser
from bayesmeta.display import visible


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Exit codes: 0 done, 1 not all done, 2 bad input, 130 Ctrl-C."""
    if arguments is None and not sys.warnoptions:
        # as a program: results are looked at before they are shown, which says more than these
        warnings.simplefilter("ignore", RuntimeWarning)
    options = _parser().parse_args(arguments)
    with suppress(ValueError):  # only the main thread can handle signals
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # batch systems send SIGTERM
    try:
        return int(options.command(options))
    except InputError as error:
        print(f"bayesmeta: {visible(' '.join(str(error).splitlines()))}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader closed the pipe, as head does
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        return 0
    except KeyboardInterrupt as stop:
        said = f"; {stop}; the same command goes on from there" if stop.args else ""
        print(f"bayesmeta: interrupted{said}", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="bayesmeta", description="Metalearning linear bandits by prior update.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for command in (reproduce, study, fit, sample, check, theory, agents):
        command.add(commands)
    return parser


def _version() -> str:
    from importlib.metadata import version

    return version("bayesmeta")


if __name__ == "__main__":
    sys.exit(main())
