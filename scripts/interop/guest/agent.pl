#!/usr/bin/perl
# Runs shell scripts for the host. One TCP connection each: `MARK SECONDS` and a line end, the script, end of input.
# The answer is what the script prints, and `MARK STATUS` on a line of its own once it has ended; what it leaves running
# in the background has to write elsewhere.
use strict;
use warnings;
use Socket;

$SIG{CHLD} = 'IGNORE';
socket(my $listener, PF_INET, SOCK_STREAM, 0) or die "no socket: $!";
setsockopt($listener, SOL_SOCKET, SO_REUSEADDR, 1);
bind($listener, sockaddr_in(7, INADDR_ANY)) or die "cannot listen: $!";
listen($listener, 16);
my $count = 0;
while (accept(my $peer, $listener)) {
    $count++;
    if (!fork) {
        close $listener;
        serve($peer, "/tmp/script.$count");
        exit 0;
    }
    close $peer;
}

sub serve {
    my ($peer, $file) = @_;
    $SIG{CHLD} = 'DEFAULT';
    my $request = do { local $/; <$peer> };
    my ($head, $script) = split /\n/, $request, 2;
    my ($mark, $seconds) = split / /, $head;
    open(my $out, '>', $file) or die "cannot write: $!";
    print $out ". /etc/lib.sh\n$script";
    close $out;
    my $child = fork;
    if (!$child) {
        setpgrp;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>&', $peer;
        open STDERR, '>&', $peer;
        exec '/bin/sh', $file;
    }
    my $late = 0;
    $SIG{ALRM} = sub { $late = 1; kill 'KILL', -$child };
    alarm $seconds;
    waitpid $child, 0;
    my $status = $late ? 124 : $? & 127 ? 128 + ($? & 127) : $? >> 8;
    unlink $file;
    syswrite $peer, "\n$mark $status\n";
}
