#!/usr/bin/python3
"""Writes vectors.rs: frames for the tests, built by scapy so that no golden byte comes from our own encoder.

    /usr/bin/python3 vectors.py > vectors.rs   (the system Python, which has the distribution's scapy)
"""
from scapy.all import ARP, Dot1Q, Ether, ICMP, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS
from scapy.all import ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig, IP, IPv6, IPv6ExtHdrFragment, Raw, TCP, UDP

US, PEER, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"
ALL, ALL6 = "ff:ff:ff:ff:ff:ff", "33:33:00:00:00:01"
US4, PEER4 = "192.0.2.1", "192.0.2.2"
US6, PEER6, LL6 = "2001:db8::1", "2001:db8::2", "fe80::ff:fe00:1"
NONE = "00:00:00:00:00:00"
DATA = bytes(range(56))


def arp(src, dst, op, sender, target, tag=None):
    ether = Ether(src=src, dst=dst)
    if tag:
        ether = ether / tag
    return ether / ARP(op=op, hwsrc=sender[0], psrc=sender[1], hwdst=target[0], pdst=target[1])


def nd(src, dst, ipsrc, ipdst, message, tag=None, hlim=255):
    ether = Ether(src=src, dst=dst)
    if tag:
        ether = ether / tag
    return ether / IPv6(src=ipsrc, dst=ipdst, hlim=hlim) / message


def ns(target, mac=None):
    message = ICMPv6ND_NS(tgt=target)
    return message / ICMPv6NDOptSrcLLAddr(lladdr=mac) if mac else message


def na(target, mac, solicited, override=1):
    message = ICMPv6ND_NA(tgt=target, R=0, S=solicited, O=override)
    return message / ICMPv6NDOptDstLLAddr(lladdr=mac) if mac else message


GROUP_US, GROUP_US_MAC = "ff02::1:ff00:1", "33:33:ff:00:00:01"
GROUP_PEER, GROUP_PEER_MAC = "ff02::1:ff00:2", "33:33:ff:00:00:02"
TAG = Dot1Q(vlan=100, prio=5)
ping4 = IP(src=PEER4, dst=US4, id=7, ttl=60, tos=0x28)
pong4 = IP(src=US4, dst=PEER4, id=0, ttl=64, flags="DF", tos=0x28)
in4, out4 = Ether(src=PEER, dst=US), Ether(src=US, dst=PEER)
ping6 = IPv6(src=PEER6, dst=US6, hlim=61, tc=0x28)
pong6 = IPv6(src=US6, dst=PEER6, hlim=64, tc=0x28)



# What a router quotes of a RoCEv2 packet of ours to QP 0x12: 20 or 40 bytes of IP, 8 of UDP, perhaps some of the BTH.
ROUTER4, ROUTER6 = "192.0.2.254", "2001:db8::fe"
BTH = bytes.fromhex("04 40 ff ff 00 00 00 12 80 00 00 01")


def quoted(ip, transport=UDP(sport=0xC123, dport=4791, chksum=0), keep=40):
    return Raw(bytes(ip / transport / Raw(BTH + bytes(1500 - 20 - 8 - 12)))[:keep])


def too_big4(quote, mtu=1400, code=4, src=ROUTER4, dst=US4):
    return Ether(src=OTHER, dst=US) / IP(src=src, dst=dst) / ICMP(type=3, code=code, nexthopmtu=mtu) / quote


def too_big6(quote, mtu=1400, dst=US6):
    return Ether(src=OTHER, dst=US) / IPv6(src=ROUTER6, dst=dst) / ICMPv6PacketTooBig(mtu=mtu) / quote


sent4, sent6 = IP(src=US4, dst=PEER4, flags="DF", ttl=63), IPv6(src=US6, dst=PEER6, nh=17, hlim=63)

FRAMES = {
    "ARP_REQUEST": arp(PEER, ALL, 1, (PEER, PEER4), (NONE, US4)),
    "ARP_REPLY": arp(US, PEER, 2, (US, US4), (PEER, PEER4)),
    "ARP_PROBE": arp(PEER, ALL, 1, (PEER, "0.0.0.0"), (NONE, US4)),
    "ARP_PROBE_REPLY": arp(US, PEER, 2, (US, US4), (PEER, "0.0.0.0")),
    "ARP_OTHERS": arp(PEER, ALL, 1, (PEER, PEER4), (NONE, "192.0.2.9")),
    "ARP_OFF_LINK": arp(PEER, ALL, 1, (PEER, "198.51.100.7"), (NONE, US4)),
    "ARP_ANNOUNCE": arp(US, ALL, 1, (US, US4), (NONE, US4)),
    "ARP_ASK": arp(US, ALL, 1, (US, US4), (NONE, PEER4)),
    "ARP_ASK_UNICAST": arp(US, PEER, 1, (US, US4), (NONE, PEER4)),
    "ARP_ANSWER": arp(PEER, US, 2, (PEER, PEER4), (US, US4)),
    "ARP_WITH_OUR_MAC": arp(PEER, ALL, 1, (US, PEER4), (NONE, US4)),
    "ARP_ANSWER_WITH_OUR_MAC": arp(PEER, US, 2, (US, PEER4), (US, US4)),
    "ARP_MOVED": arp(OTHER, ALL, 1, (OTHER, PEER4), (NONE, PEER4)),
    "ARP_CONFLICT": arp(OTHER, ALL, 1, (OTHER, US4), (NONE, US4)),
    "ARP_REQUEST_TAGGED": arp(PEER, ALL, 1, (PEER, PEER4), (NONE, US4), TAG),
    "ARP_REPLY_TAGGED": arp(US, PEER, 2, (US, US4), (PEER, PEER4), TAG),
    "ARP_ASK_TAGGED": arp(US, ALL, 1, (US, US4), (NONE, PEER4), Dot1Q(vlan=100)),
    "ARP_REQUEST_PRIORITY": arp(PEER, ALL, 1, (PEER, PEER4), (NONE, US4), Dot1Q(vlan=0, prio=5)),
    "ARP_REPLY_PRIORITY": arp(US, PEER, 2, (US, US4), (PEER, PEER4), Dot1Q(vlan=0, prio=5)),
    "NS": nd(PEER, GROUP_US_MAC, PEER6, GROUP_US, ns(US6, PEER)),
    "NA": nd(US, PEER, US6, PEER6, na(US6, US, 1)),
    "NS_WITH_OUR_MAC": nd(PEER, GROUP_US_MAC, PEER6, GROUP_US, ns(US6, US)),
    "NA_WITH_OUR_MAC": nd(PEER, US, PEER6, US6, na(PEER6, US, 1)),
    "NS_BARE": nd(PEER, US, PEER6, US6, ns(US6)),
    "NS_DAD": nd(PEER, GROUP_US_MAC, "::", GROUP_US, ns(US6)),
    "NA_DAD": nd(US, ALL6, US6, "ff02::1", na(US6, US, 0)),
    "NS_ASK": nd(US, GROUP_PEER_MAC, US6, GROUP_PEER, ns(PEER6, US)),
    "NS_ASK_UNICAST": nd(US, PEER, US6, PEER6, ns(PEER6, US)),
    "NA_ANSWER": nd(PEER, US, PEER6, US6, na(PEER6, PEER, 1)),
    "NA_ANSWER_BARE": nd(PEER, US, PEER6, US6, na(PEER6, None, 1)),
    "NA_MOVED": nd(OTHER, ALL6, PEER6, "ff02::1", na(PEER6, OTHER, 0)),
    "NA_MOVED_POLITELY": nd(OTHER, ALL6, PEER6, "ff02::1", na(PEER6, OTHER, 0, override=0)),
    "NA_CONFLICT": nd(OTHER, ALL6, US6, "ff02::1", na(US6, OTHER, 0)),
    "NA_ANNOUNCE": nd(US, ALL6, US6, "ff02::1", na(US6, US, 0)),
    "NA_ANNOUNCE_LINK_LOCAL": nd(US, ALL6, LL6, "ff02::1", na(LL6, US, 0)),
    "NS_FROM_AFAR": nd(PEER, GROUP_US_MAC, PEER6, GROUP_US, ns(US6, PEER), hlim=254),
    "NS_DAD_WITH_MAC": nd(PEER, GROUP_US_MAC, "::", GROUP_US, ns(US6, PEER)),
    "NS_DAD_UNICAST": nd(PEER, US, "::", US6, ns(US6)),
    "NS_FOR_GROUP": nd(PEER, GROUP_US_MAC, PEER6, GROUP_US, ns("ff02::1", PEER)),
    "NS_OPTION_OF_NO_LENGTH": nd(PEER, GROUP_US_MAC, PEER6, GROUP_US, ns(US6) / Raw(b"\x01\x00" + b"\x02" * 6)),
    "NS_OPTION_TOO_LONG": nd(PEER, GROUP_US_MAC, PEER6, GROUP_US, ns(US6) / Raw(b"\x01\x02" + b"\x02" * 6)),
    "NS_CODE": nd(PEER, GROUP_US_MAC, PEER6, GROUP_US, ICMPv6ND_NS(code=1, tgt=US6)),
    "NA_TO_ALL_BUT_SOLICITED": nd(OTHER, ALL6, PEER6, "ff02::1", na(PEER6, OTHER, 1)),
    "PING4": in4 / ping4 / ICMP(id=0x1234, seq=3) / Raw(DATA),
    "PONG4": out4 / pong4 / ICMP(type=0, id=0x1234, seq=3) / Raw(DATA),
    "PING4_FRAGMENT": in4 / IP(src=PEER4, dst=US4, flags="MF") / ICMP(id=0x1234, seq=3) / Raw(DATA),
    "PING4_SHORT_HEADER": in4 / IP(src=PEER4, dst=US4, ihl=4) / ICMP(id=1, seq=3),
    "PING4_FROM_US": in4 / IP(src=US4, dst=US4) / ICMP(id=1, seq=3),
    "PING4_FROM_BROADCAST": in4 / IP(src="192.0.2.255", dst=US4) / ICMP(id=1, seq=3),
    "PING4_TO_BROADCAST": Ether(src=PEER, dst=ALL) / IP(src=PEER4, dst="192.0.2.255") / ICMP(id=1, seq=3),
    "PING6": in4 / ping6 / ICMPv6EchoRequest(id=0x1234, seq=3, data=DATA),
    "PONG6": out4 / pong6 / ICMPv6EchoReply(id=0x1234, seq=3, data=DATA),
    "PING6_FRAGMENT": in4 / ping6 / IPv6ExtHdrFragment(m=1) / ICMPv6EchoRequest(id=1, seq=3, data=DATA),
    "PING6_TAGGED": in4 / TAG / ping6 / ICMPv6EchoRequest(id=0x1234, seq=3, data=DATA),
    "PONG6_TAGGED": out4 / TAG / pong6 / ICMPv6EchoReply(id=0x1234, seq=3, data=DATA),
    "PING6_ALL_NODES": Ether(src=PEER, dst=ALL6) / IPv6(src=PEER6, dst="ff02::1") / ICMPv6EchoRequest(id=1, seq=2),
    "PONG6_LINK_LOCAL": out4 / IPv6(src=LL6, dst=PEER6, hlim=64) / ICMPv6EchoReply(id=1, seq=2),
    "PING4_1500": in4 / IP(src=PEER4, dst=US4) / ICMP(id=1, seq=1) / Raw(bytes(1472)),
    "PING4_1501": in4 / IP(src=PEER4, dst=US4) / ICMP(id=1, seq=1) / Raw(bytes(1473)),
    "PING6_1500": in4 / IPv6(src=PEER6, dst=US6) / ICMPv6EchoRequest(id=1, seq=1, data=bytes(1452)),
    "PING6_1501": in4 / IPv6(src=PEER6, dst=US6) / ICMPv6EchoRequest(id=1, seq=1, data=bytes(1453)),
    "TOO_BIG4": too_big4(quoted(sent4)),
    "TOO_BIG4_SHORT": too_big4(quoted(sent4, keep=28)),
    "TOO_BIG4_UNSAID": too_big4(quoted(sent4), mtu=0, src="192.0.2.253"),
    "TOO_BIG6": too_big6(quoted(sent6, keep=60)),
    "TOO_BIG6_FROM_LL": too_big6(quoted(IPv6(src=LL6, dst=PEER6, nh=17), keep=60), dst=LL6),
    "TOO_BIG4_OF_OTHERS": too_big4(quoted(IP(src=PEER4, dst=PEER4, flags="DF"))),
    "TOO_BIG4_TO_OTHERS": too_big4(quoted(sent4), dst="192.0.2.3"),
    "TOO_BIG4_TO_NOWHERE": too_big4(quoted(IP(src=US4, dst="198.51.100.7", flags="DF"))),
    "TOO_BIG4_MAY_FRAGMENT": too_big4(quoted(IP(src=US4, dst=PEER4))),
    "TOO_BIG4_TCP": too_big4(quoted(sent4, TCP(sport=0xC123, dport=4791))),
    "TOO_BIG4_OPTIONS": too_big4(Raw(b"\x46" + bytes(quoted(sent4))[1:])),
    "TOO_BIG4_OTHER_PORT": too_big4(quoted(sent4, UDP(sport=0xC123, dport=4790, chksum=0))),
    "TOO_BIG4_CUT": too_big4(quoted(sent4, keep=23)),
    "TOO_BIG4_FITS": too_big4(quoted(sent4), mtu=1500),
    "TOO_BIG4_TINY": too_big4(quoted(sent4), mtu=67),
    "TOO_BIG4_FROM_US": too_big4(quoted(sent4), src=US4),
    "TOO_BIG6_TINY": too_big6(quoted(sent6, keep=60), mtu=1279),
    "TOO_BIG4_FROM_NO_HOST": too_big4(quoted(sent4), src="127.0.0.1"),
    "TOO_BIG6_UNSAID": too_big6(quoted(sent6, keep=60), mtu=0),
    "TOO_BIG6_OTHER_VERSION": too_big6(Raw(b"\x40" + bytes(quoted(sent6, keep=60))[1:])),
    "TOO_BIG6_TCP": too_big6(quoted(IPv6(src=US6, dst=PEER6, nh=6), keep=60)),
    "TOO_BIG6_OF_OTHERS": too_big6(quoted(IPv6(src=PEER6, dst=US6, nh=17), keep=60)),
    "TOO_BIG6_OTHER_PORT": too_big6(quoted(sent6, UDP(sport=0xC123, dport=4790), keep=60)),
    "UNREACHABLE4": too_big4(quoted(sent4), code=1),
}

print("//! Frames built by scapy: written by vectors.py, not by hand.\n\nuse super::Frame;\n")
for name, frame in FRAMES.items():
    raw = bytes(frame)
    # A long run of zeros is kept short: echo data.
    body = raw.rstrip(b"\0")
    zeros = len(raw) - len(body) if len(raw) > 1000 else 0
    text = raw[: len(raw) - zeros].hex()
    print(f"pub const {name}: Frame = Frame(\"{text}\", {zeros});")
