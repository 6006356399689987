"""Picture of the claims of the paper: which hold, and which are violated, section by section."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from bayesmeta.checks import InputError, one_of
from bayesmeta.claims import all_claims
from bayesmeta.claims.claim import Group, Section
from bayesmeta.claims.run import Checked, recorded
from bayesmeta.claims.verdict import PROVED, Outcome
from bayesmeta.report.figures.lab import panels_of
from bayesmeta.report.figures.style import (
    APART,
    BLUE,
    INK,
    LABEL,
    NOTE,
    ORANGE,
    SMALL,
    clean,
    new_figure,
    note_below,
    tone,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS: dict[str, tuple[str, str, str]] = {
    "holds": ("o", BLUE, "full"),
    PROVED: ("o", BLUE, "none"),
    "undecided": ("s", NOTE, "none"),
    "violated": ("X", ORANGE, "full"),
}
"""Marker, colour and filling of a verdict."""
_WORDS = {"o full": "circle", "o none": "open circle", "s none": "open square", "X full": "cross"}
assert set(_MARKS) == set(get_args(Outcome))


def plot_claims(
    found: Iterable[Checked] | Mapping[str, str] | None = None,
    *,
    group: str = "printed",
    axes: Axes | None = None,
) -> Figure:
    """The paper's claims, section by section: which hold, and by name those that are violated.

    Parameters
    ----------
    found : list of Checked, or dict from ids to verdicts, optional
        What ``bm.claims.run.check_claims`` returned; the recorded verdicts where None.
    group : str
        Whose statements: ``"printed"``, ``"in another reading"`` or ``"ours"``.
    axes : matplotlib.axes.Axes, optional
        Where to draw; a new figure where None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> figure = bm.plot_claims()
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()][:2]
    ['events', 'covariance alignment']
    """
    group = one_of("group", group, [one.value for one in Group])
    verdicts = _verdicts(found)
    claims = all_claims()
    rows: dict[str, list[str]] = {}
    for section in Section:
        own = [c.id for c in claims.values() if c.section is section and c.group.value == group]
        own = [name for name in own if name in verdicts]
        if own:
            rows[section.value] = sorted(own, key=lambda name: list(_MARKS).index(verdicts[name]))
    if not rows:
        raise InputError(f"found has no claims of the group {group!r}")
    if axes is None:
        figure = new_figure(10.5, 1.3 + 0.42 * len(rows))
        panel = figure.subplots()
    else:
        figure, (panel,) = panels_of(axes, 1)
    widest = max(map(len, rows.values()))
    for place, names in enumerate(rows.values()):
        _row(panel, place, names, verdicts)
    panel.set_yticks(range(len(rows)), list(rows))
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlim(0.2, 2.2 * widest + 1)
    panel.set_xticks(range(1, widest + 1))
    panel.tick_params(axis="y", length=0)
    panel.set_xlabel("claims", fontsize=LABEL, loc="left")
    clean(panel, grid="")
    total = [verdicts[name] for names in rows.values() for name in names]
    panel.set_title(
        f"{total.count('holds')} of {len(total)} claims hold, {total.count('violated')} are "
        f"violated ({group})"
    )
    if axes is None:
        note_below(figure, APART.join(_key(total)) + f"{APART}at the right: those violated")
    return figure


def _verdicts(found: Iterable[Checked] | Mapping[str, str] | None) -> dict[str, str]:
    """Verdicts by id."""
    if found is None:
        return recorded(quick=False)
    if isinstance(found, Mapping):
        pairs: dict[Any, Any] = dict(found)
    else:
        several = list(found)
        if not all(isinstance(one, Checked) for one in several):
            raise InputError("found must be what check_claims returned, or ids with verdicts")
        pairs = {one.claim.id: one.verdict.verdict for one in several}
    claims = all_claims()
    return {
        one_of("claim", name, claims): one_of("verdict", verdict, _MARKS)
        for name, verdict in pairs.items()
    }


def _row(axes: Axes, place: int, names: list[str], verdicts: Mapping[str, str]) -> None:
    """A mark for every claim of a section, and the names of those that are violated."""
    for k, name in enumerate(names, 1):
        marker, color, style = _MARKS[verdicts[name]]
        axes.plot(k, place, marker, color=tone(color), fillstyle=style, markersize=7, gid=name)
    bad = [name for name in names if verdicts[name] == "violated"]
    half = -(-len(bad) // 2) if len(bad) > 2 else len(bad)
    text = "\n".join(", ".join(part) for part in (bad[:half], bad[half:]) if part)
    axes.annotate(
        text,
        (len(names) + 0.7, place),
        va="center",
        fontsize=SMALL,
        color=tone(INK),
    )


def _key(total: list[str]) -> list[str]:
    """What marks mean, of the verdicts there are."""
    return [
        f"{_WORDS[f'{marker} {style}']}: {verdict}"
        for verdict, (marker, _, style) in _MARKS.items()
        if verdict in total
    ]
