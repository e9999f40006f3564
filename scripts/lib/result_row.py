#!/usr/bin/python3
"""One line of a table out of one result of rockhopper-perf.

    result_row.py                                        the table's head
    result_row.py IP SERVICE OPERATION STATUS FILE       a row; exit status 1 unless the run ended with 0 and was verified
"""

import json
import sys

ROW = "{:<5} {:<3} {:<11} {:>7} {:>4} {:>5} {:>9} {:>9} {:>9} {:>9}  {}"


def main():
    if len(sys.argv) == 1:
        print(ROW.format("IP", "", "operation", "bytes", "QPs", "MTU", "messages", "Gb/s", "p50 us", "p99 us", "data"))
        return
    ip, service, operation, status, path = sys.argv[1:]
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    except ValueError:
        print(ROW.format(ip, service, operation, *["-"] * 7, f"FAILED: exit status {status}, no result"))
        sys.exit(1)
    verify = result["verify"]
    passed = status == "0" and result["verified"] and result["messages"] > 0 and verify["compared"] > 0
    latency = result.get("latency_us")
    told = f"{verify['compared']} messages right"
    if result["lost"]:
        told += f", {result['lost']} lost"
    if result["retransmitted_packets"]:
        told += f", {result['retransmitted_packets']} packets resent"
    if not passed:
        told = f"FAILED: exit status {status}, {verify['faults']} faults: {verify['first_fault']}"
    print(
        ROW.format(
            ip,
            service,
            operation + ("/imm" if result["imm"] and service != "UC" else ""),
            result["size_bytes"],
            result["qps"],
            result["mtu"],
            result["messages"],
            "-" if latency else f"{result['bandwidth_gbps']:.3f}",
            f"{latency['p50']:.1f}" if latency else "-",
            f"{latency['p99']:.1f}" if latency else "-",
            told,
        ),
        flush=True,
    )
    sys.exit(0 if passed else 1)


main()
