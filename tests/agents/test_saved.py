"""Players saved and loaded: the same bits, and nothing of a file that runs."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.decorrelated import Decorrelated
from bayesmeta.agents.encoding import encode
from bayesmeta.agents.ensemble import Ensemble
from bayesmeta.agents.learners import Posterior
from bayesmeta.agents.roster import BAYESIAN, POSTERIOR, ROSTER
from bayesmeta.agents.told import Told
from bayesmeta.checks import InputError
from bayesmeta.environment import Task

HYPER = bm.GaussianPrior(np.ones(2), np.eye(2))
FAMILY = replace(bm.paper_family(dim=2, horizon=6, actions=3), hyper=HYPER)
MORE = {
    "told": Agent(
        "told", bm.agents.greedy(), bm.agents.first_steps(2), Told((FAMILY.prior,)), "KTS"
    ),
    "OFUL": replace(ROSTER["KTS"], name="OFUL", policy=bm.agents.oful(3.0)),
    "frequentist warm-up": replace(
        ROSTER["All-MTS"], name="F", warmup=2, warmup_policy=bm.agents.frequentist_ids(3.0)
    ),
}
ARMS = ("MoM-TS_arms", "MoM-TS_arms_mean")
ROWS = {name: row for name, row in ROSTER.items() if name not in (*POSTERIOR, *ARMS)} | MORE


def short(row: Agent) -> Agent:
    """With a warm-up short enough to leave it, and a quick posterior."""
    if isinstance(row.learner, Posterior):
        row = replace(row, learner=replace(row.learner, draws=10, tune=50))
    if isinstance(row.learner, Decorrelated):
        row = replace(row, learner=replace(row.learner, first=1))
    return replace(row, warmup=min(2, 8 if row.warmup is None else row.warmup))


def play(
    player: bm.Player, tasks: int, between: Callable[[bm.Player], bm.Player] = lambda p: p
) -> list[Any]:
    """What a player does, step by step, ``between`` any two calls."""
    rng, found = np.random.default_rng(0), []
    payoffs = np.array([1.0, 2.0, 3.0]) if player.agent.name.endswith("_price") else None
    for _ in range(tasks):
        found.append(player.start_task().prior.cov)
        player = between(player)
        for _ in range(FAMILY.horizon):
            k = player.ask(rng.normal(size=(3, 2)), payoffs)
            player = between(player)
            player.tell(float(rng.normal()))
            player = between(player)
            found.append(k)
        player.end_task()
        player = between(player)
    return [*found, player.estimate.prior.mean, player.tasks_seen]


def through(path: Path) -> Callable[[bm.Player], bm.Player]:
    """Saved and loaded, the first time and at one call in four."""
    moments = np.random.default_rng(0)

    def again(player: bm.Player) -> bm.Player:
        if path.exists() and moments.random() > 0.25:
            return player
        player.save(path)
        return bm.Player.load(path)

    return again


@pytest.mark.parametrize("name", ROWS)
def test_a_loaded_player_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    """Saved and loaded between any two calls, from before the first task on."""
    again, row = through(tmp_path / "player.json"), short(ROWS[name])
    one, two = (bm.Player(row, FAMILY.setting(5), random_seed=3) for _ in range(2))
    for whole, live in zip(play(one, 5), play(again(two), 5, again), strict=True):
        np.testing.assert_array_equal(live, whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", BAYESIAN)
def test_a_loaded_posterior_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    """Its draws, their centre and the point where the next chain starts."""
    again, row = through(tmp_path / "player.json"), short(ROSTER[name])
    one, two = (bm.Player(row, FAMILY.setting(3), random_seed=3) for _ in range(2))
    for whole, live in zip(play(one, 3), play(again(two), 3, again), strict=True):
        np.testing.assert_array_equal(live, whole)


@pytest.mark.parametrize("name", ["All-MTS", "RR-OFUL", "W-MTS", "W-MTS_past"])
def test_a_simulated_player_goes_on_too(name: str, tmp_path: Path) -> None:
    """Between tasks that are played in one go."""
    rng, row = np.random.default_rng(0), short(ROSTER[name])
    one = bm.Player(row, FAMILY.setting(9))
    other = bm.Player(row, FAMILY.setting(9))
    for _ in range(9):
        task = FAMILY.draw(rng)
        other = through(tmp_path / "p.json")(other)
        regrets = []
        for player in (one, other):
            player.start_task()
            regrets.append(player.play(task).regret)
        assert regrets[0] == regrets[1]


def test_players_go_on_after_blocks(tmp_path: Path) -> None:
    """Saved when the kernel has kept their memory for some tasks, and played in blocks again."""
    names = ("All-MTS", "MetaTS", "Meta-DP", "AVG-OFUL", "RR-OFUL", "W-MTS", "W-MTS_past")
    committed = bm.agents.Commit(bm.agents.Moments(widening=0.0), 2)
    rows = [short(ROSTER[name]) for name in names]
    rows += [replace(short(ROSTER["MoM-TS"]), learner=committed)]
    tasks = FAMILY.draw_block(np.random.default_rng(0), 60)
    one, two = ([bm.Player(row, FAMILY.setting(60)) for row in rows] for _ in range(2))
    whole, calls = in_blocks(one, tasks, 0, 60)
    first, _ = in_blocks(two, tasks, 0, 31)
    for player in two:
        player.save(tmp_path / player.agent.name)
    two = [bm.Player.load(tmp_path / row.name) for row in rows]
    rest, _ = in_blocks(two, tasks, 31, 60)
    np.testing.assert_array_equal(np.concatenate([first, rest]), whole)
    assert calls < 10


def in_blocks(
    players: list[bm.Player], tasks: Task, first: int, end: int
) -> tuple[np.ndarray, int]:
    """Regret (task, agent) from one task to another, and in how many calls they were played."""
    ensemble, found = Ensemble(players, block=64), []
    theta, noise, actions, radius, best, earned = tasks
    here = Task(theta[:end], noise[:end], actions[:end], radius, best[:end], earned[:end])
    while first < end:
        found.append(ensemble.play_some(here, first).regret.copy())
        first += len(found[-1])
    return np.concatenate(found), len(found)


def a_file(tmp_path: Path, name: str = "All-MTS") -> Path:
    """A player in its third task."""
    player = bm.Player(short(ROSTER[name]), FAMILY.setting(5))
    play(player, 2)
    player.start_task()
    player.ask(np.eye(2))
    player.save(tmp_path / "player.json")
    return tmp_path / "player.json"


def changes(content: dict[str, Any]) -> dict[str, tuple[Callable[[], object], str]]:
    """Ways to change a file, and what is said of each."""
    belief, memory = content["arrays"][0], content["_memory"]["state"]
    return {
        "newer": (lambda: content.update(format=2), "its format is 2"),
        "unknown format": (lambda: content.pop("format"), "its format is None"),
        "no player": (lambda: content.update(title="cat"), "something else"),
        "a part less": (lambda: content.pop("_step"), "'_step' is missing"),
        "a part more": (lambda: content.update(other=1), "'other' is unknown"),
        "another class": (
            lambda: content["agent"].update({"is": "os.system"}),
            "'os.system' is not a class",
        ),
        "a class of Python's": (lambda: memory.update({"is": "eval"}), "'eval' is not a class"),
        "a wrong shape": (lambda: belief.update(shape=[3]), "wrong shape"),
        "a huge shape": (lambda: belief.update(shape=[10**12]), "wrong shape"),
        "no base64": (lambda: belief.update(data="$$$"), "base64"),
        "NaN": (lambda: belief.update(data=nan()), "NaN"),
        "NaN in JSON": (lambda: content.update(_energy=float("nan")), "NaN is no number"),
        "steps beyond": (lambda: content.update(_step=99), "beyond the horizon"),
        "a negative count": (lambda: content.update(tasks_seen=-1), "at least 0"),
        "no prior": (lambda: content.update(_estimate=None), "no prior"),
        "another memory": (lambda: content.update(_memory=None), "memory"),
        "a memory of text": (lambda: memory.update(mean="abc"), "array of numbers"),
        "a policy of others": (
            lambda: content["_policy"].update(posterior_draws=7),
            "not one of its agent",
        ),
        "another generator": (
            lambda: content["_rng"]["of"].update(bit_generator="MT19937"),
            "state must be",
        ),
        "a number as text": (lambda: content.update(_energy="5"), "_energy is no number"),
        "another constant": (lambda: content["_memory"].update(constant=1e308), "memory is not"),
        "huge draws": (
            lambda: [
                part.update(posterior_draws=10**12)
                for part in (content["agent"]["policy"], content["_policy"])
            ],
            "more than fits in memory",
        ),
        "a full root": (
            lambda: content["arrays"].__setitem__(1, encode(np.ones((2, 2)))),
            "not triangular",
        ),
        "a full root of the prior": (
            lambda: content["_estimate"]["prior"].update(swapped_root()),
            "not that of its covariance",
        ),
        "a negative gram": (
            lambda: content["arrays"].__setitem__(2, encode(-np.eye(2))),
            "no sum of squares",
        ),
        "a gram of no actions": (
            lambda: content["arrays"].__setitem__(2, encode(np.array([[1.0, 5.0], [0.0, 1.0]]))),
            "no sum of squares",
        ),
        "a negative scatter": (lambda: memory.update(scatter=encode(-np.eye(2))), "negative"),
        "half a task": (lambda: memory.update(tasks=encode(np.array([2.5, 0.0]))), "not whole"),
        "a huge dimension": (lambda: content["setting"].update(dim=10**7), "loaded"),
    }


@pytest.mark.parametrize("name", ["settled", "lowest"])
def test_changed_ridges_are_refused(name: str, tmp_path: Path) -> None:
    """Negative numbers, and other sizes than the learner's."""
    path = a_file(tmp_path, "W-MTS")
    content = json.loads(path.read_text())
    for values, message in (([-1.0] * 5, f"{name} is negative"), ([1.0] * 7, "memory is not one")):
        content["_memory"]["ridges"][name] = encode(np.array(values))
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match=message):
            bm.Player.load(path)


def swapped_root() -> dict[str, Any]:
    """A covariance with a root of it that is not triangular."""
    root = np.array([[0.0, 1.0], [1.0, 0.0]])
    return {"cov": encode(np.eye(2)), "cholesky": encode(root)}


def nan() -> str:
    """Two numbers that are none."""
    import base64

    return base64.b64encode(np.full(2, np.nan).tobytes()).decode()


@pytest.mark.parametrize(
    "name", list(changes(json.loads('{"arrays": [{}], "_memory": {"state": 0}}')))
)
def test_a_changed_file_is_refused(name: str, tmp_path: Path) -> None:
    """In one line that names the file and what is wrong."""
    path = a_file(tmp_path)
    content = json.loads(path.read_text())
    change, message = changes(content)[name]
    change()
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message) as caught:
        bm.Player.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_player_is_saved_to_a_path(tmp_path: Path) -> None:
    """Anything else is refused by name."""
    player = bm.Player(ROSTER["KTS"], FAMILY.setting(5))
    with pytest.raises(InputError, match=r"^path must be that of a file, got None"):
        player.save(None)  # type: ignore[arg-type]


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    """Anywhere."""
    path = a_file(tmp_path)
    whole = path.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="not a player that can be loaded"):
            bm.Player.load(path)
    with pytest.raises(InputError, match="cannot read"):
        bm.Player.load(tmp_path / "nothing.json")


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("ran"),))


@pytest.mark.parametrize("form", ["pickle", "npz"])
def test_a_pickle_is_not_run(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused unread, where unpickling would have run it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "player.json"
    if form == "pickle":
        path.write_bytes(pickle.dumps(Evil()))
    else:
        np.savez(tmp_path / "p.npz", arrays=np.array([Evil()], dtype=object))
        (tmp_path / "p.npz").rename(path)
    with pytest.raises(InputError, match="not a player that can be loaded"):
        bm.Player.load(path)
    assert not Path("ran").exists()
    pickle.loads(pickle.dumps(Evil()))
    assert Path("ran").exists()  # it would have been noticed


def test_a_learner_of_ones_own_is_refused_when_saved(tmp_path: Path) -> None:
    """By name, and nothing is written; a class derived from the package's too."""

    class Own:
        all_steps = True

        def start(self, setting: bm.Setting) -> int:
            return 0

        def observe(self, memory: int, task: object) -> int:
            return memory + 1

        def estimate(self, memory: int, setting: bm.Setting, rng: object) -> bm.PriorEstimate:
            return bm.PriorEstimate(FAMILY.prior, bm.Status.OK)

    @dataclass(frozen=True)
    class Derived(bm.agents.Moments):
        pass

    for learner in (Own(), Derived(True, 1.0)):
        row = replace(ROSTER["All-MTS"], learner=learner, name="mine")
        player = bm.Player(row, FAMILY.setting(5))
        with pytest.raises(InputError, match=r"(Own|Derived) in it cannot be saved.*pickle it"):
            player.save(tmp_path / "player.json")
    assert list(tmp_path.iterdir()) == []


def test_a_player_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A failure leaves the file before it in place."""
    path = a_file(tmp_path)
    before = path.read_bytes()
    player = bm.Player.load(path)
    player._energy = float("inf")
    with pytest.raises(ValueError):
        player.save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]
