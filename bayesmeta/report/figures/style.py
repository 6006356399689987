"""The one style of all figures: looks of agents and methods, axes, and labels at lines' ends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, NOTE, FAINT, GRID = "#222222", "#555555", "#999999", "#e6e6e6"
"""Colours of labels, notes, lines of reference and grids; ``tone`` fits them to the page."""
BLUE, ORANGE, BAND = "#0072B2", "#D55E00", "#dddddd"
"""Two colours that contrast for everybody, and what fills a band."""
CONTRAST = 3.0
"""Of a line and a dark page, at least: what WCAG 2 asks of graphics."""
TITLE, LABEL, SMALL = 11.0, 9.5, 8.0
"""Sizes of type: titles of panels; labels and notes; ticks with long names."""
LINE, THIN, MARKER = 1.6, 0.7, 4.5
"""Widths of lines and leaders, and size of markers, in points."""
APART = "    "
"""Between the parts of a line of a note, which may be broken there."""
DPI = 110
"""Resolution of the figures that are kept."""


class Look(NamedTuple):
    """How a line is drawn: label, colour, dashes and marker, readable without the colour."""

    label: str
    color: str
    line: Any
    marker: str

    def toned(self) -> Look:
        """The same on the page there is."""
        return self._replace(color=tone(self.color))

    def options(self, marked: bool = True) -> dict[str, Any]:
        """The arguments of matplotlib's ``plot``."""
        dots = {"marker": self.marker, "markersize": MARKER} if marked else {}
        return {"color": self.color, "linestyle": self.line, "linewidth": LINE, **dots}


def tone(color: str) -> str:
    """The colour on the page that matplotlib's settings ask for: as it is where axes are light. On
    a dark one a grey keeps its place between the page and the text, and other colours are mixed
    with that of the text until they show."""
    from matplotlib import rcParams
    from matplotlib.colors import to_hex, to_rgb

    page, text = (np.array(to_rgb(rcParams[name])) for name in ("axes.facecolor", "text.color"))
    if _light(page) >= 0.5:
        return color
    own = np.array(to_rgb(color))
    if np.ptp(own) < 0.02:
        return to_hex(tuple(own.mean() * page + (1 - own.mean()) * text))
    shares = np.linspace(0, 1, 21)
    mixed = [(1 - share) * own + share * text for share in shares]
    shown = (one for one in mixed if (_light(one) + 0.05) / (_light(page) + 0.05) >= CONTRAST)
    return to_hex(tuple(next(shown, text)))


def _light(rgb: Array) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


# colours of Okabe and Ito, told apart by all common kinds of colour vision
_AGENTS = {
    "KTS": Look("KTS", "#000000", "-", "o"),
    "KMTS": Look("KMTS", "#E69F00", (0, (6, 2)), "s"),
    "UKTS": Look("UKTS", "#777777", (0, (1, 1)), "^"),
    "Th-MTS_tau": Look(r"Th-MTS$_\tau$", "#0072B2", "-", "D"),
    "All-MTS_tau": Look(r"All-MTS$_\tau$", "#009E73", (0, (5, 1, 1, 1)), "v"),
    "All-MTS": Look("All-MTS", "#D55E00", (0, (3, 1)), "P"),
    "REML-TS": Look("REML-TS (ours)", "#AA3377", "--", "*"),
    "ML-TS": Look("ML-TS (ours)", "#56B4E9", "--", "X"),
    "HB-TS": Look("HB-TS (ours)", "#332288", (0, (2, 1)), "h"),
    "HB-mean-TS": Look("HB-mean-TS (ours)", "#999933", (0, (4, 1, 1, 1)), "<"),
    "MetaTS": Look("MetaTS", "#882255", (0, (6, 2)), "X"),
    "AdaTS": Look("AdaTS", "#44AA99", (0, (3, 1, 1, 1)), "d"),
    "MetaMean": Look("MetaMean", "#CC79A7", (0, (1, 1)), "p"),
    "MarginalTS": Look("MarginalTS", "#777777", (0, (5, 1, 1, 1)), ">"),
}
_SPARE = ("#CC79A7", "#56B4E9", "#F0E442", "#332288", "#882255", "#44AA99")


def look(agent: str, another: int = 0) -> Look:
    """The look of an agent; rows without one get a colour and a marker by their name, the next but
    so many where those are taken (``another``)."""
    if agent in _AGENTS:
        return _AGENTS[agent].toned()
    label = agent.replace("_tau", r"$_\tau$").replace("_rescue", r"$_{\mathrm{rescue}}$")
    order = sum(agent.encode()) + another
    marker = "X*<>hp"[order % 6]
    return Look(label, _SPARE[order % len(_SPARE)], (0, (4, 1, 1, 1, 1, 1)), marker).toned()


def looks_of_agents(agents: Sequence[str]) -> dict[str, Look]:
    """Looks of agents that are drawn together: no two have both dashes and marker in common, as
    long as there are looks enough."""
    found = {name: look(name) for name in agents if name in _AGENTS}
    taken = {(str(one.line), one.marker) for one in found.values()}
    for name in (name for name in agents if name not in found):
        ways = [look(name, another) for another in range(6)]
        free = (one for one in ways if (str(one.line), one.marker) not in taken)
        found[name] = next(free, ways[0])
        taken.add((str(found[name].line), found[name].marker))
    return {name: found[name] for name in agents}


_METHODS = {
    "moment": Look("moment, eq. (11)", "#0072B2", "-", "D"),
    "moment-clipped": Look("eq. (11), clipped", "#56B4E9", (0, (1, 1)), "^"),
    "moment-widened": Look("eq. (12), $c_w=10$", "#777777", (0, (5, 1, 1, 1)), "v"),
    "widened, theory": Look("eq. (12), theory", "#E69F00", (0, (6, 2)), "s"),
    "split": Look("split halves", "#CC79A7", (0, (4, 2)), "<"),
    "ml": Look("ML", "#009E73", (0, (2, 1)), "X"),
    "reml": Look("REML", "#D55E00", (0, (3, 1)), "o"),
    "posterior": Look("posterior", "#000000", "-", "*"),
    "posterior draws": Look("posterior, a draw", "#44AA99", (0, (1, 1)), "P"),
    "E_m, E_s at 95%": Look("paper's radius", "#AA3377", (0, (1, 2)), "x"),
    "posterior radius": Look("posterior's radius", "#000000", (0, (1, 2)), "+"),
}
_SAME = {"widened, c_w = 10": "moment-widened", "REML": "reml"}


def method_look(method: str) -> Look:
    """The look of a method of estimation, by any of the names that studies give it."""
    return _METHODS[_SAME.get(method, method)].toned()


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """A look for each of the estimators of a lab, labelled as its user calls it: the colour is that
    of the method that a name begins with, and no two have both dashes and marker in common."""
    found: dict[str, Look] = {}
    taken: set[tuple[str, str]] = set()
    for name in names:
        begins = [m for m in _METHODS if name == m or name.startswith((f"{m},", f"{m}(", f"{m} "))]
        own = _METHODS[max(begins, key=len)] if begins else _strange(len(found))
        ways = [(own.line, own.marker), *((line, mark) for mark in _MARKS for line in _DASHES)]
        free = (way for way in ways if (str(way[0]), way[1]) not in taken)
        line, marker = next(free, ways[0])
        taken.add((str(line), marker))
        found[name] = Look(shortened(name, 30), own.color, line, marker).toned()
    return found


_DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_MARKS = "sPhp>dH8"


def _strange(order: int) -> Look:
    """The look of what is no method of ours."""
    return Look("", _SPARE[order % len(_SPARE)], _DASHES[order % 4], _MARKS[order % 8])


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches; a notebook shows it, also where pyplot is not used."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    made._repr_png_ = partial(_png, made)  # type: ignore[attr-defined]
    return made


def _png(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def clean(axes: Axes, title: str = "", grid: str = "both") -> None:
    """No frame, a faint grid behind the data (``grid``: "x", "y", "both" or ""), and a title."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if grid in ("x", "y", "both"):
        axes.grid(axis=grid, color=tone(GRID), linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, fontsize=TITLE)


def note_below(figure: Figure, text: str) -> None:
    """A note under all panels, in lines no wider than the figure."""
    room = 0.96 * 72 * figure.get_figwidth() - 4 * LABEL  # letters are wider in few pixels
    lines = [part for line in text.split("\n") for part in wrapped(line, room)]
    figure.supxlabel("\n".join(lines), fontsize=LABEL, color=tone(NOTE))


def wrapped(line: str, room: float) -> list[str]:
    """Lines of at most ``room`` points in the size of notes: broken where ``APART`` stands, and
    within a part only where it has no room by itself, then into lines of about one width."""
    parts = line.split(APART)
    if len(parts) > 1:
        whole = [one for part in parts for one in wrapped(part, room)]
        return _packed(whole, APART, room)
    words = line.split(" ")
    lines = _packed(words, " ", room)
    if len(lines) > 1:
        for share in np.linspace(0.5, 1.0, 26):
            even = _packed(words, " ", share * room)
            if len(even) == len(lines) and max(map(_points, even)) <= room:
                return even
    return lines


def _packed(parts: Sequence[str], between: str, room: float) -> list[str]:
    """Parts in as few lines as have room for them, in their order."""
    lines = [parts[0]]
    for part in parts[1:]:
        longer = lines[-1] + between + part
        if _points(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


@cache
def _points(text: str) -> float:
    """The width of a line in the size of notes, by the corners of its letters' outlines: exact
    extents of their curves take a thousand times as long."""
    from matplotlib.textpath import TextPath

    return float(np.ptp(TextPath((0, 0), text, size=LABEL).vertices[:, 0])) if text.strip() else 0.0


def shortened(text: str, most: int) -> str:
    """A label that fits and is no formula: cut in the middle, since long names often differ at
    their ends."""
    text = visible(text)
    if len(text) > most:
        text = f"{text[: (most - 1) // 2]}…{text[len(text) - most // 2 :]}"
    return text.replace("$", r"\$")


def few_ticks(axes: Axes) -> None:
    """At most five ticks, with a common power of ten for small and large numbers: labels such as
    0.00012 would run into each other."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-2, 4), useMathText=True)


class End(NamedTuple):
    """Where a line ends, in the units of the data, and its look."""

    x: float
    y: float
    look: Look


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Write each line's name beside the axes, with its marker and a thin leader to its end.

    Names keep the order of the ends and move as little as it takes for none to touch another. Call
    it when scales and limits are final: it fixes the limits of the axes.
    """
    if not ends:
        return
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    figure = axes.get_figure(root=True)
    assert figure is not None
    pixels = axes.transData.transform([(end.x, end.y) for end in ends])
    fractions = axes.transAxes.inverted().transform(pixels)
    inches = axes.get_window_extent().height / figure.dpi
    places = apart(fractions[:, 1], 1.35 * LABEL / 72 / inches)

    def beside(points: float) -> Any:
        """Fractions of the axes, moved to the right by so many points."""
        return axes.transAxes + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)

    for end, (x, y), place in zip(ends, fractions, places, strict=True):
        leader = {"arrowstyle": "-", "color": end.look.color, "linewidth": THIN}
        axes.annotate(
            "",
            (x, y),
            xycoords=axes.transAxes,
            xytext=(1.0, place),
            textcoords=beside(20),
            arrowprops=leader | {"shrinkA": 0, "shrinkB": 0},
            annotation_clip=False,
        ).set_gid("leader")
        key = Line2D(
            [1.0],
            [place],
            marker=end.look.marker,
            color=end.look.color,
            markersize=MARKER + 1,
            transform=beside(24),
            clip_on=False,
        )
        axes.add_artist(key)
        axes.annotate(
            end.look.label,
            (1.0, place),
            xycoords=beside(31),
            va="center",
            color=tone(INK),
            fontsize=LABEL,
            annotation_clip=False,
        ).set_gid("label")


def apart(places: Array, gap: float) -> Array:
    """The nearest places (least squares) in the same order that are at least ``gap`` apart and
    within 0 and 1 where there is room; equal places keep the order in which they are given."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(-places, kind="stable")  # from the top, as names are read
    steps = gap * np.arange(len(places))
    free = isotonic_regression(places[order] + steps, increasing=False).x
    if steps[-1] <= 1:
        free = free.clip(steps[-1], 1.0)
    out = np.empty(len(places))
    out[order] = free - steps
    return out
