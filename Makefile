# Thin on purpose: each target is one or two commands. `make` prints the list.

# How many simulation seeds, and from which one on: the commit gives the first, so that each commit sees new ones. Or which one alone:
# make sim SEEDS=20000 FIRST=1, make sim SEED=42.
SEEDS ?= 200
FIRST ?= $(shell printf '%d' 0x$$(git rev-parse HEAD 2>/dev/null | cut -c 1-6) 2>/dev/null || echo 1)
SEED ?=
# How many planted bugs `make test` tries, if its time allows: another choice with every commit.
MUTANTS ?= 5
# Unit tests and the simulation have the profile of the broker that `make test` starts, which compiles dependencies once, and the
# checks of a debug build in our own crates (Cargo.toml keeps dependencies without them). tests/mutants does the same.
CHECKED := CARGO_PROFILE_QUICK_DEBUG_ASSERTIONS=true CARGO_PROFILE_QUICK_OVERFLOW_CHECKS=true
# Which interop suites: make interop LANG=python (a name or the beginning of names; none means all). Taken from the command line
# only, because LANG in the environment is the locale.
ifeq ($(origin LANG),command line)
SUITES := $(LANG)
unexport LANG
endif
# How many failures `make ha-test` causes, twelve seconds each.
ROUNDS ?= 300
# Further arguments of the broker, or of the benchmark: make run ARGS="--ephemeral".
ARGS ?=
# What is fuzzed, and for how many seconds: make fuzz TARGET=engine TIME=600. `fuzz/run --list` prints the targets.
TARGET ?= engine
TIME ?= 60
# What `make deny` looks at. Known vulnerabilities need the network: DENY="advisories bans licenses sources".
DENY ?= bans licenses sources

CARGO ?= cargo
PYTHON ?= python3
REQUIREMENTS := $(filter-out interop-tests/bench/%,$(wildcard interop-tests/*/requirements.txt))

.PHONY: help run build check deny lint unit test test-all test-rest dist sim crash mutants mutants-sample fuzz interop bench bench-ha growth instructions ha ha-test certs clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s  %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## build the broker without link-time optimization, and start it with its defaults
	$(CARGO) run --locked --profile quick -- serve $(ARGS)

build: ## build the release binaries: the broker and the load generator
	$(CARGO) build --locked --release --workspace

# The suites run the broker that `unit` has built, with its checks on: a second build of it would take minutes.
test: unit sim .venv/core ## unit tests, simulation, the Python SDK, kills, hostile clients; needs Rust, a C compiler and Python
	JITNEY_BINARY=$(CURDIR)/target/quick/jitney interop-tests/run --tier test

test-all: test test-rest ## everything CI runs: make test, lints, documentation, planted bugs, and the suites of tier `ci`

test-rest: lint deny mutants-sample build .venv/made
	interop-tests/run --tier ci
	-interop-tests/bench/instructions # a report: it fails nothing

unit: ## unit, transcript and hostile tests
	$(CHECKED) $(CARGO) test --locked --profile quick --workspace -- --skip sim::

lint: ## format, clippy, documentation, and whether the planted bugs still apply
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	tests/mutants --check
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items

check: lint deny unit ## the quick part: lint, deny and unit

deny: target/tools/bin/cargo-deny ## licences and origins of what is built in, and what must not be
	target/tools/bin/cargo-deny --locked check $(DENY)

sim: ## the broker under simulation: SEEDS=200 of them from FIRST on, which the commit gives, or the one of SEED=42
	SEEDS=$(SEEDS) FIRST=$(FIRST) $(if $(SEED),SEED=$(SEED)) $(CHECKED) $(CARGO) test --locked --profile quick --test simulator -- sim:: --nocapture

crash: build .venv/made ## SIGKILL the real process under load, again and again
	interop-tests/run crash

mutants: ## planted bugs that the simulation must find
	tests/mutants

mutants-sample:
	tests/mutants --sample $(MUTANTS)

fuzz: ## looks for inputs that break a part of the core: TARGET=engine TIME=60; needs a C++ compiler
	fuzz/run $(TARGET) $(TIME)

interop: build .venv/made ## every suite against the release binary; LANG=python for some; writes docs/interop-matrix.md
	interop-tests/run $(SUITES)

bench: build ## the table of budgets, measured (some 15 minutes); PEERS=1 measures other brokers too; ARGS="--row 4" for one row
	interop-tests/bench/run $(ARGS)

bench-ha: build .venv/made ## three servers over PostgreSQL beside three RabbitMQ nodes (some 15 minutes, root); ARGS="--only jitney --kills 0"
	.venv/bin/python interop-tests/bench/replicated.py $(ARGS)

growth: build interop-tests/bench/.venv/made ## how costs grow, with curves; ARGS="connections queues" for some
	interop-tests/bench/growth.py measure $(ARGS)
	interop-tests/bench/.venv/bin/python interop-tests/bench/growth.py plot

instructions: ## instructions for one message in the broker's core, beside the last release's; needs valgrind
	interop-tests/bench/instructions $(ARGS)

ha: build .venv/made ## three servers over PostgreSQL with two standbys, which it installs inside the tree, until Ctrl-C
	.venv/bin/python interop-tests/ha/fleet.py $(ARGS)

ha-test: build .venv/made ## hundreds of failures of servers, databases and networks under load: ROUNDS=300
	interop-tests/ha/run --rounds $(ROUNDS) $(ARGS)

dist: target/tools/python/made target/tools/bin/made ## the release files, in target/dist: static binaries, packages, images (some half an hour); needs rustup
	packaging/dist

certs: build ## certificates for TLS in certs/, by a local authority; ARGS="--name broker.test" for others
	target/release/jitney certs certs $(ARGS)

clean: ## remove what was built and installed inside the tree
	$(CARGO) clean
	rm -rf .venv interop-tests/.work interop-tests/*/.venv interop-tests/*/node_modules interop-tests/*/target \
		interop-tests/examples/*/node_modules interop-tests/examples/*/target

# The pinned Python packages of `make test`, inside the tree: they are wheels, and need no compiler.
.venv/core: interop-tests/python/requirements.txt
	$(PYTHON) -m venv --clear .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Those of all suites.
.venv/made: .venv/core $(REQUIREMENTS)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -r ,$(REQUIREMENTS))
	touch $@

# The pinned tools of `make dist`: a C compiler, and what makes packages.
target/tools/python/made: packaging/requirements.txt
	$(PYTHON) -m venv --clear target/tools/python
	target/tools/python/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

target/tools/bin/cargo-deny: packaging/check-tools.txt
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 xargs $(CARGO) install --quiet --locked --root target/tools <$<
	touch $@

target/tools/bin/made: packaging/tools.txt
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 xargs $(CARGO) install --quiet --locked --root target/tools <$<
	touch $@

# What draws the curves of `make growth`, apart: no suite needs it.
interop-tests/bench/.venv/made: interop-tests/bench/requirements.txt
	$(PYTHON) -m venv --clear interop-tests/bench/.venv
	interop-tests/bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@
