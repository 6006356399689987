"""Small wrong changes of a source file, one at a time, each known by file, line, column and kind.

Left alone is what no test of numbers can see: docstrings, messages, annotations, ``__repr__`` and
the like, what is raised, decorators (a claim's own mutations are written there), and the arguments
of ``level.pick``, which say where a claim is looked at, not what it says.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FLIPPED = {
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
BOUNDARY = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
SWAPPED = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.MatMult: ("@", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
SHOWN = {"__repr__", "__str__", "_repr_html_", "__rich__"}
"""Methods that make text to look at."""


class Mutant(NamedTuple):
    """One change: ``before`` stands at ``start`` of the file and becomes ``after``."""

    file: str
    line: int
    column: int
    kind: str
    function: str
    """Name of the outermost function or method; empty where it stands outside of all."""
    text: str
    """The line, without its indentation."""
    before: str
    after: str
    start: int

    @property
    def id(self) -> str:
        return f"{self.file}:{self.line}:{self.column}:{self.kind}"

    @property
    def change(self) -> str:
        """What becomes what, on one line."""
        return f"{' '.join(self.before.split())} -> {' '.join(self.after.split())}"

    def applied(self, source: str) -> str:
        end = self.start + len(self.before)
        assert source[self.start : end] == self.before
        return source[: self.start] + self.after + source[end:]

    def diff(self, source: str) -> str:
        lines = difflib.unified_diff(
            source.splitlines(),
            self.applied(source).splitlines(),
            self.file,
            self.id,
            "",
            "",
            2,
            "",
        )
        return "\n".join(lines)

    def draw(self, seed: int) -> str:
        """The place in a random order that stays the same where other lines of a file change."""
        words = f"{seed}\n{self.file}\n{self.function}\n{self.text}\n{self.column}\n{self.kind}"
        return hashlib.sha256(words.encode()).hexdigest()


def mutants(root: Path, file: str) -> list[Mutant]:
    """All mutants of a file, in the order of its lines."""
    source = (root / file).read_text()
    found = {one.id: one for one in _Finder(file, source).all() if _compiles(one, source)}
    return sorted(found.values(), key=lambda one: (one.line, one.column, one.kind))


def _compiles(mutant: Mutant, source: str) -> bool:
    try:
        compile(mutant.applied(source), mutant.file, "exec")
    except SyntaxError:
        return False
    return True


class _Finder:
    def __init__(self, file: str, source: str) -> None:
        self.file, self.source = file, source
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def all(self) -> Iterator[Mutant]:
        yield from self._inside(ast.parse(self.source), "")

    def _offset(self, line: int, column: int) -> int:
        """From the parser's place, whose columns count bytes."""
        text = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(text)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self._offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self._offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def _inside(self, node: ast.AST, function: str, prefix: str = "") -> Iterator[Mutant]:
        for child in _children(node):
            inner, within = function, prefix
            if isinstance(child, ast.FunctionDef):
                inner = function or prefix + child.name
            elif isinstance(child, ast.ClassDef):
                within = f"{prefix}{child.name}."
            for kind, start, end, after in self._changes(child):
                yield self._mutant(kind, start, end, after, inner)
            yield from self._inside(child, inner, within)

    def _mutant(self, kind: str, start: int, end: int, after: str, function: str) -> Mutant:
        line = self.source.count("\n", 0, start) + 1
        column = start - self.starts[line - 1]
        before, text = self.source[start:end], self.lines[line - 1].strip()
        return Mutant(self.file, line, column, kind, function, text, before, after, start)

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        """Kind, start, end, what takes the place."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                for op, one, other in zip(ops, [left, *others], others, strict=False):
                    for kind, table in (("compare", FLIPPED), ("boundary", BOUNDARY)):
                        if type(op) in table:
                            yield from self._between(kind, one, other, *table[type(op)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED:
                if not _is_text(left) and not _is_text(right):
                    yield from self._between("arithmetic", left, right, *SWAPPED[type(op)])
                    if isinstance(op, ast.Sub) and _is_one(right):
                        yield "minus-one", self._span(left)[1], self._span(node)[1], ""
            case ast.BoolOp(op=op, values=[one, other, *_]):
                words = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                yield from self._between("and-or", one, other, *words)
            case ast.UnaryOp(op=ast.Not() | ast.USub() as op, operand=operand):
                kind = "not" if isinstance(op, ast.Not) else "minus"
                yield kind, self._span(node)[0], self._span(operand)[0], ""
            case ast.Constant(value=bool() as value):
                yield "bool", *self._span(node), str(not value)
            case ast.Constant(value=int() | float() as value):
                yield "constant", *self._span(node), repr(_next(value))
            case ast.AugAssign(target=target, op=op, value=value):
                yield "remove", *self._span(node), self._pass(node)
                if type(op) in SWAPPED:
                    sign, other = SWAPPED[type(op)]
                    yield from self._between("arithmetic", target, value, sign + "=", other + "=")
            case ast.Expr(value=ast.Call()):
                yield "remove", *self._span(node), self._pass(node)
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield "return", *self._span(value), "None"
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.If(test=test) | ast.IfExp(test=test):
                yield "true", *self._span(test), "True"
                yield "false", *self._span(test), "False"
            case ast.While(test=test):
                yield "false", *self._span(test), "False"
            case ast.comprehension(ifs=[test, *_]):
                yield "true", *self._span(test), "True"
            case ast.Call(func=func, args=[one, other, *_]) if not (
                _starred(one, other) or _symmetric(func)
            ):
                texts = [self.source[slice(*self._span(part))] for part in (one, other)]
                if texts[0] != texts[1]:
                    between = self.source[self._span(one)[1] : self._span(other)[0]]
                    span = self._span(one)[0], self._span(other)[1]
                    yield "swap", *span, texts[1] + between + texts[0]
            case ast.Break():
                yield "break", *self._span(node), "continue"
            case ast.Continue():
                yield "break", *self._span(node), "break"

    def _between(
        self, kind: str, one: ast.AST, other: ast.AST, word: str, after: str
    ) -> Iterator[tuple[str, int, int, str]]:
        """The operator between two parts; nothing where a comment may hide it."""
        start, end = self._span(one)[1], self._span(other)[0]
        gap = self.source[start:end]
        if "#" not in gap and word in gap:
            at = start + gap.index(word)
            yield kind, at, at + len(word), after

    def _pass(self, node: ast.stmt) -> str:
        """Nothing, on as many lines: other functions stay where they are, so does their code."""
        return "pass" + "\n" * ((node.end_lineno or node.lineno) - node.lineno)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node whose changes are worth a test."""
    skipped: list[object] = []
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            skipped = [*node.decorator_list, node.returns, *node.type_params]
        case ast.ClassDef():
            skipped = [*node.decorator_list, *node.bases, *node.type_params]
        case ast.AnnAssign() | ast.arg():
            skipped = [node.annotation]
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
    for child in ast.iter_child_nodes(node):
        if child not in skipped and not _is_left_alone(child):
            yield child


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.TypeAlias():
            return True
        case ast.FunctionDef(name=name):
            return name in SHOWN
        case ast.ClassDef(bases=bases):
            return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)
        case ast.Call(func=ast.Attribute(attr="warn" | "pick")):
            return True
    return False


def _next(value: int | float) -> int | float:
    if isinstance(value, int):
        return value + 1
    return 2 * value if value else 1.0


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _symmetric(function: ast.AST) -> bool:
    """Whether the order of arguments does not matter."""
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name in ("min", "max", "minimum", "maximum", "hypot", "samestat")


def _starred(*nodes: ast.AST) -> bool:
    return any(isinstance(node, ast.Starred) for node in nodes)
