"""Posterior draws for the page, by a process of their own: the page never waits for them."""

from __future__ import annotations

import warnings
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Lock, Thread
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.runner.signals import without_ctrl_c
from bayesmeta.teach.setup import Setup
from bayesmeta.teach.world import Predicted, cloud


class Draws(NamedTuple):
    """Draws of mu (draws, 2) and Sigma (draws, 2, 2), and whether they can be trusted."""

    mus: Array
    covs: Array
    trusted: bool

    def predicted(self) -> Predicted:
        """Mean and covariance of the next theta: Sigma's mean plus the covariance of mu."""
        return Predicted(self.mus.mean(axis=0), self.covs.mean(axis=0) + np.cov(self.mus.T))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval of the correlation."""
        both = np.sqrt(self.covs[:, 0, 0] * self.covs[:, 1, 1])
        ends = np.quantile(self.covs[:, 0, 1] / both, [(1 - level) / 2, (1 + level) / 2])
        return float(ends[0]), float(ends[1])


def draw_posterior(setup: Setup) -> Draws:
    """Draws given the tasks of the cloud, under the default prior over priors."""
    from bayesmeta.posterior.sampling import FitWarning, sample_posterior

    found = cloud(setup)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # ``trusted`` is shown
        tree = sample_posterior(
            found.stats, setup.noise_sd, chains=2, draws=500, cores=1, random_seed=setup.seed
        )
    drawn = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    covs = np.moveaxis(drawn["Sigma"].values, -1, 0)
    return Draws(drawn["mu"].values.T, covs, bool(tree.attrs["trusted"]))


KEPT = 64
"""Posteriors that are kept, those that were asked for last."""


class Background:
    """Draws posteriors one after another in one process, started when the first is asked for.

    ``ask`` answers at once: "done", "running", or what went wrong; ask again until it is done.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[Setup, Draws | str] = {}
        self._busy = False
        self._pipe: Connection | None = None
        self._starting = Lock()
        self._process: SpawnProcess | None = None
        self._closed = False

    def get(self, setup: Setup) -> Draws | None:
        """The draws for these data, if they have been drawn."""
        with self._lock:
            found = self._kept(setup.of_data())
        return found if isinstance(found, Draws) else None

    def ask(self, setup: Setup) -> str:
        """Have them drawn, unless the process is at work for others."""
        with self._lock:
            found = self._kept(setup.of_data())
            if isinstance(found, Draws):
                return "done"
            if found is not None:
                del self._found[setup.of_data()]  # asked again, it is tried again
                return found
            if not self._busy:
                self._busy = True
                Thread(target=self._fetch, args=(setup.of_data(),), daemon=True).start()
            return "running"

    def close(self) -> None:
        """End the process, at work or not, once it has all that it needs to start: without that
        it would print a traceback."""
        with self._starting:
            self._closed = True
            if self._process is not None:
                self._process.terminate()
                self._process.join()

    def _start(self) -> Connection:
        """Start the process; the pipe to it."""
        spawn = get_context("spawn")
        ours, theirs = spawn.Pipe()
        with theirs, self._starting:  # closed here, the end of the process is the end of the pipe
            if self._closed:
                raise RuntimeError("the page is closed")
            process = spawn.Process(target=_work, args=(theirs,), daemon=True)
            with without_ctrl_c():  # it is for the page, which ends the process, too
                process.start()
            self._process = process
        return ours

    def _fetch(self, setup: Setup) -> None:
        try:
            if self._pipe is None:
                self._pipe = self._start()
            self._pipe.send(setup)
            found: Draws | str = self._pipe.recv()
        except Exception as error:  # whatever it is, the page is not to wait for ever
            if self._pipe is not None:
                self._pipe.close()
            self._pipe = None
            found = f"the process that draws has ended ({type(error).__name__}); try again"
        with self._lock:
            self._found[setup] = found
            while len(self._found) > KEPT:
                del self._found[next(iter(self._found))]
            self._busy = False

    def _kept(self, setup: Setup) -> Draws | str | None:
        """What was found, which is now the last to be forgotten."""
        found = self._found.pop(setup, None)
        if found is not None:
            self._found[setup] = found
        return found


def _work(pipe: Connection) -> None:
    """In the process: draw what is asked for until the page is gone."""
    while True:
        try:
            setup = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(draw_posterior(setup))
        except Exception as error:  # whatever it is, the page is to say it
            pipe.send(f"{type(error).__name__}: {error}")
