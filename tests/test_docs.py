"""Docstrings of public names: numpydoc sections, and examples that run."""

from __future__ import annotations

import doctest
import inspect
import re
from types import ModuleType

import numpy as np
import pytest

import bayesmeta
import bayesmeta.agents

PUBLIC = {f"bm.{name}": getattr(bayesmeta, name) for name in bayesmeta.__all__} | {
    f"bm.agents.{name}": getattr(bayesmeta.agents, name) for name in bayesmeta.agents.__all__
}
CALLED = {
    name: value
    for name, value in PUBLIC.items()
    if inspect.isfunction(value) or inspect.isclass(value)
}
WITHOUT_EXAMPLE = {
    "bm.Status",
    "bm.FewDrawsWarning",
    "bm.FitWarning",
    "bm.InputError",
    "bm.NewTaskWarning",
    "bm.PriorWarning",
    "bm.agents.Learner",
}
"""Exceptions, warnings, an enumeration and a protocol: nobody calls them."""


def arguments(value: object) -> list[str]:
    """What a user may pass."""
    assert callable(value)
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


def section(text: str, title: str) -> str:
    """A section of a numpydoc docstring; empty where there is none."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


@pytest.mark.parametrize("name", sorted(set(CALLED) - WITHOUT_EXAMPLE))
def test_public_names_have_numpydoc(name: str) -> None:
    """Every argument is in Parameters; there are Examples; functions say what they return."""
    value = CALLED[name]
    text = inspect.getdoc(value) or ""
    listed = section(text, "Parameters")
    missing = [one for one in arguments(value) if not re.search(rf"\b{one}\b", listed)]
    assert not missing, f"{name} does not document {missing}"
    assert ">>>" in section(text, "Examples"), f"{name} has no example"
    made = inspect.signature(value).return_annotation
    if inspect.isfunction(value) and made not in ("None", "Policy", "Exploration", "FiniteSet"):
        assert section(text, "Returns"), f"{name} does not say what it returns"


def modules() -> list[ModuleType]:
    """Where public names are defined."""
    found = {inspect.getmodule(value) for value in CALLED.values()}
    return sorted((one for one in found if one is not None), key=lambda one: one.__name__)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_examples_run(module: ModuleType) -> None:
    """Every example of the module gives what it shows; np and bm are there, as in a notebook."""
    known = {"np": np, "bm": bayesmeta}
    result = doctest.testmod(module, extraglobs=known, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_examples_that_are_wrong_are_noticed() -> None:
    """A wrong example fails, and an argument that is not documented is found missing."""
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    wrong = parser.get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert runner.run(wrong, out=lambda text: None).failed == 1
    assert "b" not in section("Text.\n\nParameters\n----------\na : int\n", "Parameters")


def test_no_name_means_something_else_in_arviz() -> None:
    """None of our public names is one of ArviZ's, but for one that means the same: a picture that
    compares (models there, estimators here)."""
    import arviz

    assert set(bayesmeta.__all__) & set(dir(arviz)) == {"plot_compare"}
