# llvm-profdata, which merges the counts of a profile-guided build. It has to be of the compiler's own LLVM, at least.

rustc_says() { (
    bin=$(scripts/find-rust.sh) || exit
    export PATH="$bin:$PATH"
    rustc "$@"
) }

# The LLVM that the compiler is of: 22.
llvm_version() { rustc_says -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p'; }

# Prints the path of one: rustup's, or a distribution's of the same version.
find_profdata() {
    local sysroot version path
    sysroot=$(rustc_says --print sysroot) && version=$(llvm_version) || return
    for path in "$sysroot"/lib/rustlib/*/bin/llvm-profdata "/usr/lib/llvm-$version/bin/llvm-profdata"; do
        if [ -x "$path" ]; then
            echo "$path"
            return
        fi
    done
    return 1
}
