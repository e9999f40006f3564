# What the guest's scripts share. Sourced; wants `tool`, the script's name for messages.
#
# Kernel and image are big and rarely change: they lie outside of the tree, in $cache. `RH_CACHE` moves it.

interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ROCKHOPPER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/rockhopper}/guest
# The package that the kernel is built from.
kernel_source=linux-source-6.1

say() { echo "$tool: $*" >&2; }

die() {
    say "$*"
    exit 2
}

# Of the files named, and so of what is made from them: another one, another build.
stamp_of() { cat "$@" | sha256sum | cut -c1-16; }

# True when $cache/$1 was made from what has the stamp $2.
is_current() { [ -e "$cache/$1" ] && [ "$(cat "$cache/$1.stamp" 2>/dev/null)" = "$2" ]; }

# Fetches a package's file without installing it, into the directory $2.
fetch_package() {
    (cd "$2" && apt-get -q=2 -o APT::Sandbox::User=root download "$1" >fetch.log 2>&1) ||
        (apt-get -q=2 update >/dev/null 2>&1 && cd "$2" && apt-get -q=2 -o APT::Sandbox::User=root download "$1" >fetch.log 2>&1) || {
        cat "$2/fetch.log" >&2
        die "the package $1 cannot be fetched; the guest is made from Debian 12's packages: check the network and /etc/apt"
    }
}
