"""The parser of the command line: errors take one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from bayesmeta.display import visible


class Parser(argparse.ArgumentParser):
    """Exit code 2 and one line; numbers without Python's underscores; ``example`` ends the help."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example
        for kind in (int, float):
            self.register("type", kind, partial(plain, kind))

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {visible(message)} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)

    def format_help(self) -> str:
        """With the example as it stands: a command that is wrapped cannot be copied."""
        return super().format_help() + (f"\nexample:\n  {self.example}\n" if self.example else "")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Let the command that does not know an argument refuse it, with its own help."""
        found, rest = super().parse_known_args(args, namespace)
        if rest and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest


def plain[T: (int, float)](kind: type[T], text: str) -> T:
    """A number as it is written elsewhere, too: to Python, 1_5 is 15."""
    if "_" in text:
        raise ValueError(text)
    return kind(text)


def listed(text: str) -> list[str]:
    """The parts of an option that stand between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


type Subparsers = argparse._SubParsersAction[Parser]
