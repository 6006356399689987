"""Pages: templates and the rules that generated pages keep."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

from bayesmeta.checks import InputError
from bayesmeta.report.figures.style import new_figure
from bayesmeta.report.page import (
    faults,
    made_from,
    numbers_in,
    percent,
    plus_minus,
    render,
    write_page,
)
from bayesmeta.simulation.summaries import Interval

GOOD = """{% extends "page.md.j2" %}
{% block title %}Does it work?{% endblock %}
{% block headline %}It does, in {{ share | pm }} of the runs.{% endblock %}
{% block figure %}![what it shows](it.png){% endblock %}
{% block table %}{{ table(["a", "b"], [["1", "2"]]) }}{% endblock %}
{% block bullets %}
- one
- two
{% endblock %}
{% block more %}
{% call fold("All numbers") %}
{{ table(["a", "b", "c", "d", "e", "f"], [["1", "2", "3", "4", "5", "6"]]) }}
{% endcall %}
{% endblock %}
{% block limit %}One experiment.{% endblock %}
"""


@pytest.fixture
def page(tmp_path: Path) -> str:
    """A page that keeps all rules."""
    (tmp_path / "page.md.j2x").write_text(GOOD)
    return render(tmp_path / "page.md.j2x", share=Interval(0.9, 0.8, 1.0), command="make it")


def test_a_page_is_rendered(page: str) -> None:
    """Title, headline with its interval, figure, table, bullets, fold, limit, in this order."""
    assert page.startswith("# Does it work?\n\nIt does, in 0.90 ± 0.10 of the runs.\n")
    order = ["# Does", "It does", "![", "| a |", "- one", "<details>", "**Limit.** One", "<sub>"]
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert faults(page) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("| a | b |", "| a | b | c | d | e | f |", "6 columns"),
        ("- two", "- two\n- 3\n- 4\n- 5\n- 6", "6 bullets"),
        ("It does, in 0.90", "It does, in 1, 2, 3, 0.90", "4 numbers"),
        ("![what", "![one](1.png)\n\n![what", "one figure"),
        ("**Limit.**", "", "limit"),
        ("It does", "| no | headline |", "headline"),
    ],
)
def test_broken_rules_are_named(page: str, old: str, new: str, fault: str) -> None:
    """Each rule, broken by itself, is noticed."""
    assert any(fault in found for found in faults(page.replace(old, new, 1)))


def test_numbers_are_those_a_reader_meets() -> None:
    """An interval is one number; equations, code and names with digits are none."""
    text = "1.00 ± 0.02 of 10,000 tasks by eq. (11), `x = 3`, Theorem 2, N_0"
    assert numbers_in(text) == ["1.00", "10,000"]


def test_intervals_as_text() -> None:
    """No ± where there is a single run, or where all runs agree; shares in per cent."""
    assert plus_minus(Interval(1.0, 0.9, 1.1)) == "1.00 ± 0.10"
    assert plus_minus(Interval(1.0, float("nan"), float("nan"))) == "1.00"
    assert plus_minus(Interval(4.0, 4.0, 4.0), 1) == "4.0"
    assert percent(Interval(0.56, 0.532, 0.58)) == "56% [53, 58]"


def test_texts_and_figures_are_written_together(tmp_path: Path) -> None:
    """All files of a page, or none where one cannot be written."""
    figure = new_figure(1, 1)
    write_page({tmp_path / "a.md": "text"}, {tmp_path / "a.png": figure})
    assert (tmp_path / "a.md").read_text() == "text"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "b.png").mkdir()
    with pytest.raises(InputError, match=r"b\.png"):
        write_page({tmp_path / "b.md": "text"}, {tmp_path / "b.png": figure})
    assert not (tmp_path / "b.md").exists()


def test_a_name_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """No page with a hole in it."""
    from jinja2 import UndefinedError

    (tmp_path / "x.j2").write_text("{{ nothing }}")
    with pytest.raises(UndefinedError):
        render(tmp_path / "x.j2")


def test_a_page_says_how_many_states_of_the_source_made_it() -> None:
    """One by its name; several, also within one record; one that does not say is another."""
    one, other = (xr.Dataset(attrs={"versions": f'{{"source": "{s}"}}'}) for s in ("abc", "def"))
    both = xr.Dataset(attrs={"versions": '[{"source": "abc"}, {"source": "ghi"}]'})
    assert made_from([one, one]) == "made from one state of the source, abc"
    assert made_from([one, other]) == "made from 2 states of the source"
    assert made_from([one, other, both, xr.Dataset()]) == "made from 4 states of the source"
