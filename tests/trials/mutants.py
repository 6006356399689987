"""Change the package in small wrong ways, one at a time, and see whether the tests notice.

    python -m tests.trials.mutants                  320 mutants, recorded in analyses/hardening
    python -m tests.trials.mutants --target claims  of one part only, not recorded
    python -m tests.trials.mutants --only ID        one of them: its change, and which test fails

A run that was interrupted goes on where it ended. What survives and is harmless is explained in
survivors.toml; write a test against the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy: forking wants a single thread

from tests.trials import plan, record  # noqa: E402
from tests.trials.forked import (  # noqa: E402
    FIXED_STAMP,
    ROOM,
    TOO_LONG,
    copy_tree,
    end_descendants,
    link_tree,
    replace_file,
    run_tests,
    warm_up,
)
from tests.trials.mutations import Mutant  # noqa: E402

ROOT = Path(__file__).parents[2]
SOURCES = "bayesmeta/kernels/sources.py"
NOTICED = ("AssertionError", "Failed")
"""What counts as noticed where kernels run as plain Python: other errors, of indices or divisions,
compiled code need not raise."""


def digest(paths: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(p.read_bytes() for p in sorted(paths))).hexdigest()[:16]


class Trial:
    """A folder with the unchanged copy, what its tests reach, and the results so far."""

    def __init__(self, root: Path, folder: Path, jobs: int) -> None:
        self.root, self.folder, self.jobs = root, folder, jobs
        self.source = digest((root / "bayesmeta").rglob("*.py"))
        tests = (p for p in (root / "tests").rglob("*.py") if p.parent.name != "trials")
        self.tests = digest(tests)
        self.base, self.trees = folder / "base", folder / "trees"
        self.results = folder / "results"
        self.code = plan.Code(root)
        known = root / record.SURVIVORS
        self.known = record.explanations(known) if known.exists() else []

    # ---- the unchanged copy

    def prepare(self, files: list[str], say: Callable[[str], None]) -> None:
        """Copy the checkout, compile its kernels, and see what every test reaches."""
        shutil.rmtree(self.trees, ignore_errors=True)
        for made in (self.trees, self.results, self.folder / "baseline"):
            made.mkdir(parents=True, exist_ok=True)
        stamp = self.folder / "digests.json"
        now = [self.source, self.tests]
        if not stamp.exists() or json.loads(stamp.read_text()) != now:
            old = self.folder / "old"
            shutil.rmtree(old, ignore_errors=True)
            if self.base.exists():
                self.base.rename(old)
            copy_tree(self.root, self.base)
            self._keep_compiled(old)
            sources = self.base / SOURCES
            if sources.exists():
                replace_file(sources, sources.read_text() + FIXED_STAMP)
            stamp.write_text(json.dumps(now))
        wanted = [(file, "jit") for file in files]
        wanted += [(file, "plain") for file in files if file in plan.PLAIN]
        todo = [(file, mode) for file, mode in wanted if self._baseline(file, mode) is None]
        calls = [lambda f=file, m=mode: self._measure(f, m) for file, mode in todo]
        for done, _ in enumerate(in_processes(calls, self.jobs), start=1):
            say(f"tests of the unchanged package: {done} of {len(todo)} files")
        missing = [file for file, mode in wanted if self._baseline(file, mode) is None]
        if missing:
            raise SystemExit(f"cannot run {missing[0]} on the unchanged package")
        self.measured = {(file, mode): self._baseline(file, mode) for file, mode in wanted}

    def _keep_compiled(self, old: Path) -> None:
        """Kernels of a former copy, where no source changed since."""
        same = old.exists() and all(
            (old / p.relative_to(self.base)).exists()
            and (old / p.relative_to(self.base)).read_text().replace(FIXED_STAMP, "")
            == p.read_text()
            for p in (self.base / "bayesmeta").rglob("*.py")
        )
        for path in old.glob("bayesmeta/**/__pycache__/*.nb?") if same else ():
            to = self.base / path.relative_to(old)
            to.parent.mkdir(exist_ok=True)
            os.link(path, to)

    def _own_stamp(self, tree: Path) -> None:
        """The stamp that the package itself makes, for tests that are about it."""
        if (self.root / SOURCES).exists():
            replace_file(tree / SOURCES, (self.root / SOURCES).read_text())

    def _place(self, file: str, mode: str) -> Path:
        content = digest([self.root / file, self.root / "tests" / "conftest.py"])
        name = f"{file.replace('/', '-')}.{mode}.{content}.{self.source}.json"
        return self.folder / "baseline" / name

    def _baseline(self, file: str, mode: str) -> dict[str, Any] | None:
        place = self._place(file, mode)
        if not place.exists():
            return None
        found: dict[str, Any] = json.loads(place.read_text())
        return found

    def _measure(self, file: str, mode: str) -> None:
        limit = 1200.0 if mode == "jit" else 240.0
        settings: dict[str, Any] = {"jit": mode == "jit", "watch": True, "stop": False}
        tree = self.trees / f"baseline-{os.getpid()}"
        link_tree(self.base, tree)
        about_cache = file in plan.test_files(self.root, plan.OF_THE_CACHE[0])
        if about_cache:
            self._own_stamp(tree)
        ran = run_tests(tree, [file], timeout=limit, **settings)
        for path in () if about_cache else tree.rglob("bayesmeta/**/*.nb?"):
            to = self.base / path.relative_to(tree)
            to.parent.mkdir(exist_ok=True)
            path.replace(to)
        if mode == "jit" and not ran.tests:
            print((tree / "output.txt").read_text()[-2000:], file=sys.stderr)
            raise RuntimeError(f"no test of {file} passes on the unchanged package: {ran.error}")
        shutil.rmtree(tree, ignore_errors=True)
        longest = TOO_LONG if mode == "jit" else 5.0
        tests = {name: one for name, one in ran.tests.items() if one["seconds"] <= longest}
        self._place(file, mode).write_text(
            json.dumps({"tests": tests, "outside": ran.outside, "failed": ran.test})
        )

    # ---- one mutant

    def row(self, mutant: Mutant) -> dict[str, Any]:
        fields = {name: getattr(mutant, name) for name in ("id", "file", "text", "kind", "change")}
        return {**fields, "target": plan.target_of(mutant.file)}

    def result_of(self, mutant: Mutant) -> dict[str, Any] | None:
        """Of this run or a former one of the same file; what survived is asked again where tests
        are new."""
        place = self.results / f"{mutant.draw(0)[:24]}.json"
        if not place.exists():
            return None
        found: dict[str, Any] = json.loads(place.read_text())
        same = found["source"] == digest([self.root / mutant.file]) and found["id"] == mutant.id
        old = found["result"] == "survived" and found["tests"] != self.tests
        return None if old or not same else found

    def try_out(self, mutant: Mutant) -> None:
        """Run the tests against a mutant; leaves a file in ``results``."""
        start = time.monotonic()
        tree = self.trees / mutant.draw(0)[:24]
        link_tree(self.base, tree)
        try:
            replace_file(tree / mutant.file, mutant.applied((self.root / mutant.file).read_text()))
            found = self._stages(mutant, tree)
        finally:
            shutil.rmtree(tree, ignore_errors=True)
        own = digest([self.root / mutant.file])
        done = {"source": own, "tests": self.tests, "seconds": time.monotonic() - start}
        place = self.results / f"{mutant.draw(0)[:24]}.json"
        place.with_suffix(".new").write_text(json.dumps({**self.row(mutant), **found, **done}))
        place.with_suffix(".new").rename(place)

    def _stages(self, mutant: Mutant, tree: Path) -> dict[str, Any]:
        files = plan.test_files(self.root, mutant.file)
        compiled = self.code.is_compiled(mutant)
        functions = {f"{mutant.file}:{mutant.function}"}
        limit = ROOM
        if mutant.file in plan.OF_THE_CACHE:
            if mutant.file != SOURCES:
                self._own_stamp(tree)
            limit += 300
        elif compiled:
            plain = [file for file in files if file in plan.PLAIN]
            tests, outside = self._known(plain, "plain")
            wanted = plan.choose(tests, outside, functions, not mutant.function)
            ran = self._run(tree, wanted, tests, limit, jit=False)
            if ran["result"] == "timeout" or ran.get("error") in NOTICED:
                return {**ran, "stage": "plain"}
            plan.remove_compiled(tree, self.code, mutant)
            functions |= self.code.callers(mutant)
            limit += 120
        tests, outside = self._known(files, "jit")
        everything = not mutant.function or mutant.file.startswith(plan.ELSEWHERE)
        wanted = plan.choose(tests, outside, functions, everything)
        first = plan.enough(wanted, tests)
        ran, stage = self._run(tree, first, tests, limit), "first"
        if ran["result"] == "survived" and record.why(self.known, self.row(mutant)) is None:
            ran, stage = self._run(tree, wanted[len(first) :], tests, limit), "all"
        return {**ran, "stage": stage}

    def _known(self, files: list[str], mode: str) -> tuple[dict[str, dict[str, Any]], set[str]]:
        found = [one for file in files if (one := self.measured[file, mode]) is not None]
        tests = {name: test for one in found for name, test in one["tests"].items()}
        return tests, {name for one in found for name in one["outside"]}

    def _run(
        self, tree: Path, wanted: list[str], tests: dict[str, Any], limit: float, jit: bool = True
    ) -> dict[str, Any]:
        if not wanted:
            return {"result": "survived"}
        limit += 4 * sum(tests[name]["seconds"] for name in wanted)
        files = dict.fromkeys(name.partition("::")[0] for name in wanted)
        ran = run_tests(tree, files, wanted, timeout=limit, jit=jit)
        if ran.ended == "passed":
            return {"result": "survived"}
        result = "timeout" if ran.ended == "timeout" else "killed"
        return {"result": result, "test": ran.test, "error": ran.error}


def in_processes(calls: list[Callable[[], None]], jobs: int) -> Iterable[int]:
    """Run each call in a forked process; gives the place of each when it has ended."""
    waiting, running = list(enumerate(calls)), dict[int, int]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                i, call = waiting.pop(0)
                sys.stdout.flush()
                pid = os.fork()
                if pid == 0:
                    _alone(call)
                running[pid] = i
            for pid in [*running]:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    yield running.pop(pid)
            time.sleep(0.02)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGTERM)
        for pid in running:
            os.waitpid(pid, 0)


def _alone(call: Callable[[], None]) -> None:
    """In a session of its own, which Ctrl-C does not reach; never returns."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        call()
        code = 0
    finally:
        if code:
            end_descendants()
        os._exit(code)


def run_all(trial: Trial, chosen: list[Mutant], jobs: int) -> list[dict[str, Any]]:
    """The rows of all mutants, run now or before."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    todo = [one for one in chosen if trial.result_of(one) is None]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), auto_refresh=False) as progress:
        bar = progress.add_task("mutants", total=len(chosen), completed=len(chosen) - len(todo))
        calls = [lambda one=one: trial.try_out(one) for one in todo]
        for i in in_processes(calls, jobs):
            row = trial.result_of(todo[i])
            if row is None:
                progress.console.print(f"no result of {todo[i].id}", style="red")
            elif row["result"] != "killed":
                text = f"{row['result']} {row['id']}  {row['text']}  [{row['change']}]"
                progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
            progress.update(bar, advance=1, refresh=True)
    return [row for one in chosen if (row := trial.result_of(one)) is not None]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=plan.TARGETS, action="append")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", metavar="ID", help="FILE:LINE:COLUMN:KIND")
    parser.add_argument("--folder", type=Path, default=root / "results" / "mutants")
    parser.add_argument("--record", type=Path, help=f"default {record.RECORD}")
    parser.add_argument(
        "--tidy", action="store_true", help="drop explanations of what no longer survives"
    )
    options = parser.parse_args(arguments)
    targets = options.target or list(plan.TARGETS)
    if options.only:
        target = plan.target_of(options.only.partition(":")[0])
        chosen = [one for one in plan.all_mutants(root, target) if one.id == options.only]
        if not chosen:
            parser.error(f"no mutant {options.only}")
        print(chosen[0].diff((root / chosen[0].file).read_text()))
    else:
        chosen = plan.sample(root, targets, options.count, options.seed)
    warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
    warm_up()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    start = time.monotonic()
    trial = Trial(root, options.folder.resolve(), options.jobs)
    asked = [one for one in chosen if options.only or trial.result_of(one) is None]
    files = sorted({file for one in asked for file in plan.test_files(root, one.file)})
    try:
        trial.prepare(files, print)
        if options.only:
            trial.try_out(chosen[0])
        rows = run_all(trial, chosen, options.jobs)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    if options.only:
        (row,) = rows
        print(row["result"], row.get("test", ""), row.get("error", ""), f"{row['seconds']:.1f} s")
        return 0
    if options.tidy:
        print(f"{record.tidy(root / record.SURVIVORS, rows)} explanations dropped")
    found = record.summary(rows, trial.known)
    print(json.dumps({name: found[name] for name in ("mutants", *record.FATES)}))
    for one in found["survivors"]:
        if one["why"] is None:
            print(f"  {one['id']}  {one['text']}  [{one['change']}]")
    path = options.record or (None if options.target else root / record.RECORD)
    if path is not None:
        about = {"seed": options.seed, "count": options.count, "jobs": options.jobs}
        spent = sum(row["seconds"] for row in rows)
        about |= {"sources": trial.source, "seconds": round(time.monotonic() - start)}
        about |= {"seconds_of_mutants": round(spent)}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**about, **found}, indent=1, ensure_ascii=False) + "\n")
    return int(found["unexplained"] > record.MOST * len(rows))


if __name__ == "__main__":
    raise SystemExit(main())
