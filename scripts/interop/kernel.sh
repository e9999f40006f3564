#!/usr/bin/env bash
# Builds the guest's kernel, once: User Mode Linux with Soft-RoCE, from Debian's own kernel source package.
# Four minutes on two idle cores; the result is one program of 8 MB, $cache/linux. Prints nothing when it is there.
#
# RDMA and network are as in the package. Changed is one thing outside of them: User Mode Linux 6.1 has room for 2696
# bytes of a process's vector registers, and on hosts with more (AMX: 11008) no program starts.
set -euo pipefail
tool=kernel.sh
. "$(dirname "$0")/lib.sh"

# The kernel takes a process's registers back only with the very length that it gave them.
make_room_for_registers() {
    local offsets=$1/user-offsets.c registers=$1/os-Linux/registers.c
    sed -i 's/\(HOST_FP_SIZE, \)2696/\112288/' "$offsets"
    sed -i -e 's/^int have_xstate_support;/&\nstatic unsigned long xstate_bytes;/' \
        -e 's/^\t\thave_xstate_support = 1;/\t{\n&\n\t\txstate_bytes = iov.iov_len;\n\t}/' \
        -e '/^int restore_fp_registers/,/^}/s/iov_len = .*;/iov_len = xstate_bytes;/' "$registers"
    if ! grep -q 'HOST_FP_SIZE, 12288' "$offsets" || [ "$(grep -c xstate_bytes "$registers")" -ne 3 ]; then
        die "this kernel source differs from the one that $tool knows: see make_room_for_registers"
    fi
}

stamp=$(stamp_of "$interop/kernel.sh" "$interop/guest/kernel.config")
is_current linux "$stamp" && exit 0
mkdir -p "$cache"
# Two at a time would do the same work twice.
exec 9>"$cache/kernel.lock"
flock 9
is_current linux "$stamp" && exit 0

for program in gcc make flex bison bc xz; do
    command -v $program >/dev/null || die "there is no $program: run 'scripts/setup.sh interop'"
done
work=$(mktemp -d "$cache/kernel.XXXXXX")
trap 'rm -rf "$work"' EXIT
fetch_package "$kernel_source" "$work"
package=$(echo "$work/$kernel_source"_*.deb)
version=$(dpkg-deb -f "$package" Version)
say "building the guest's kernel from $kernel_source $version (some minutes, once)"
# What User Mode Linux has no use for is most of the source.
dpkg-deb --fsys-tarfile "$package" | tar -xO "./usr/src/$kernel_source.tar.xz" | tar -xJ -C "$work" \
    --exclude='*/Documentation/*/*' --exclude='*/tools/testing/*' --exclude='*/drivers/gpu/*.[ch]' --exclude='*/sound/*.[ch]'
make_room_for_registers "$work/$kernel_source/arch/x86/um"
log=$cache/kernel.log
mkdir "$work/out"
failed() {
    tail -30 "$log" >&2
    die "the guest's kernel did not build; the whole log is $log"
}
make -C "$work/$kernel_source" O="$work/out" ARCH=um KCONFIG_ALLCONFIG="$interop/guest/kernel.config" \
    allnoconfig >"$log" 2>&1 || failed
for option in RDMA_RXE INFINIBAND_USER_ACCESS UML_NET_VECTOR; do
    grep -q "^CONFIG_$option=y" "$work/out/.config" || die "this kernel source does not take CONFIG_$option"
done
make -C "$work/out" ARCH=um -j"$(nproc)" linux >>"$log" 2>&1 || failed
strip --strip-debug -o "$cache/linux.new" "$work/out/linux"
mv "$cache/linux.new" "$cache/linux"
echo "$version" >"$cache/linux.version"
echo "$stamp" >"$cache/linux.stamp"
