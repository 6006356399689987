"""The notebooks run from top to bottom, and are stored with their outputs."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

import bayesmeta as bm

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [out for cell in notebook.cells for out in cell.get("outputs", [])]


def test_there_are_notebooks() -> None:
    """The folder is where the tests look for it."""
    numbers = [path.name[:2] for path in NOTEBOOKS]
    assert numbers == sorted(set(numbers)) and {"01", "02", "03", "04", "05", "06"} <= set(numbers)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_with_its_outputs(path: Path) -> None:
    """Readers on the web see figures; no cell is left unexecuted, none complains."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    found = outputs(notebook)
    assert sum("image/png" in out.get("data", {}) for out in found) >= 3
    assert not [out for out in found if out.get("name") == "stderr"]
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_executes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh kernel runs every cell without an error or a warning, and shows what is stored."""
    monkeypatch.syspath_prepend(str(FOLDER))
    from execute import execute

    stored, fresh = nbformat.read(path, as_version=4), execute(path)
    assert not [out for out in outputs(fresh) if out.get("name") == "stderr"]
    pictures = [
        sum("image/png" in out.get("data", {}) for out in outputs(notebook))
        for notebook in (stored, fresh)
    ]
    assert pictures[0] == pictures[1]
    said = [
        [
            out.data["text/markdown"]
            for out in outputs(notebook)
            if "text/markdown" in out.get("data", {})
        ]
        for notebook in (stored, fresh)
    ]
    assert said[0]
    texts = ["\n".join(one) for one in said]
    words = [NUMBER.sub("#", text) for text in texts]
    assert words[0] == words[1]
    # the numbers readers see are those of today; another processor's draws have other last digits
    for old, new in zip(*(NUMBER.findall(text) for text in texts), strict=True):
        last_digit = 10.0 ** -len(old.partition(".")[2])
        assert float(new) == pytest.approx(float(old), rel=0.05, abs=1.01 * last_digit)
    sys.modules.pop("execute")


def cells(path: Path, kind: str) -> list[str]:
    """The sources of the cells of a kind, "code" or "markdown"."""
    notebook = nbformat.read(path, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_what_it_is(path: Path) -> None:
    """A summary in one paragraph, goals, and, but for the first, what it takes from the one before,
    to which it links; it ends with what to take away."""
    first, *_ = texts = cells(path, "markdown")
    paragraphs = first.split("\n\n")
    assert paragraphs[0].startswith("# ")
    assert sum(one.startswith("**In short.**") for one in paragraphs) == 1
    goals = first[first.index("**After this notebook you can**") :]
    assert len(re.findall(r"^\d\. ", goals, re.MULTILINE)) >= 3
    before = dict(zip(NOTEBOOKS[1:], NOTEBOOKS, strict=False)).get(path)
    if before is not None:
        (taken,) = (one for one in paragraphs if one.startswith("**From the notebook before.**"))
        assert f"({before.name})" in taken
    assert any(re.search(r"^## \d\. What to take away$", text, re.MULTILINE) for text in texts)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_are_short_and_draw_by_name(path: Path) -> None:
    """No cell has more than 15 lines, or draws by itself what the package has a picture of; every
    picture has a text for those who do not see it."""
    code = cells(path, "code")
    assert max(len(source.splitlines()) for source in code) <= 15
    called = [one for source in code for one in calls(source)]
    assert "calibrate" in called or path.name.startswith(("04", "05"))
    assert not DRAWING & set(called)
    for cell in nbformat.read(path, as_version=4).cells:
        if any("image/png" in out.get("data", {}) for out in cell.get("outputs", [])):
            assert len(cell.metadata["mystnb"]["image"]["alt"]) > 20, cell.id


DRAWING = {
    *("plot", "scatter", "hist", "bar", "barh", "errorbar", "violinplot", "fill_between"),
    *("axhline", "axvline", "annotate", "text", "add_patch", "legend"),
}
"""Methods of axes that pictures are made of."""


def calls(source: str) -> list[str]:
    """The names of the functions and methods that a cell calls."""
    found = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in found]


def helpers(source: str) -> list[str]:
    """The bodies of the functions that a cell defines, without their names and texts."""
    made = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in made:
        if ast.get_docstring(node):
            node.body = node.body[1:]
    return ["\n".join(map(ast.dump, node.body)) for node in made]


def test_no_helper_is_copied() -> None:
    """No two cells define the same function, and none is one of the package."""
    found = [
        body for path in NOTEBOOKS for source in cells(path, "code") for body in helpers(source)
    ]
    assert len(found) > 5
    package = {
        body
        for path in Path(bm.__file__).parent.rglob("*.py")
        for body in helpers(path.read_text())
    }
    copied = [body for k, body in enumerate(found) if body in package or body in found[:k]]
    assert not copied
    (told,) = helpers('def say(text):\n    """Show."""\n    display(Markdown(text))')
    (other,) = helpers("def tell(text):\n    display(Markdown(text))")
    assert told == other  # names and texts do not count


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_solutions_run(path: Path) -> None:
    """Every exercise has a folded solution, which runs by itself and comes to what it says."""
    text = "\n".join(cells(path, "markdown"))
    exercises = text[text.index("### Exercises") :]
    folded = re.findall(r"<details>.*?```python\n(.*?)```.*?</details>", exercises, re.DOTALL)
    assert len(folded) == len(re.findall(r"^\d\. ", exercises, re.MULTILINE)) >= 3
    for source in folded:
        assert "assert" in source
        exec(source, {"bm": bm, "np": np})


def test_notebooks_are_listed_in_their_order() -> None:
    """By the course, the index of the site, and the page that says where to look."""
    for page in ("course.md", "index.md", "where-to-look.md"):
        text = (FOLDER.parent / "docs" / page).read_text()
        listed = re.findall(r"notebooks/([\w-]+\.ipynb)", text)
        assert listed == [path.name for path in NOTEBOOKS], page
    course = (FOLDER.parent / "docs" / "course.md").read_text()
    assert len(re.findall(r"^## Session \d", course, re.MULTILINE)) == 3
