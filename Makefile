# `make` prints this list. Everything that `.ci/run` does can be done here by hand.

CARGO ?= cargo
FLOCKD := target/release/flockd
FLOCKD_FIXTURES ?= ../shared/fixtures

# `make start` takes these and hands each on as the environment variable beside it, only when it is set
# here and the environment variable is not.
#   ACTIVE_GLOBAL_CONCURRENCY  FLOCKD_GLOBAL_CONCURRENCY   children alive at once, everything counted
#   ACTIVE_TASK_POOL           FLOCKD_TASKS                tasks in flight
#   START_TASK_LIMIT           FLOCKD_LOOP_MAX_COMPLETED   completions that end the run
#   START_TASK_ATTEMPT_LIMIT   FLOCKD_LOOP_MAX_ATTEMPTS    claims that end the run
#   START_INFINITE             FLOCKD_LOOP_INFINITE        no such bounds
define bridge
ifeq ($$(origin $(2)),undefined)
ifneq ($$(strip $$($(1))),)
export $(2) := $$($(1))
endif
endif
endef
$(eval $(call bridge,ACTIVE_GLOBAL_CONCURRENCY,FLOCKD_GLOBAL_CONCURRENCY))
$(eval $(call bridge,ACTIVE_TASK_POOL,FLOCKD_TASKS))
$(eval $(call bridge,START_TASK_LIMIT,FLOCKD_LOOP_MAX_COMPLETED))
$(eval $(call bridge,START_TASK_ATTEMPT_LIMIT,FLOCKD_LOOP_MAX_ATTEMPTS))
$(eval $(call bridge,START_INFINITE,FLOCKD_LOOP_INFINITE))

.DEFAULT_GOAL := help
.PHONY: help start stop status test check fmt clippy doc deny bench faults numbers conformance clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

start: $(FLOCKD) ## Build the release binary and run the loop over tasks/
	$(FLOCKD) start

stop: $(FLOCKD) ## Let running work end, start nothing new
	$(FLOCKD) stop

status: $(FLOCKD) ## Show what runs, what waits and for what
	$(FLOCKD) status

# Cargo decides whether anything has to be built.
.PHONY: $(FLOCKD)
$(FLOCKD):
	$(CARGO) build --release --locked --bin flockd

test: ## Run the test suite
	$(CARGO) test --locked --no-fail-fast -- --skip conformance_

check: fmt clippy test doc deny ## Format, lints, tests, docs, dependencies: the definition of done

fmt:
	$(CARGO) fmt --check

clippy:
	$(CARGO) clippy --locked --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --lib

deny:
	@command -v cargo-deny >/dev/null || { \
	  echo "cargo-deny is missing: cargo install cargo-deny --locked --version 0.20.2" >&2; exit 1; }
	$(CARGO) deny --locked check bans licenses sources

faults: ## Run the fault trials and print the table of docs/faults.md with the results
	CARGO="$(CARGO)" sh scripts/faults.sh

numbers: ## Bring docs/behaviours.md and docs/faults.md up to the tests that exist
	sh scripts/numbers.sh

conformance: ## Replay the recorded agent outputs in FLOCKD_FIXTURES
	@test -d "$(FLOCKD_FIXTURES)" || { \
	  echo "no folder $(FLOCKD_FIXTURES): set FLOCKD_FIXTURES to the recorded outputs" >&2; exit 1; }
	FLOCKD_FIXTURES="$(abspath $(FLOCKD_FIXTURES))" $(CARGO) test --locked --test it -- conformance_

bench: ## Measure on this machine; prints ratios
	$(CARGO) bench --locked --bench ratios

clean: ## Remove what the loop made: state, worktrees, flockd/ branches (the build stays)
	sh scripts/clean.sh
