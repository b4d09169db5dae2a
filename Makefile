# Every target alone sets up what it needs: the virtual environment from pinned, hashed
# dependencies, and (demo, test, bench) the control planes, which are built or fetched once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help demo test nightly check faults chaos leaks bench rules deb image release packages format lock clean
help: ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: $(STAMP) ## the main job on two throw-away control planes, told as a story (about a minute)
	@$(BIN)/crsyncer demo $(DEMO)

# The same hashes on every run, one pair of planes per worker, all tests of a file on one worker. What takes longest
# starts first, or one worker is still at it when the others have nothing left.
WORKERS ?= 3
PYTEST := PYTHONHASHSEED=0 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
COVERING := tests/core tests/console tests/fleet
FIRST := tests/delivery tests/door tests/system tests/model
OTHERS := $(filter-out $(COVERING) $(FIRST),$(patsubst %/,%,$(wildcard tests/*/)))

test: $(STAMP) ## everything that CI runs (ARGS='-k S5_4 -x': those tests only)
ifdef ARGS
	@$(PYTEST) tests $(ARGS)
else
	@$(PYTEST) $(COVERING) --cov --cov-report=term:skip-covered
	@$(PYTEST) $(FIRST) $(OTHERS)
endif

nightly: $(STAMP) ## what takes long or is random: every row of the fault matrix, 20,000 histories, chaos, leaks, variations
	@PYTHONHASHSEED=0 $(BIN)/python -m tests.faults --numprocesses=$(WORKERS) $(ARGS)
	@$(PYTEST) $(COVERING) --hypothesis-profile=exploring
	@$(PYTEST) tests/system --door
	@seed=$$(date +%s); $(BIN)/python -m tests.model --from $$seed --to $$((seed + 10000))
	@seed=$$(date +%s); $(BIN)/python -m tests.model --policies --from $$seed --to $$((seed + 10000))
	@for seed in 1 2 $$(date +%s); do $(BIN)/python -m tests.faults.chaos --seconds 600 --seed $$seed || exit 1; done
	@$(MAKE) leaks packages

check: $(STAMP) ## format, lint, types, import directions, and that each rule is shown
	@$(BIN)/ruff format --check --quiet . || { echo "run 'make format'"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache >$(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/python -m tests.rules >$(VENV)/rules.log || { tail -1 $(VENV)/rules.log; exit 1; }

faults: $(STAMP) ## rows of the fault matrix, also what takes minutes; writes FAULTS.md (ROWS="7 42", ROWS=changed: which are old)
	@$(BIN)/python -m tests.faults $(ROWS)

chaos: SECONDS ?= 120
chaos: SEED ?= 1
chaos: $(STAMP) ## random writers and faults on two planes, judged by a checker (SECONDS=600 SEED=7 CHAOS=--dry-run)
	@$(BIN)/python -m tests.faults.chaos --seconds $(SECONDS) --seed $(SEED) $(CHAOS)

leaks: $(STAMP) ## the tests of real agents at debug level, then every byte that they left is searched for their tokens
	@PYTHONHASHSEED=0 $(BIN)/python -m tests.leaks --numprocesses=$(WORKERS) --dist=loadfile $(ARGS)

bench: $(STAMP) ## measure everything that the design promises; prints a table, writes bench.json
	@$(BIN)/python -m tests.bench $(BENCH)

rules: $(STAMP) ## each numbered rule and the tests that show it, on virtual time or on real planes; fails when none does
	@$(BIN)/python -m tests.rules

deb: $(STAMP) ## the Debian packages of agent and door, dist/crsyncer*.deb (ARCH=arm64; wants apt-get and dpkg-deb)
	@packaging/deb.sh $(ARCH)
	@packaging/door-deb.sh

image: deb ## the container image of that package, dist/crsyncer-image_*.tar (ARCH=arm64; wants podman)
	@packaging/image.sh $(ARCH)

release: image ## both, with the list of their components (SBOM), release notes and checksums, in dist/
	@packaging/release.sh

packages: image ## boots machines and containers with them (as root, with systemd-nspawn, mmdebstrap, podman)
	@PYTHONHASHSEED=0 $(BIN)/python -m pytest -m nightly tests/delivery/test_packages_booted.py \
	  tests/delivery/test_door_booted.py $(ARGS)

format: $(STAMP) ## rewrite the sources in the one format
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lock: ## resolve requirements.lock anew
	$(PYTHON) -m pip install -q uv && uv pip compile --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --group dev --extra expressions pyproject.toml -o requirements.lock

clean: ## remove what the other targets made in this checkout
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage bench.json dist

# Both stamps are written last: an environment is complete, or made anew. An edit of pyproject.toml alone, such as of a
# command's name or a lint rule, installs nothing but ourselves.
$(STAMP): $(VENV)/.packages pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q crsyncer  # also where Python is told to keep nothing it compiles
	@touch $@

$(VENV)/.packages: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "crsyncer needs Python >= 3.11: make PYTHON=python3.11 ..."; exit 1; }
	@echo "setting up $(VENV) (about half a minute, once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@touch $@
