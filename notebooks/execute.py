"""Execute the notebooks of this folder in place; errors fail, and nothing that varies is kept.

python notebooks/execute.py                 # all of them
python notebooks/execute.py 01              # those whose name begins so
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.font_manager  # noqa: F401  (its cache is built here, not announced in a notebook)
import nbformat
from nbclient import NotebookClient

from bayesmeta.runner.files import write_atomically

HERE = Path(__file__).resolve().parent
TIMEOUT = 300
"""Seconds a cell may take."""


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a fresh kernel; raises where a cell does. Writes nothing."""
    path = Path(path).resolve()
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    return tidy(notebook)


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave out, in place, what says when and where a notebook ran rather than what it showed."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    return notebook


def main(prefix: str = "") -> None:
    """Execute every notebook whose name begins with ``prefix`` and write it back."""
    for path in sorted(HERE.glob(f"{prefix}*.ipynb")):
        text = nbformat.writes(execute(path)) + "\n"
        write_atomically(path, lambda to, text=text: to.write_text(text, encoding="utf-8"))
        print(f"{path.name}: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main(*sys.argv[1:2])
