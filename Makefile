# The front door. `make help` lists what there is; each target's text after ## is its help.

SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO := scripts/cargo.sh

.PHONY: miri native pgo setup-pgo conform-rxe help setup setup-test setup-interop build demo demo-tap test interop check bench ci fuzz mutants junk-flood setup-bench

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## install what the build needs (DPDK headers, libclang, Rust if missing)
	@scripts/setup.sh build

setup-test: ## install what the tests need besides (cargo-nextest, tshark, scapy, valgrind, ip, ping)
	@scripts/setup.sh test

setup-interop: ## build the Linux guest of the interop tests besides (some minutes, once)
	@scripts/setup.sh interop

setup-bench: ## install what the suite of measurements compares with (iperf3, UCX, libfabric)
	@scripts/setup.sh bench

build: setup ## release build: target/release/rockhopper and target/release/rockhopper-perf
	$(CARGO) build --release -p rockhopper -p rockhopper-perf

native: setup ## the same for this machine's processor alone: target/native/release
	RUSTFLAGS="$$RUSTFLAGS -C target-cpu=native" $(CARGO) build --release -p rockhopper -p rockhopper-perf --target-dir target/native

setup-pgo: ## install what a profile-guided build needs (llvm-profdata)
	@scripts/setup.sh pgo

pgo: setup-pgo ## the same, optimised by a profile of its own runs, for any processor: target/pgo/release (two builds and half a minute)
	scripts/pgo.sh

demo: build ## both ends in one process over net_ring: every operation verified, speed and latency
	target/release/rockhopper demo

demo-tap: build setup-test ## two processes in two network namespaces, joined by taps and a bridge (root)
	scripts/demo-tap.sh

test: setup-interop ## every test: style, workspace, documentation, proofs against foreign tools and a live Linux peer
	scripts/test.sh

interop: build setup-interop ## the whole matrix against a live Linux peer (rdma_rxe in a guest); writes docs/interop.md (root)
	scripts/interop.sh

check: setup-test ## formatting, lints and the style test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	scripts/check-style.sh

TARGET ?= live_engine
RUNS ?= 1000000
fuzz: setup ## one fuzz target (TARGET=live_engine, RUNS=1000000); fuzz/src/lib.rs lists all
	scripts/fuzz.sh $(TARGET) $(RUNS)

miri: ## registered memory, and parts of wire and engine, under Miri, which finds undefined behaviour (a nightly toolchain; long)
	scripts/miri.sh

conform-rxe: build ## the conformance suite against Linux Soft-RoCE in a guest (root): docs/interop.md has the account
	scripts/interop/conform.sh

mutants: setup-test ## break the engine on purpose and see that the simulator or a test notices (long)
	scripts/mutants.sh

SUITE ?=
bench: pgo setup-bench ## measure limits, Rockhopper (profile-guided) and its peers in one run: a report in target/suite (root for wires; SUITE="--only ring" narrows it)
	target/pgo/release/rockhopper-perf suite --output target/suite $(SUITE)

junk-flood: build ## what a flood of junk leaves of good traffic, kind by kind
	$(CARGO) run --release --quiet -p rockhopper-worker --example junk_flood

ci: check ## what has to pass before a change lands: check, then .ci/run
	.ci/run
