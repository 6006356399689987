"""What each analysis runs."""

from __future__ import annotations

from importlib import import_module

from bayesmeta.cells import Study
from bayesmeta.checks import InputError, one_of

MODULES = ("figure1",)
"""The modules of this folder that have ``STUDIES``."""


def all_studies() -> dict[str, Study]:
    """The studies of all analyses, by name."""
    modules = [import_module(f"bayesmeta.studies.{name}") for name in MODULES]
    return {study.name: study for module in modules for study in module.STUDIES}


def find_study(name: str) -> Study:
    """A study by its name, or one's own as ``module:variable``."""
    if ":" not in name:
        return all_studies()[one_of("study", name, all_studies())]
    module, _, variable = name.partition(":")
    try:
        loaded = import_module(module)
    except (ModuleNotFoundError, ValueError) as error:
        raise InputError(f"no study {name!r} ({error}); write module:variable") from None
    if not hasattr(loaded, variable):
        raise InputError(f"no study {name!r} (the module has no {variable!r})")
    found = getattr(loaded, variable)
    if not isinstance(found, Study):
        raise InputError(f"{name!r} is a {type(found).__name__}, not a Study")
    return found
