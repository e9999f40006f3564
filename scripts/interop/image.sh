#!/usr/bin/env bash
# Makes the guest's root file system, an initramfs: the stock RDMA programs of this Debian, the few others that a shell
# script wants, and what starts them. Some seconds; the result is $cache/root.cpio. Prints nothing when it is there.
#
# Programs are copied from this system with the libraries that they need, so they are the very files of its packages.
set -euo pipefail
tool=image.sh
. "$(dirname "$0")/lib.sh"

packages=(ibverbs-utils ibverbs-providers perftest rdmacm-utils)
for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
        die "the package $package is not installed: run 'scripts/setup.sh interop'"
done
versions=$(dpkg-query -W -f '${Package} ${Version}\n' "${packages[@]}")
stamp=$(stamp_of "$interop/image.sh" "$interop"/guest/{init,agent.pl,lib.sh} <(echo "$versions"))
is_current root.cpio "$stamp" && exit 0
mkdir -p "$cache"
exec 9>"$cache/image.lock"
flock 9
is_current root.cpio "$stamp" && exit 0

work=$(mktemp -d "$cache/image.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,proc,sys,dev,tmp,run,etc/libibverbs.d,mnt/host}

# busybox for what has no kernel interface of its own; the rest is the real thing, also where busybox has an applet of
# the name, for its shell would prefer that.
fetch_package busybox-static "$work"
mkdir "$work/busybox"
dpkg-deb -x "$work"/busybox-static_*.deb "$work/busybox"
cp "$work/busybox/bin/busybox" "$root/bin/"
real=(dash perl ip rdma tc ss ping tcpdump timeout setsid env nice xargs)
for applet in $("$root/bin/busybox" --list); do
    case " ${real[*]} busybox sh ash " in
    *" $applet "*) ;;
    *) ln -s busybox "$root/bin/$applet" ;;
    esac
done
ln -s "$(command -v dash)" "$root/bin/sh"

libraries() { ldd "$1" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p'; }
into_root() {
    local file
    for file in "$@"; do
        mkdir -p "$root$(dirname "$file")"
        [ -e "$root$file" ] || cp -L "$file" "$root$file"
    done
}
lib=/usr/lib/x86_64-linux-gnu
mapfile -t programs < <(
    for name in "${real[@]}"; do command -v "$name" || die "there is no $name: run 'scripts/setup.sh interop'"; done
    dpkg -L ibverbs-utils perftest rdmacm-utils | grep -E '^/usr/s?bin/' | grep -v run_perftest
    ls $lib/libibverbs/librxe-rdmav*.so
)
# What programs open while they run: ldd does not show it.
into_root "${programs[@]}" /lib/x86_64-linux-gnu/libgcc_s.so.1
for program in "${programs[@]}"; do
    mapfile -t needed < <(libraries "$program")
    into_root "${needed[@]}"
done
# perl and its few modules are on every Debian.
mkdir -p "$root$lib"
cp -r $lib/perl-base "$root$lib/"
rm -rf "$root$lib/perl-base/unicore"
cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
printf 'root:x:0:0:root:/tmp:/bin/sh\ntcpdump:x:0:0::/tmp:/bin/sh\n' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
echo 'hosts: files' >"$root/etc/nsswitch.conf"
install -m 755 "$interop/guest/init" "$root/init"
install -m 755 "$interop/guest/agent.pl" "$root/bin/agent.pl"
install -m 644 "$interop/guest/lib.sh" "$root/etc/lib.sh"

(cd "$root" && find . -print0 | LC_ALL=C sort -z | cpio --null -o -H newc --owner=0:0 --quiet) >"$work/root.cpio"
mv "$work/root.cpio" "$cache/root.cpio"
echo "$versions" >"$cache/root.versions"
echo "$stamp" >"$cache/root.cpio.stamp"
