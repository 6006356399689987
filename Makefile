# Two commands do everything: `make reproduce` and `make test`. Both set up .venv first.
PYTHON := .venv/bin/python
OUT ?= results/figure1

.PHONY: help setup reproduce test browser quick lint notebooks docs bench lock record fuzz soak mutants maxima
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: .venv/installed  ## make .venv with everything in it

# uv where it works, otherwise a private copy in .uv (pip may not install into the system's Python)
.venv/installed: pyproject.toml requirements.lock .python-version
	@if uv --version >/dev/null 2>&1; then uv=uv; else \
	  uv=.uv/bin/uv; test -x $$uv || { python3 -m venv .uv && .uv/bin/python -m pip install -q uv; }; fi; \
	set -e; test -x $(PYTHON) || $$uv venv -q --python "$$(cat .python-version)" .venv \
	  || $$uv venv -q --python ">=3.12" .venv; \
	echo "installing into .venv: a minute or two"; \
	$$uv pip install -q --compile-bytecode --python $(PYTHON) -r requirements.lock; \
	$$uv pip install -q --python $(PYTHON) --no-deps -e .
	@touch $@

reproduce: setup  ## run the paper's experiment and draw Figure 1 (OUT=folder)
	.venv/bin/bayesmeta reproduce --out $(OUT)

test: setup lint browser  ## lint, type check, and all tests, notebooks included
	$(PYTHON) -m pytest -rs

browser:  ## install Chromium, for the tests of bayesmeta explore, where apt-get may; never fails
	@for name in chromium chromium-browser google-chrome; do \
	  if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  get="apt-get install -y -qq --no-install-recommends chromium"; \
	  $$get >/dev/null 2>&1 || { apt-get update -qq >/dev/null 2>&1 && $$get >/dev/null 2>&1; }; fi; \
	command -v chromium >/dev/null || echo "no Chromium, and it cannot be installed here: the page" \
	  "of bayesmeta explore will not be tested in a browser (its functions and server will be)"

quick: setup lint  ## lint, type check, and the fast tests: about a minute
	$(PYTHON) -m pytest -m "not slow"

lint: setup  ## ruff and mypy
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

notebooks: setup  ## execute the notebooks in place
	$(PYTHON) notebooks/execute.py

docs: setup  ## build the site in build/site/html, warnings as errors
	$(PYTHON) docs/site/build.py

bench: setup  ## measure speed as ratios, and record them in benchmarks/
	$(PYTHON) benchmarks/run.py

fuzz: setup  ## hold 6,000 random inputs to the rule "right, or refused in one line", and record it
	$(PYTHON) -m tests.trials.fuzz
	$(PYTHON) analyses/hardening/report.py

soak: setup  ## kill, fill disks and cut workers for ten minutes, compare bytes, and record it
	$(PYTHON) -m tests.trials.soak
	$(PYTHON) analyses/hardening/report.py

mutants: setup  ## break the code in 320 places, see which tests notice, and record it (half an hour)
	$(PYTHON) -m tests.trials.mutants
	$(PYTHON) analyses/hardening/report.py

maxima: setup  ## compare likelihoods with the best of 50 starts on 2,000 small tables, and record it
	$(PYTHON) -m tests.trials.maxima
	$(PYTHON) analyses/hardening/report.py

record: setup  ## run the recorded studies again and write analyses/ (one to two hours, resumable)
	$(PYTHON) analyses/record.py

lock: setup  ## compile requirements.lock from pyproject.toml
	@if uv --version >/dev/null 2>&1; then uv=uv; else uv=.uv/bin/uv; fi; \
	$$uv pip compile -q --universal --python-version 3.12 --no-header --no-emit-index-url \
	  --no-annotate --group dev pyproject.toml -o requirements.lock
