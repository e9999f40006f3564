#!/usr/bin/env bash
# Installs what is missing on Debian 12, Ubuntu 22.04 or 24.04 and is silent when nothing is.
#
#   setup.sh build    what the build needs
#   setup.sh test     and what the tests need
#   setup.sh pgo      what a profile-guided build needs besides
#   setup.sh bench    what the suite of measurements compares with; what a distribution does not have is left out
#   setup.sh interop  and a Linux guest with Soft-RoCE: some minutes for its kernel, the first time
#
# It installs packages and a Rust toolchain, nothing else: hugepages, drivers and network settings stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/profdata.sh

# libclang-dev brings the headers that bindgen needs; libdpdk-dev brings every driver.
build_packages=(build-essential pkg-config libclang-dev libdpdk-dev)
# demo-tap and the tests make namespaces and taps (iproute2), ping them, and let foreign tools read our packets.
test_packages=(valgrind iproute2 iputils-ping tcpdump tshark python3 python3-scapy)

# What the guest's kernel is built with, and the programs that run in it. They are installed here and copied.
interop_packages=(flex bison bc xz-utils cpio ibverbs-utils ibverbs-providers perftest rdmacm-utils)

# Peers on the same machine, and what counts cycles and keeps programs to a core. The suite tells what is not there.
bench_packages=(iproute2 util-linux iperf3 ucx-utils libfabric-bin linux-perf dpdk-dev)

say() { echo "setup: $*" >&2; }

die() {
    say "$*"
    exit 2
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "'$*' needs root and there is no sudo: run it as root, then run this again"
    fi
}

# Once per run and only if something has to be installed.
update_lists() {
    [ -n "${lists_updated:-}" ] && return
    say "updating the package lists"
    as_root apt-get -q=2 -o DPkg::Lock::Timeout=120 update >&2 || die "apt-get update failed: check the network and /etc/apt/sources.list"
    lists_updated=yes
}

install_packages() {
    local missing=() package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    command -v apt-get >/dev/null ||
        die "this is neither Debian nor Ubuntu: install the equivalents of ${missing[*]}, then build with cargo"
    update_lists
    say "installing ${missing[*]}"
    # Capturing stays a matter for root: the answer to the one question that tshark's package asks.
    if [[ " ${missing[*]} " == *" tshark "* ]] && command -v debconf-set-selections >/dev/null; then
        echo 'wireshark-common wireshark-common/install-setuid boolean false' | as_root debconf-set-selections
    fi
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -q=2 -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
        die "apt-get could not install ${missing[*]}; its message is above"
}

# Prints the distribution's packages of a new enough Rust, or of rustup.
rust_packages() {
    local needed=$1 rustc cargo version
    for rustc in rustc $(apt-cache pkgnames rustc-1. | sort -rV) rustc-web; do
        version=$(apt-cache policy "$rustc" | awk '/Candidate:/ { print $2 }')
        [[ "$version" == [0-9]* ]] || continue
        [ "$(printf '%s\n' "$needed" "$version" | sort -V | sed -n 1p)" = "$needed" ] || continue
        cargo=${rustc/rustc/cargo}
        [ -n "$(apt-cache policy "$cargo")" ] || continue
        echo "$rustc $cargo"
        return
    done
    if [[ "$(apt-cache policy rustup)" == *"Candidate: "[0-9]* ]]; then
        echo rustup
    fi
}

install_rust() {
    scripts/find-rust.sh >/dev/null && return
    local needed packages
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! command -v rustup >/dev/null && command -v apt-get >/dev/null; then
        update_lists
        packages=$(rust_packages "$needed")
        # shellcheck disable=SC2086 # one or two package names
        [ -n "$packages" ] && install_packages $packages
    fi
    if ! scripts/find-rust.sh >/dev/null && command -v rustup >/dev/null; then
        say "installing the stable Rust toolchain with rustup"
        rustup toolchain install stable --profile default >&2 && rustup default stable >&2
    fi
    scripts/find-rust.sh >/dev/null ||
        die "Rust $needed or newer is needed and this distribution has none: install it with rustup, then run this again"
}

install_nextest() {
    scripts/cargo.sh nextest --version >/dev/null 2>&1 && return
    say "installing cargo-nextest, which gives each test its own process as DPDK needs (some minutes)"
    scripts/cargo.sh install cargo-nextest --locked --quiet >&2 ||
        die "cargo-nextest could not be installed: its message is above; a prebuilt one on PATH does as well"
}

install_profdata() {
    find_profdata >/dev/null && return
    if command -v rustup >/dev/null && [[ "$(rustc_says --print sysroot)" == *toolchains* ]]; then
        say "installing llvm-profdata with rustup"
        rustup component add llvm-tools >&2 || say "rustup could not install llvm-tools; its message is above"
    elif command -v apt-get >/dev/null; then
        update_lists
        install_packages "llvm-$(llvm_version)"
    fi
    find_profdata >/dev/null ||
        die "a profile-guided build needs llvm-profdata of LLVM $(llvm_version): install it (rustup component add llvm-tools), then run this again; a plain build ('make build') does not, and target/release/rockhopper-perf suite measures it"
}

case "${1:-}" in
build)
    install_packages "${build_packages[@]}"
    install_rust
    ;;
test)
    install_packages "${build_packages[@]}" "${test_packages[@]}"
    install_rust
    install_nextest
    ;;
pgo)
    scripts/setup.sh build
    install_profdata
    ;;
bench)
    command -v apt-get >/dev/null || { say "no apt-get: the suite tells which programs it misses"; exit 0; }
    wanted=()
    for package in "${bench_packages[@]}"; do
        # Ubuntu has some under other names, or not at all: the suite tells what it misses.
        if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            [[ "$(apt-cache policy "$package" 2>/dev/null)" == *"Candidate: "[0-9]* ]]; then
            wanted+=("$package")
        fi
    done
    install_packages "${wanted[@]}"
    ;;
interop)
    scripts/setup.sh test
    # Elsewhere the tests that need the guest say so and are counted as skipped.
    if reason=$(scripts/interop/guest.sh possible); then
        install_packages "${interop_packages[@]}"
        scripts/interop/guest.sh build
    else
        say "no Linux guest: $reason"
    fi
    ;;
*)
    echo "usage: $0 build|test|pgo|bench|interop" >&2
    exit 2
    ;;
esac
