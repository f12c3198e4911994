# Needs make and Python 3.11 or newer. Everything else goes into .venv, from requirements.txt.

# A python3 that is too old often has a newer one next to it.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$python && break; done)

ADDR ?= 127.0.0.1:8000
WORKERS ?= 2
UV ?= uv
ARGS ?=
BASE ?= main
REPORT ?= changes

RUN := .venv/bin/python -m
READY := .venv/ready
WHEELS := .venv/wheels
BENCH := .cache/benchmarks
MUTANTS := .cache/mutants
RIVALS := .cache/rivals
CALCULON := caa4b11f8fe1fee3ba57adaacb7590d7deabd053
CANARY := .cache/canary
AUDIT := .cache/audit
GATE_TOOLS := .cache/gate

export NO_MKDOCS_2_WARNING := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# A module is compiled when it is first imported. Most installed modules never are, so pip need not
# compile them.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup serve build test first-browser check site-check diff paper validate rivals golden bench authoring builders canary audit upgrade mutants stats clean lock

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## Make .venv and install the locked packages (the other commands do it first, once)

serve: $(READY) ## Serve the site with live reload (ADDR=127.0.0.1:8000)
	@$(RUN) figgen.serving.address $(ADDR)
	$(RUN) mkdocs serve --livereload --dev-addr $(ADDR)

build: $(READY) ## Build the site into site/; any warning fails
	@# All or nothing: a build that fails or is killed, or a full disk, leaves the last site in place.
	@new=$$($(RUN) figgen.publish.place begin site $$$$) || exit 1; \
	trap "rm -rf '$$new'" EXIT INT TERM; \
	$(RUN) mkdocs build --strict --site-dir "$$new" && $(RUN) figgen.publish.place end "$$new" site

test: ## Run every test, Chromium included (ARGS='-k name' is passed on)
	@$(MAKE) --no-print-directory --jobs 2 first-browser $(READY)
	@CHROME_PATH="$$($(RUN) tests.browser.chromium)"; export CHROME_PATH; \
	$(RUN) pytest -n $(WORKERS) --dist worksteal --require-browser $(ARGS)

# On a fresh machine root's package manager installs a browser while pip installs the rest.
BROWSER := from tests.browser import chromium; chromium.find() or chromium.install_package()
first-browser:
	@[ -f $(READY) ] || "$(PYTHON)" -c '$(BROWSER)' || true

check: $(READY) ## Check style, types, the import law, the prose and the workflows
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy
	$(RUN) pytest -q tests/test_layers.py tests/test_house.py
	$(RUN) figgen lint docs
	$(RUN) figgen agree docs
	.venv/bin/zizmor --quiet --offline .github

GATE = tests/browser/test_pages.py tests/browser/test_links.py tests/browser/test_search.py tests/browser/gate
site-check: build $(GATE_TOOLS)/ready ## Check the built site in a real browser and print a table
	@CHROME_PATH="$$($(RUN) tests.browser.chromium)"; export CHROME_PATH; \
	$(RUN) pytest $(GATE) -o python_files='test_*.py gate_*.py' --site site -n $(WORKERS) \
		--require-browser -q $(ARGS)

diff: $(READY) ## Report what differs from a revision (BASE=main REPORT=changes)
	$(RUN) figgen diff $(BASE) --report $(REPORT) $(ARGS)

validate: $(READY) ## Print predicted against measured step times of every published run
	$(RUN) figgen validate $(ARGS)

paper: build ## Write the guide as guide.pdf and guide.epub, and the site as guide.zip
	@CHROME_PATH="$$($(RUN) tests.browser.chromium)"; export CHROME_PATH; \
	$(RUN) figgen paper site guide.pdf
	$(RUN) figgen paper site guide.epub
	rm -f guide.zip && cd site && ../.venv/bin/python -m zipfile -c ../guide.zip .

rivals: $(RIVALS)/ready ## Run other open models of training time on the same runs; freezes their answers
	CALCULON=$(RIVALS)/calculon COMMIT=$(CALCULON) $(RIVALS)/bin/python -m tests.benchmarks.rivals
	CALCULON=$(RIVALS)/calculon $(RIVALS)/bin/python -m tests.benchmarks.rivals.board

golden: $(READY) ## Rewrite tests/golden/ from what the code prints now; review it with git diff
	$(RUN) pytest -q --update-golden $(ARGS)

bench: $(READY) $(BENCH)/ready ## Time the site's build beside other tools' (ROUNDS=1: the tools too)
	@CHROME_PATH="$$($(RUN) tests.browser.chromium)"; export CHROME_PATH; \
	BROWSER_PYTHON=.venv/bin/python $(BENCH)/bin/python -m tests.benchmarks
	$(BENCH)/bin/python -m tests.benchmarks.example
	@if [ -n "$(ROUNDS)$(ARGS)" ]; then CHROME_PATH="$$($(RUN) tests.browser.chromium)" \
		$(RUN) pytest tests/benchmarks -o python_files='bench_*.py' -q -s $(ARGS); fi

authoring: $(READY) $(BENCH)/ready ## Time edits under serve (SCALE='250 1000': sites with this many figures)
	$(BENCH)/bin/python -m tests.benchmarks.authoring $(SCALE)

mutants: $(READY) $(MUTANTS)/ready ## Change the code in a sample of places, and see whether tests fail (ARGS='--seed 2')
	nice -n 19 $(MUTANTS)/bin/python -m tests.mutants $(ARGS)

stats: $(READY) ## Count words, figures, computed numbers and worked problems of each page
	$(RUN) figgen stats

builders: $(READY) ## Build with ProperDocs too; fail where a byte differs from MkDocs' site
	$(RUN) tests.canary .venv/bin .cache/builders-sites properdocs

canary: $(READY) $(CANARY)/ready ## Build with ProperDocs and Zensical too; report the differences
	$(RUN) tests.canary $(CANARY)/bin .cache/canary-sites

audit: $(READY) ## Look up known vulnerabilities of every locked version
	@.venv/bin/python -m venv $(AUDIT) && $(AUDIT)/bin/python -m pip install --quiet --upgrade pip-audit
	@status=0; for lock in requirements.txt $$(git ls-files 'tests/**/requirements.txt'); do echo "$$lock:"; \
		$(AUDIT)/bin/pip-audit --progress-spinner off --disable-pip --require-hashes -r "$$lock" || status=1; \
	done; \
	if command -v npm >/dev/null; then (cd tests/browser/gate && npm audit) || status=1; fi; exit $$status

upgrade: build ## Resolve newer versions of every lock (needs uv), run everything, report what moved
	rm -rf .cache/before && cp -r site .cache/before
	$(MAKE) lock ARGS=--upgrade
	$(MAKE) build
	$(RUN) figgen diff .cache/before site --report changes
	$(MAKE) --keep-going check test site-check $(BENCH)/ready $(MUTANTS)/ready $(RIVALS)/ready canary

clean: ## Remove site/ and every cache (.venv stays; delete it for a fresh set-up)
	rm -rf site changes guide.pdf guide.epub guide.zip build .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

# The file that says "done" is written last, so a set-up that was interrupted starts afresh.
$(READY): requirements.txt pyproject.toml
	@if ! { [ -f $@ ] && $(RUN) pip --version >/dev/null 2>&1; }; then \
		"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null || { \
			echo 'Python 3.11 or newer is needed and was not found; try make PYTHON=/path/to/python3' >&2; exit 1; }; \
		"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
			echo "$(PYTHON) lacks its venv module; install it (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 1; }; \
		echo "Setting up .venv with $$("$(PYTHON)" --version); this takes a minute, once"; \
		"$(PYTHON)" -m venv --clear .venv; \
	fi
	@rm -f $@
	@# Two processes look the packages up, which takes longer than to install them.
	@rm -rf $(WHEELS) && mkdir $(WHEELS)
	@awk '/^[^ #]/ { lines++ } { print > "$(WHEELS)/" lines % 2 }' requirements.txt
	printf '%s\n' 0 1 | xargs -P 2 -I half $(RUN) pip wheel --quiet --no-deps --require-hashes \
		--wheel-dir $(WHEELS) --requirement $(WHEELS)/half
	$(RUN) pip install --quiet --no-compile --no-deps --no-index $(WHEELS)/*.whl
	@rm -rf $(WHEELS)
	$(RUN) pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# Separate environments for tools to compare the site with, and for tools that change its code.
$(BENCH)/ready $(MUTANTS)/ready: .cache/%/ready: $(READY) tests/%/requirements.txt
	@echo 'Setting up $(@D) with the tools of tests/$*; this takes a minute, once'
	@rm -f $@
	@.venv/bin/python -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --require-hashes -r tests/$*/requirements.txt
	@$(@D)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# Other models of training time; calculon is on no package index, so its commit stands for a hash.
$(RIVALS)/ready: $(READY) tests/benchmarks/rivals/requirements.txt
	@rm -rf $(RIVALS) && .venv/bin/python -m venv $(RIVALS)
	@$(RIVALS)/bin/python -m pip install --quiet --no-deps --require-hashes \
		-r tests/benchmarks/rivals/requirements.txt
	@git clone --quiet https://github.com/calculon-ai/calculon $(RIVALS)/calculon
	@git -C $(RIVALS)/calculon checkout --quiet $(CALCULON)
	@$(RIVALS)/bin/python -m pip install --quiet --no-deps --no-build-isolation $(RIVALS)/calculon
	@$(RIVALS)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# The newest versions of possible successors of MkDocs, next to the locked packages.
$(CANARY)/ready: $(READY)
	@rm -f $@
	@.venv/bin/python -m venv --clear $(CANARY)
	@.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		"$$($(CANARY)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/locked.pth"
	@$(CANARY)/bin/python -m pip install --quiet --upgrade properdocs zensical
	@touch $@

# The Nu HTML checker and Lighthouse, if Node is installed; otherwise the gate skips them.
$(GATE_TOOLS)/ready: tests/browser/gate/package-lock.json
	@mkdir -p $(GATE_TOOLS) && cp tests/browser/gate/package*.json $(GATE_TOOLS)
	@if command -v npm >/dev/null; then \
		npm ci --prefix $(GATE_TOOLS) --ignore-scripts --no-audit --no-fund --silent; \
	else echo 'No npm: the site is not held to Lighthouse and the Nu HTML checker' >&2; fi
	@touch $@

# For maintainers: resolve again (ARGS=--upgrade for newer versions). No lock names a host.
COMPILE = $(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command 'make lock'
lock:
	$(COMPILE) --group dev --output-file requirements.txt $(ARGS)
	$(COMPILE) tests/benchmarks/requirements.in --constraint requirements.txt \
		--output-file tests/benchmarks/requirements.txt $(ARGS)
	$(subst pyproject.toml,tests/benchmarks/rivals/requirements.in,$(COMPILE)) \
		--override tests/benchmarks/rivals/overrides.txt --constraint requirements.txt \
		--output-file tests/benchmarks/rivals/requirements.txt $(ARGS)
	$(COMPILE) --group dev tests/mutants/requirements.in --constraint requirements.txt \
		--output-file tests/mutants/requirements.txt $(ARGS)
	@if command -v npm >/dev/null; then cd tests/browser/gate && \
		npm $(if $(filter --upgrade,$(ARGS)),update,install) --package-lock-only --ignore-scripts \
			--omit-lockfile-registry-resolved --no-audit --no-fund; \
	else echo 'No npm: the lock of the gate stays as it is' >&2; fi
