# Every task of the project. `make` alone lists them.

CARGO ?= cargo
TOOLS := $(CURDIR)/.cache/tools
# Cases that each property gets in `make soak`.
SOAK_CASES ?= 100000
# Rounds of the kill test, on each backend, in `make soak`.
SOAK_ROUNDS ?= 1000
# Turns of the agents' kill test in `make soak`.
SOAK_TURNS ?= 1000
# Mutants of shell commands that a real bash runs in `make soak`.
SOAK_MUTANTS ?= 1000000
# Operations on files while directories and links are swapped, with each way to use the kernel, in `make soak`.
SOAK_RACES ?= 1000000
# Seconds that a gateway is under load in `make soak`; what it holds is compared with a quarter of the way.
SOAK_SECONDS ?= 1200

.DEFAULT_GOAL := help
.PHONY: help run install test lint fmt-check clippy small rustdoc tidy deny advisories bench soak repeat docs fmt clean setup lint-setup

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what building needs, if it is missing
	@scripts/install-build-deps.sh

run: setup ## Build Clawsmith and take the tour: real calls, explained
	$(CARGO) run --package claw-cli --bin clawsmith -- tour

install: setup ## Put `clawsmith` into ~/.cargo/bin, optimised
	$(CARGO) install --locked --path crates/claw-cli --bin clawsmith

test: setup ## Run every test, tidy checks and examples included, with a PostgreSQL and a Docker engine of its own
	scripts/with-clients.sh scripts/with-postgres.sh scripts/with-docker.sh $(CARGO) test --workspace

lint: setup lint-setup fmt-check clippy small rustdoc tidy deny ## Format, clippy, rustdoc, tidy and dependencies, warnings denied

lint-setup:
	@scripts/install-lint-deps.sh

fmt-check:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

small: ## Test the library with its default features (no sandbox, no SQL, no models, no agent), and check the program without traces
	$(CARGO) test --package clawsmith
	$(CARGO) clippy --package claw-cli --no-default-features -- -D warnings
	$(CARGO) test --package clawsmith --features app --lib -- says_that_traces_are_not_built_in

rustdoc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --lib

tidy: ## Check the tree: dependencies, the one road, style, generated files
	$(CARGO) xtask tidy

deny: ## Check licences, bans and sources of dependencies
	@scripts/install-deny.sh
	$(TOOLS)/bin/cargo-deny --workspace check bans licenses sources

advisories: ## Ask the advisory database about our dependencies (needs the network)
	@scripts/install-deny.sh
	$(TOOLS)/bin/cargo-deny --workspace check advisories

bench: setup ## Run the benchmarks, with a PostgreSQL and a Docker engine of their own
	@scripts/install-bench-deps.sh
	scripts/with-word-vectors.sh scripts/with-postgres.sh scripts/with-docker.sh $(CARGO) bench --workspace --bench '*'

soak: setup ## Run the tests optimised and long: SOAK_CASES, SOAK_ROUNDS, SOAK_TURNS, SOAK_MUTANTS, SOAK_RACES and SOAK_SECONDS say how long
	PROPTEST_CASES=$(SOAK_CASES) CLAWSMITH_KILL_ROUNDS=$(SOAK_ROUNDS) CLAWSMITH_KILL_TURNS=$(SOAK_TURNS) CLAWSMITH_ORACLE_MUTANTS=$(SOAK_MUTANTS) CLAWSMITH_RACE_OPS=$(SOAK_RACES) CLAWSMITH_SOAK_SECONDS=$(SOAK_SECONDS) scripts/with-clients.sh scripts/with-postgres.sh scripts/with-docker.sh $(CARGO) test --release --workspace

REPEAT ?= 30
repeat: setup ## Run the tests that wait for processes REPEAT times, with two busy loops beside them
	scripts/with-clients.sh scripts/with-postgres.sh scripts/with-docker.sh scripts/repeat-tests.sh $(REPEAT)

docs: ## Write the generated files: docs/tools.md, docs/config.schema.json, token figures
	$(CARGO) xtask generate

fmt: ## Format the code
	$(CARGO) fmt --all

clean: ## Remove what was built and downloaded
	$(CARGO) clean
	rm -rf .cache
