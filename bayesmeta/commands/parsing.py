"""The parser of the command line: errors take one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from bayesmeta.display import visible


class Parser(argparse.ArgumentParser):
    """Exit code 2 and one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {visible(message)} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Let the command that does not know an argument refuse it, with its own help."""
        found, rest = super().parse_known_args(args, namespace)
        if rest and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest


type Subparsers = argparse._SubParsersAction[Parser]
