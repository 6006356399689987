"""Pages of the reference: every public name once, in groups, with its docstring."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from pathlib import Path

import bayesmeta
import bayesmeta.agents
import bayesmeta.simulation

GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "reference-fit": (
        "Fit a table",
        (
            "fit", "FittedPrior", "FittedPosterior", "tabulate", "load_data", "NewTaskWarning",
            "FewDrawsWarning", "InputError",
        ),
    ),
    "reference-priors": (
        "Priors and estimates",
        (
            "GaussianPrior", "TaskStatistics", "fit_prior", "task_posteriors", "with_metadata",
            "MetadataModel", "PriorEstimate", "Status",
        ),
    ),
    "reference-posterior": (
        "The posterior of the prior",
        (
            "sample_posterior", "default_prior", "LKJ", "InverseWishart", "KnownCovariance",
            "build_model", "trustworthy", "add_log_likelihood", "add_predictive", "add_theta",
            "FitWarning", "PriorWarning",
        ),
    ),
    "reference-families": (
        "Families of tasks",
        (
            "TaskFamily", "paper_family", "arms_family", "linear_family", "pricing_family",
            "Prices", "Setting", "Bounds",
            "UniformBall", "WholeBall", "FiniteSet", "unit_vectors", "TruncatedGaussian",
            "RadialDensity",
        ),
    ),
    "reference-play": (
        "Agents, and playing",
        ("simulate", "summarise", "Player", "Agent", "ROSTER", "read_record", "write_record"),
    ),
    "reference-lab": (
        "The calibration lab",
        ("calibrate", "measures", "EstimateWithIntervals"),
    ),
    "reference-pictures": (
        "Pictures",
        (
            "plot_prior", "plot_tasks", "plot_regret", "plot_errors", "plot_compare",
            "plot_coverage", "plot_coverage_by_tasks", "plot_next_task", "plot_biases",
            "plot_claims",
        ),
    ),
    "reference-studies": (
        "Studies",
        ("Study", "grid", "run_study", "study_status", "collect", "report_progress"),
    ),
}  # fmt: skip
"""Pages with their titles, and the names of ``bm`` on them; a test checks that none is missing."""
FOLDERS = {
    "reference-agents": ("bm.agents: parts of agents", "bayesmeta.agents"),
    "reference-simulation": ("bm.simulation", "bayesmeta.simulation"),
}
"""Pages with all public names of a folder."""
TITLES = {name: title for name, (title, _) in (GROUPS | FOLDERS).items()}


def pages() -> dict[str, str]:
    """Every page by its name, in Markdown."""
    found = {}
    for page, (title, names) in GROUPS.items():
        found[page] = _page(title, "bayesmeta", names)
    for page, (title, module) in FOLDERS.items():
        folder = getattr(bayesmeta, module.split(".")[1])
        names = [name for name in folder.__all__ if not _known(getattr(folder, name))]
        found[page] = _page(title, module, names)
    return found


def _known(value: object) -> bool:
    """Whether the same is a name of ``bm``."""
    return any(value is getattr(bayesmeta, name) for name in bayesmeta.__all__)


def _page(title: str, module: str, names: tuple[str, ...] | list[str]) -> str:
    """A table of the names, then each with its docstring."""
    short = module.replace("bayesmeta", "bm", 1)
    values = {name: getattr(__import__(module, fromlist=[name]), name) for name in names}
    rows = [
        f"| [`{short}.{name}`](#ref-{module}.{name}) | {_first_line(value)} |"
        for name, value in values.items()
    ]
    table = "\n".join(["| name | what it is |", "|---|---|", *rows])
    entries = [_entry(module, name, value) for name, value in values.items()]
    return f"# {title}\n\n{table}\n\n" + "\n\n".join(entries) + "\n"


def _entry(module: str, name: str, value: object) -> str:
    """A heading, and the docstring; of constants the text below them in the source."""
    head = f"(ref-{module}.{name})=\n## {name}\n\n"
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return f"{head}{_constant(name) or f'A `{type(value).__name__}`.'}"
    kind = "function"
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, Exception) else "class"
    return f"{head}```{{eval-rst}}\n.. auto{kind}:: {module}.{name}\n```"


def _constant(name: str) -> str:
    """The string below the assignment of a constant somewhere in the package."""
    for path in sorted(Path(bayesmeta.__file__).parent.rglob("*.py")):
        if name not in (text := path.read_text()):
            continue
        for one, after in pairwise(ast.parse(text).body):
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", one)]
            if name in [getattr(target, "id", "") for target in targets] and isinstance(
                after, ast.Expr
            ):
                return str(ast.literal_eval(after.value)).replace("``", "`").replace("_*", r"_\*")
    return ""


def _first_line(value: object) -> str:
    """Of the docstring, for the table."""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return "a constant"  # its text is below
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return text.replace("|", r"\|").replace("_*", r"_\*").replace("``", "`")
