"""The marks for speed: what was measured, against which anchor, and what was wanted."""

from __future__ import annotations

from typing import Any, NamedTuple

Results = dict[str, Any]


class Mark(NamedTuple):
    """A ratio to a named anchor, or a number alone, and what was wanted of it."""

    name: str
    ours: str
    anchor: str
    value: float
    unit: str
    wanted: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.value >= self.wanted if self.at_least else self.value <= self.wanted

    @property
    def bound(self) -> str:
        """What was wanted, in words."""
        return f"{'at least' if self.at_least else 'at most'} {self.wanted:g}{self.unit}"

    @property
    def measured(self) -> str:
        """The number in bold if it is as wanted, with a cross if it is not."""
        digits = 0 if self.value >= 20 else 1 if self.value >= 3 else 2
        text = f"{self.value:,.{digits}f}{self.unit}"
        return f"**{text}**" if self.met else f"{text} ✗"


def ratios(results: Results) -> list[Mark]:
    """Marks that are ratios to something else measured in the same run."""
    step, drawing = results["simulation"]["numpy"], results["simulation"]["drawing"]
    one, fits = results["likelihood"]["evaluation"], results["likelihood"]["fits"]
    drawn, full = results["posterior"]["contenders"], results["studies"]["full_size"]
    ours, usual = drawn["sample_posterior"], drawn["non-centred model, nutpie"]
    pymc = drawn["non-centred model, PyMC"]
    reml = f"REML, {fits['tasks']:,} tasks, d = {fits['dim']}"
    ess = "effective draws a second, 500 tasks, d = 5"
    each = f"{ours['ess_per_second']:,.0f}"
    far = results["posterior"]["far_origin"]
    years, days = far["years"]["seconds"], far["days"]["seconds"]
    return [
        Mark(
            "a step of six agents",
            f"{drawing['whole_us']:.2f} µs",
            f"drawing its random numbers: {drawing['drawing_us']:.2f} µs",
            drawing["ratio"],
            "",
            2,
            False,
        ),
        Mark(
            "a step of one of six agents",
            f"{step['six_us']:.2f} µs",
            f"a plain NumPy loop: {step['numpy_one_us']:.0f} µs",
            step["ratio"],
            "",
            100,
            True,
        ),
        Mark(
            "likelihood of a task with gradients, d = 5",
            f"{one['us']:.2f} µs",
            f"batched NumPy: {one['numpy_us']:.1f} µs",
            one["ratio"],
            "",
            6,
            True,
        ),
        Mark(
            reml,
            f"{fits['seconds']:.3f} s",
            f"lme4: {fits['lme4']['seconds']:.1f} s",
            fits["lme4"]["ratio"],
            "",
            100,
            True,
        ),
        Mark(
            reml,
            f"{fits['seconds']:.3f} s",
            f"statsmodels: {fits['statsmodels']['seconds']:.0f} s",
            fits["statsmodels"]["ratio"],
            "",
            100,
            True,
        ),
        Mark(
            ess,
            each,
            f"usual model, nutpie: {usual['ess_per_second']:.0f}",
            ours["ess_per_second"] / usual["ess_per_second"],
            "",
            60,
            True,
        ),
        Mark(
            ess,
            each,
            f"usual model, PyMC: {pymc['ess_per_second']:.0f}",
            ours["ess_per_second"] / pymc["ess_per_second"],
            "",
            60,
            True,
        ),
        Mark(
            "posterior, a feature with a far origin",
            f"{years:.1f} s",
            f"the same from 0: {days:.1f} s",
            years / days,
            "",
            1.5,
            False,
        ),
        Mark(
            "Figure 1 at full size, two processes",
            f"{full['seconds']:.0f} s",
            f"one process: {full['seconds_one_process']:.0f} s",
            full["speedup"],
            "",
            1.8,
            True,
        ),
    ]


def numbers(results: Results) -> list[Mark]:
    """Marks that are numbers alone: seconds, memory, exponents."""
    likelihood, drawn = results["likelihood"], results["posterior"]
    many, waits, grown = likelihood["many_features"], drawn["waits"], drawn["growth"]
    full, trivial = results["studies"]["full_size"], results["studies"]["trivial"]
    call = dict(zip(grown["features"]["sizes"], grown["features"]["seconds"], strict=True))
    large = dict(zip(grown["tasks"]["sizes"], grown["tasks"]["seconds"], strict=True))
    memory = full["driver_MiB"] + 2 * full["largest_worker_MiB"]
    d = f"REML, {many['tasks']:,} tasks, d = {many['dim']}"
    wanted = [
        ("`bayesmeta reproduce`, compiled", full["reproduce_seconds"], " s", 40),
        ("`import bayesmeta` against numpy", results["simulation"]["import_ratio"], " times", 2),
        (d, many["regular"]["seconds"], " s", 1),
        (f"{d}, singular", many["singular"]["seconds"], " s", 1),
        ("posterior, 10,000 tasks, d = 5", large[10_000], " s", 6),
        ("posterior, 1,000 tasks, d = 10", call[10], " s", 3),
        ("posterior, 1,000 tasks, d = 20", call[20], " s", 15),
        ("exponent of the posterior in d", grown["features"]["exponent"], "", 4),
        ("first draw, fresh process, warm", waits["warm"], " s", 3),
        ("first draw, nothing compiled", waits["cold"], " s", 20),
        ("first draw in another dimension", waits["second"], " s", 1),
        ("an empty cell of a study, one process", trivial["one"]["ms_a_cell"], " ms", 15),
        ("an empty cell, two processes", trivial["two"]["ms_a_cell"], " ms", 15),
        ("an empty cell, a Dask cluster", trivial["dask"]["ms_a_cell"], " ms", 15),
        ("memory of Figure 1, all processes", memory, " MiB", 1024),
        *_of_lab(results.get("lab")),
        *_of_rivals(results.get("rivals")),
    ]
    return [Mark(name, "", "", value, unit, most, False) for name, value, unit, most in wanted]


def _of_lab(lab: Results | None) -> list[tuple[str, float, str, float]]:
    """Of the calibration lab, where it was measured."""
    if lab is None:
        return []
    closed, drawn = (f"{lab[name]['replications']:,}" for name in ("closed", "posterior"))
    return [
        (f"lab, {closed} replications of moment, ml, reml", lab["closed"]["seconds"], " s", 15),
        (f"lab, {drawn} replications of the posterior", lab["posterior"]["seconds"], " s", 60),
        ("exponent of the lab in replications", lab["growth"]["exponent"], "", 1.1),
    ]


def _of_rivals(rivals: Results | None) -> list[tuple[str, float, str, float]]:
    """Of the rivals, where measured: the slowest of each part beside a row of the paper, and
    Table 1."""
    if rivals is None:
        return []
    slowest = []
    for part, kind in (("steps", "rival"), ("seldom", "with fits or a warm-up")):
        name, ratio = max(rivals[part]["ratios"].items(), key=lambda pair: pair[1])
        text = f"a step of the slowest {kind}, {name}, over All-MTS"
        slowest.append((text, ratio, " times", 1.5))
    return [
        *slowest,
        ("Table 1, live, two cores", rivals["live"]["minutes"], " minutes", 15),
    ]
