"""Build the site: python docs/site/build.py [folder].

The pages of docs/, the notebooks with their stored outputs, and the generated pages of analyses/
are laid out as in the repository, so that their links mean the same here and there. To them are
added a reference of all public names, from their docstrings, and a table from the paper to the
code. The navigation is the list of links in docs/index.md.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import paper
import reference

ROOT = Path(__file__).resolve().parents[2]
KEPT = (
    "docs/*.md",
    "docs/*.png",
    "notebooks/*.ipynb",
    "analyses/*/*.md",
    "analyses/*/*.png",
    "analyses/*/*.csv",
    "analyses/*/*.json",
    "benchmarks/*.md",
    "benchmarks/*.png",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "CITATION.cff",
)
"""What the site is made of."""
HOME = """<!doctype html><meta charset="utf-8"><title>bayesmeta</title>
<meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">bayesmeta</a>
"""
"""The page at the top: the site keeps the folders of the repository."""


def lay_out(to: Path) -> None:
    """Write the sources of the site."""
    shutil.rmtree(to, ignore_errors=True)
    for pattern in KEPT:
        for path in sorted(ROOT.glob(pattern)):
            copy = to / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
    here = Path(__file__).parent
    shutil.copytree(here / "static", to / "static")
    pages = reference.pages() | {"paper-to-code": paper.page(ROOT)}
    for name, text in pages.items():
        (to / "docs" / f"{name}.md").write_text(text)
    index = to / "docs" / "index.md"
    index.write_text(with_navigation(index.read_text(), list(pages)))


def with_navigation(text: str, generated: list[str]) -> str:
    """The index, with a hidden tree of the pages that each of its sections links to; those that
    are generated stand under Reference, as links, too."""
    listed = "".join(f"- [{title_of(name)}]({name}.md)\n" for name in generated)
    text = text.replace("## Reference\n\n", f"## Reference\n\n{listed}")
    first, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    out = [first]
    for section in sections:
        title = section.split("\n", 1)[0]
        links = re.findall(r"\[([^]]+)\]\(((?!http)[^)#]+)\.(?:md|ipynb)\)", section)
        tree = "\n".join(f"{words[0].upper()}{words[1:]} <{page}>" for words, page in links)
        hidden = f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{tree}\n```"
        out.append(f"## {section.rstrip()}\n\n{hidden}\n\n")
    return "".join(out)


def title_of(name: str) -> str:
    """What the navigation calls a generated page."""
    return reference.TITLES.get(name, "From the paper to the code")


def build(folder: Path) -> int:
    """Build into a folder; warnings are errors. The exit code of Sphinx."""
    from sphinx.cmd.build import main

    source, html = folder / "source", folder / "html"
    lay_out(source)
    code = main(
        [
            *(
                "-q",
                "-W",
                "-E",
                "-a",
                "--keep-going",
                "-b",
                "html",
                "-c",
                str(Path(__file__).parent),
            ),
            *("-d", str(folder / "doctrees"), str(source), str(html)),
        ]
    )
    if html.is_dir():
        (html / "index.html").write_text(HOME)
    return code


if __name__ == "__main__":
    made = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    found = build(made)
    print(f"{made / 'html' / 'index.html'}" if found == 0 else "the site has faults, see above")
    sys.exit(found)
