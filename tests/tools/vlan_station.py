#!/usr/bin/python3
"""A station in a VLAN, made of scapy's packets: machines without the kernel's VLANs have it all the same.

    vlan_station.py INTERFACE VLAN OWN ping ADDRESS [SIZE]   resolves an address of the VLAN and pings it, whole; status 1 when nobody answers
    vlan_station.py INTERFACE VLAN OWN claim                 tells the VLAN that OWN is ours
"""

import ipaddress
import sys

from scapy.all import ARP, ICMP, IP, Dot1Q, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr
from scapy.all import ICMPv6ND_NA, ICMPv6ND_NS, IPv6, Raw, conf, sendp, srp1

MAC = "02:00:00:00:5a:01"
conf.verb = 0


def asked(interface, vlan, packet, fits):
    """The answer to a packet in the VLAN, with the VLAN's tag on it."""
    for _ in range(5):
        answer = srp1(packet, iface=interface, timeout=1, promisc=True)
        if answer is not None and Dot1Q in answer and answer[Dot1Q].vlan == vlan and fits(answer):
            return answer
    return None


def resolve(interface, vlan, own, address):
    head = lambda to: Ether(src=MAC, dst=to) / Dot1Q(vlan=vlan)
    if address.version == 4:
        question = head("ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=MAC, psrc=str(own), pdst=str(address))
        answer = asked(interface, vlan, question, lambda answer: ARP in answer and answer[ARP].psrc == str(address))
        return answer and answer[ARP].hwsrc
    low = address.packed[-3:]
    group = ipaddress.ip_address(bytes.fromhex("ff0200000000000000000001ff") + low)
    question = head("33:33:ff:" + ":".join(f"{byte:02x}" for byte in low)) / IPv6(src=str(own), dst=str(group), hlim=255)
    question /= ICMPv6ND_NS(tgt=str(address)) / ICMPv6NDOptSrcLLAddr(lladdr=MAC)
    answer = asked(interface, vlan, question, lambda answer: ICMPv6ND_NA in answer and answer[ICMPv6ND_NA].tgt == str(address))
    return answer and answer[ICMPv6NDOptDstLLAddr].lladdr


def ping(interface, vlan, own, address, size):
    mac = resolve(interface, vlan, own, address)
    if mac is None:
        print(f"{address} is not there in VLAN {vlan}")
        return False
    load = bytes(index % 251 for index in range(size))
    head = Ether(src=MAC, dst=mac) / Dot1Q(vlan=vlan)
    if address.version == 4:
        echo = head / IP(src=str(own), dst=str(address), flags="DF") / ICMP(id=7, seq=1) / Raw(load)
        fits = lambda answer: ICMP in answer and answer[ICMP].type == 0 and bytes(answer[ICMP].payload)[:size] == load
    else:
        echo = head / IPv6(src=str(own), dst=str(address)) / ICMPv6EchoRequest(id=7, seq=1, data=load)
        fits = lambda answer: ICMPv6EchoReply in answer and answer[ICMPv6EchoReply].data == load
    answered = asked(interface, vlan, echo, fits) is not None
    print(f"{address} at {mac} in VLAN {vlan}: {'answers' if answered else 'is silent'}")
    return answered


def main():
    interface, vlan, own, action, *rest = sys.argv[1:]
    vlan, own = int(vlan), ipaddress.ip_address(own)
    if action == "claim":
        sendp(Ether(src=MAC, dst="ff:ff:ff:ff:ff:ff") / Dot1Q(vlan=vlan) / ARP(op=1, hwsrc=MAC, psrc=str(own), pdst=str(own)), iface=interface)
        return 0
    address, size = ipaddress.ip_address(rest[0]), int(rest[1]) if len(rest) > 1 else 56
    return 0 if ping(interface, vlan, own, address, size) else 1


sys.exit(main())
