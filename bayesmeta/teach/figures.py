"""The pictures of the page, drawn as wide as its reader's screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array, is_covariance
from bayesmeta.report.figures.ellipse import ellipse, reach, within
from bayesmeta.report.figures.style import (
    BAND,
    BLUE,
    FAINT,
    INK,
    LABEL,
    NOTE,
    ORANGE,
    SMALL,
    End,
    Look,
    clean,
    label_ends,
    method_look,
    tone,
)
from bayesmeta.teach.posterior import Draws
from bayesmeta.teach.world import METHODS, Cloud, NextRegret, Steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSIDE = 0.9
"""The probability inside every ellipse."""
LABELS = {
    "truth": "truth",
    "moment": "eq. (11)",
    "moment-widened": "eq. (12)",
    "reml": "REML",
    "posterior": "posterior",
    "nothing": "no prior known",
}
"""What the page calls a prior, by its name in ``world.PRIORS``."""
_LOOKS = {"truth": Look("", INK, "-", "o"), "nothing": Look("", "#CC79A7", (0, (1, 2)), "^")}
"""Of what is no method of estimation."""
PAGES = {False: ("#ffffff", "#222222"), True: ("#15181c", "#e6e6e6")}
"""Page and text, where the browser asks for a light page, and for a dark one."""
DRAWN = 25
"""Ellipses of posterior draws."""
KEY = 0.66
"""Inches above a panel of ``figure_step``, for its title and key."""


@contextmanager
def on_page(dark: bool = False) -> Iterator[None]:
    """Draw for a light or for a dark page, whatever matplotlib's settings are."""
    import matplotlib as mpl

    page, text = PAGES[dark]
    with mpl.rc_context(
        {
            "axes.facecolor": page,
            "axes.edgecolor": text,
            "axes.labelcolor": text,
            "xtick.color": text,
            "ytick.color": text,
            "text.color": text,
        }
    ):
        yield


def look(name: str) -> Look:
    """How the page draws a prior."""
    method = "posterior draws" if name == "posterior" else name
    own = _LOOKS[name] if name in _LOOKS else method_look(method)
    return own._replace(label=LABELS[name]).toned()


def to_svg(figure: Figure) -> str:
    """The picture as an SVG element with its words as text, and nothing behind it; without names of
    its groups, as the page has several pictures, and a name may occur once."""
    import matplotlib as mpl

    out = StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "explore"}):
        figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
    text = out.getvalue()
    return re.sub(r'<g id="[^"]*"', "<g", text[text.index("<svg") :])


def figure_cloud(found: Cloud, draws: Draws | None = None, width: float = 7.0) -> Figure:
    """Thetas, their least squares, and ellipses of the truth and of every estimate."""
    figure, axes = _panel(width, right=1.1, tall=min(4.6, 0.95 * width))
    truth = found.family.prior
    priors = {"truth": truth} | {name: found.fit(name).prior for name in METHODS}
    lines = {
        name: ellipse(one.mean, one.cov, INSIDE)
        for name, one in priors.items()
        if is_covariance(one.cov)
    }
    _limits(axes, truth.mean, [found.thetas, *(line.T for line in lines.values())])
    if len(found.thetas) <= 100:
        pairs = np.stack([found.thetas, found.estimates], axis=1)
        for pair in pairs:
            axes.plot(*pair.T, color=tone(BAND), linewidth=0.6, zorder=1)
    axes.plot(*found.estimates.T, "o", color=tone(FAINT), markersize=3, fillstyle="none", zorder=2)
    axes.plot(*found.thetas.T, "o", color=tone(INK), markersize=2.2, zorder=3)
    ends = []
    if draws is not None:
        some = np.linspace(0, len(draws.mus) - 1, DRAWN).astype(int)
        drawn = [ellipse(draws.mus[k], draws.covs[k], INSIDE) for k in some]
        for line in drawn:
            axes.plot(*line, color=look("posterior").color, linewidth=0.5, zorder=2)
        ends.append(_end(axes, drawn[0], "posterior"))
    for name, line in lines.items():
        own = look(name)
        wide = 2.4 if name == "truth" else 1.6
        axes.plot(*line, color=own.color, linestyle=own.line, linewidth=wide, zorder=4)
        ends.append(_end(axes, line, name))
    axes.set(xlabel="θ₁", ylabel="θ₂")
    clean(axes)
    title = "● θ of a task\u2003○ its least squares"  # plain spaces are one in a browser
    axes.set_title(title, fontsize=LABEL, color=tone(NOTE), loc="left")
    label_ends(axes, ends)
    return figure


def outside(found: Cloud, axes: Axes) -> int:
    """How many least squares lie outside the picture."""
    return int((~within(axes, found.estimates)).sum())


def figure_step(steps: Steps, step: int, width: float = 7.0) -> Figure:
    """Before step ``step`` (from 0): posterior, what was sampled, the actions on offer and the
    choice; and regret so far and to come."""
    from matplotlib.figure import Figure

    columns = 3 if width > 5.5 else 1
    each = (width - 0.7 * columns) / columns
    tall = min(each, 2.7)
    row = tall + 0.48 + KEY  # with what is below and above the axes
    figure = Figure(figsize=(width, row * 3 / columns))
    panels = []
    for k in range(3):
        column, below = (k, 0) if columns == 3 else (0, 2 - k)
        panels.append(_axes(figure, 0.6 + column * (each + 0.7), 0.48 + below * row, each, tall))
    _belief(panels[0], steps, step)
    _offer(panels[1], steps, step)
    _regret_so_far(panels[2], steps, step)
    return figure


def _belief(axes: Axes, steps: Steps, step: int) -> None:
    before = ellipse(steps.prior.mean, steps.prior.cov, INSIDE)
    now = ellipse(steps.means[step], steps.covs[step], INSIDE)
    far = reach(steps.covs, INSIDE)  # of all steps: limits stay
    _limits(axes, steps.prior.mean, [steps.means + far, steps.means - far, steps.theta[None]])
    axes.plot(*before, color=tone(NOTE), linestyle=(0, (4, 2)), linewidth=1.2)
    axes.plot(*now, color=tone(BLUE), linewidth=1.8)
    axes.plot(*steps.theta, "*", color=tone(INK), markersize=10)
    if step < len(steps.sampled):
        axes.plot(*steps.sampled[step], "D", color=tone(ORANGE), markersize=5, clip_on=False)
    axes.set(xlabel="θ₁", ylabel="θ₂")
    _headed(
        axes,
        "belief about θ",
        [("★ θ", INK), ("┄ prior", NOTE), ("─ now", BLUE), ("◆ sampled", ORANGE)],
    )


def _offer(axes: Axes, steps: Steps, step: int) -> None:
    from matplotlib.patches import Circle

    radius = float(np.linalg.norm(steps.actions, axis=-1).max())
    _limits(axes, np.zeros(2), [radius * np.array([[1, 1], [-1, -1]])], room=1.15)
    axes.add_patch(Circle((0, 0), radius, fill=False, color=tone(FAINT), linewidth=0.8))
    if step < len(steps.actions):
        offered = steps.actions[step]
        axes.plot(*offered.T, "o", color=tone(FAINT), markersize=4)
        for theta, color in ((steps.theta, INK), (steps.sampled[step], ORANGE)):
            tip = radius * theta / max(float(np.linalg.norm(theta)), 1e-12)
            axes.annotate(
                "",
                tuple(tip),
                (0, 0),
                arrowprops={"arrowstyle": "->", "color": tone(color), "linewidth": 1.2},
            )
        axes.plot(*offered[steps.best[step]], "o", color=tone(INK), markersize=9, fillstyle="none")
        axes.plot(*offered[steps.chosen[step]], "D", color=tone(ORANGE), markersize=5)
    axes.set(xlabel="a₁", ylabel="a₂")
    key = [("○ best", INK), ("→ towards θ", INK), ("◆ chosen", ORANGE), ("→ sampled", ORANGE)]
    _headed(axes, "actions on offer", key)


def _regret_so_far(axes: Axes, steps: Steps, step: int) -> None:
    last = len(steps.regret) - 1
    axes.plot(np.arange(last + 1), steps.regret, color=tone(NOTE), linewidth=0.8)
    axes.plot(np.arange(step + 1), steps.regret[: step + 1], color=tone(BLUE), linewidth=1.8)
    axes.plot(step, steps.regret[step], "o", color=tone(BLUE), markersize=5, clip_on=False)
    axes.set(xlabel="steps", xlim=(0, last), ylim=(0, 1.1 * max(steps.regret[-1], 1e-9)))
    _headed(axes, "regret", [("─ so far", BLUE), ("─ to come", NOTE)])


def figure_regret(found: dict[str, NextRegret], width: float = 7.0) -> Figure:
    """Mean regret of the next task with each prior, with 95% intervals over the tasks."""
    tall = 0.36 * len(found)
    figure, axes = _panel(width, left=1.2, right=0.25, top=0.1, tall=tall)
    for row, (name, one) in enumerate(found.items()):
        drawn, own = look(name), one.regret
        axes.hlines(row, own.low, own.high, color=drawn.color, linewidth=1.6)
        axes.plot(own.mean, row, drawn.marker, color=drawn.color, markersize=6)
    axes.axvline(found["truth"].regret.mean, color=tone(FAINT), linewidth=0.8)
    axes.set_yticks(range(len(found)), [LABELS[name] for name in found], fontsize=LABEL)
    axes.set(ylim=(len(found) - 0.5, -0.5), xlabel="regret of the next task")
    axes.set_xlim(left=0)
    clean(axes, grid="x")
    return figure


def _panel(
    width: float, *, tall: float, left: float = 0.6, right: float = 0.2, top: float = 0.35
) -> tuple[Figure, Axes]:
    """A figure with one panel at fixed margins: a layout engine takes as long as all the rest."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, tall + 0.5 + top))
    return figure, _axes(figure, left, 0.5, width - left - right, tall)


def _axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at a place in inches."""
    size = figure.get_size_inches()
    place = (left / size[0], bottom / size[1], width / size[0], height / size[1])
    axes: Any = figure.add_axes(place)
    axes.tick_params(labelsize=SMALL)
    return axes  # type: ignore[no-any-return]


def _limits(axes: Axes, centre: Array, parts: list[Array], room: float = 1.08) -> None:
    """About the centre, as far as the parts reach, both axes on one scale."""
    box = axes.get_window_extent()
    reach = np.max([np.abs(part - centre).max(axis=0) for part in parts], axis=0) * room
    unit = max(reach[0] / box.width, reach[1] / box.height)
    axes.set_xlim(centre[0] - unit * box.width, centre[0] + unit * box.width)
    axes.set_ylim(centre[1] - unit * box.height, centre[1] + unit * box.height)


def _end(axes: Axes, line: Array, name: str) -> End:
    """Where an ellipse reaches furthest to the right, within the picture; at its edge, where an
    ellipse goes around all of it."""
    inside = line.T[within(axes, line.T)]
    if not len(inside):
        low, high = np.transpose([axes.get_xlim(), axes.get_ylim()])
        inside = line.T.clip(low, high)
    x, y = max(inside.tolist())
    return End(x, y, look(name))


def _headed(axes: Axes, title: str, key: list[tuple[str, str]]) -> None:
    """A title, and below it what the marks of a panel are, two a line: marks in their colours,
    words in the colour of words, which is easier to read."""
    clean(axes)
    box = axes.get_window_extent()
    inch = axes.figure.dpi / box.height
    axes.text(0, 1 + (KEY - 0.2) * inch, title, fontsize=LABEL + 1, transform=axes.transAxes)
    for k, (text, color) in enumerate(key):
        place = (0.5 * (k % 2), 1 + (KEY - 0.4 - 0.17 * (k // 2)) * inch)
        mark, word = text.split(" ", 1)
        for part, ink, right in ((mark, color, 0.0), (word, NOTE, 0.13)):
            x = place[0] + right * axes.figure.dpi / box.width
            axes.text(x, place[1], part, color=tone(ink), fontsize=SMALL, transform=axes.transAxes)
