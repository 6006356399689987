"""What each analysis runs."""

from __future__ import annotations

from importlib import import_module

from bayesmeta.checks import InputError, one_of
from bayesmeta.runner.cell import one_line
from bayesmeta.runner.study import Study

MODULES = (
    "figure1",
    "estimators",
    "calibration",
    "lab",
    "bayes",
    "theorems",
    "intervals",
    "singular",
    "rivals",
    "growing",
    "published",
    "replay",
)
"""The modules of this folder that have ``STUDIES``."""


def all_studies() -> dict[str, Study]:
    """The studies of all analyses, by name."""
    modules = [import_module(f"bayesmeta.studies.{name}") for name in MODULES]
    return {study.name: study for module in modules for study in module.STUDIES}


def find_study(name: str) -> Study:
    """A study by its name, or one's own as ``module:variable``."""
    if ":" not in name:
        return all_studies()[one_of("study (one's own is module:variable)", name, all_studies())]
    module, _, variable = name.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), variable]):
        raise InputError(f"{name!r} is not module:variable, such as my_study:study (without .py)")
    try:
        loaded = import_module(module)
    except Exception as error:
        raise InputError(f"cannot import {module!r}: {one_line(error)}") from error
    if not hasattr(loaded, variable):
        raise InputError(f"module {module!r} has no {variable!r}")
    found = getattr(loaded, variable)
    if not isinstance(found, Study):
        raise InputError(f"{name!r} is not a Study but of type {type(found).__name__}")
    return found
