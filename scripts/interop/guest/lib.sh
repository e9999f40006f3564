# What every script in the guest has.
export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/tmp LD_LIBRARY_PATH=/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu
export PERL5LIB=/usr/lib/x86_64-linux-gnu/perl-base
ulimit -l unlimited

# listens PORT [NAME]: waits until a program listens on a TCP port, some 10 s, or until the program NAME has ended.
listens() {
    local tries=200
    until ss -Hltn "sport = :$1" | grep -q .; do
        tries=$((tries - 1))
        if [ $tries -eq 0 ] || [ -s "/tmp/${2:-}.status" ]; then return 1; fi
        usleep 20000
    done
}

# background NAME COMMAND...: starts a program; its output is /tmp/NAME.log, its id in /tmp/NAME.pid, and once it has
# ended its exit status in /tmp/NAME.status.
background() {
    local name=$1
    shift
    rm -f "/tmp/$name.status" "/tmp/$name.log" "/tmp/$name.pid"
    (
        "$@" &
        echo $! >"/tmp/$name.pid"
        wait $!
        echo $? >"/tmp/$name.status"
    ) >"/tmp/$name.log" 2>&1 </dev/null &
    until [ -s "/tmp/$name.pid" ]; do usleep 5000; done
}

# ended NAME [SECONDS]: waits (10 s) for such a program to end, prints its output; its exit status, or 124.
ended() {
    local tries=$((${2:-10} * 50))
    until [ -s "/tmp/$1.status" ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { cat "/tmp/$1.log"; return 124; }
        usleep 20000
    done
    cat "/tmp/$1.log"
    return "$(cat "/tmp/$1.status")"
}

# end NAME: ends such a program if it runs.
end() {
    [ -s "/tmp/$1.status" ] || kill "$(cat "/tmp/$1.pid" 2>/dev/null)" 2>/dev/null || true
}

# memory NAME ADDRESS LENGTH: the bytes in such a program's memory, as it runs.
memory() {
    dd if="/proc/$(cat "/tmp/$1.pid")/mem" bs=65536 iflag=skip_bytes,count_bytes skip="$(($2))" count="$(($3))" 2>/dev/null
}
