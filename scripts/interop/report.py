"""The table of what passed, as Markdown."""
from pathlib import Path

import cm
from guest import versions
from rows import PATH_MTU

BEGIN, END = "<!-- written by make interop -->", "<!-- end of what make interop wrote -->"


def size_of(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def seen(results):
    """Where the data of these rows was compared."""
    here, there = any(r["here"] for r in results), any(r["there"] for r in results)
    return " and ".join(words for words, is_so in (("here", here), ("at the peer", there)) if is_so) or "-"


def count(results):
    passed = sum(result["ok"] for result in results)
    return f"{passed}/{len(results)}" if results else "-"


def seconds_of(results):
    return f"{sum(result['seconds'] for result in results):.0f}"


def group(results, key):
    groups = {}
    for result in results:
        groups.setdefault(key(result["row"]), []).append(result)
    return groups


def clean_table(results):
    columns = [(v6, mtu) for mtu in (1500, 9000) for v6 in (False, True)]
    lines = ["| Linux program | service | Rockhopper is | sizes | QPs | IPv4, MTU 1024 | IPv6, MTU 1024 | IPv4, MTU 4096 | IPv6, MTU 4096 | data compared | seconds |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for (program, service, role), some in group(results, lambda row: (row.program, row.service, row.role)).items():
        sizes = ", ".join(size_of(size) for size in sorted({result["row"].size for result in some}))
        qps = ", ".join(str(qps) for qps in sorted({result["row"].qps for result in some}))
        cells = [count([r for r in some if (r["row"].v6, r["row"].mtu) == column]) for column in columns]
        lines.append(f"| `{program}` | {service} | {role} | {sizes} | {qps} | {' | '.join(cells)} | {seen(some)} | {seconds_of(some)} |")
    return lines


def cm_table(results):
    overs = list(dict.fromkeys(result["row"].over for result in results))
    lines = [f"| Linux program | Rockhopper is | MTU | {' | '.join(overs)} | counted here | seconds |", "| --- | --- | --- |" + " --- |" * (len(overs) + 2)]
    for (program, role, mtu), some in group(results, lambda row: (row.program, row.role, row.mtu)).items():
        cells = [count([r for r in some if r["row"].over == over]) for over in overs]
        lines.append(f"| `{program}` | {role} | {PATH_MTU[mtu]} | {' | '.join(cells)} | {sum(r['here'] for r in some)} | {seconds_of(some)} |")
    return lines


def impaired_table(results):
    lines = ["| impairment of our port | program | as client, MTU | as server, MTU | seen of it here | seen at the peer | seconds |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for (plan, program), some in group(results, lambda row: (row.impair, row.program)).items():
        roles = []
        for role in ("client", "server"):
            those = [r for r in some if r["row"].role == role]
            mtus = ", ".join(str(mtu) for mtu in sorted({r["row"].path_mtu for r in those}))
            roles.append(f"{count(those)}, {mtus}" if those else "-")
        here, there = (sum(result.get("noticed", (0, 0))[end] for result in some) for end in (0, 1))
        lines.append(f"| `{plan}` | `{program}` | {' | '.join(roles)} | {here} | {there} | {seconds_of(some)} |")
    return lines


def table(results, specials, seconds, short):
    made_of = ", ".join(f"{name} {version}" for name, version in versions().items())
    over_cm = [result for result in results if isinstance(result["row"], cm.Row)]
    clean = [result for result in results if not result["row"].impair and result not in over_cm]
    impaired = [result for result in results if result["row"].impair]
    passed = sum(result["ok"] for result in results + specials)
    form = "The short form: " if short else ""
    repeated = sum(result["again"] > 0 for result in results)
    starved = f" {repeated} of them ran again because the guest had got no processor for a second or more." if repeated else ""
    lines = [f"{form}{passed} of {len(results) + len(specials)} rows passed, in {seconds / 60:.0f} minutes.{starved}", "", f"The peer: {made_of}.", ""]
    lines += clean_table(clean)
    if over_cm:
        lines += ["", "Over rdma_cm: connections, and datagram services found by SIDR. Counted are rounds of rping and messages of the others, and where there",
                  "are none, connections: a server of datagrams knows of neither.", "", *cm_table(over_cm)]
    if impaired:
        lines += ["", "Over IPv4 with MTU 1024, over IPv6 with 4096. Seen here: packets that came again, too early or too late, or were sent again, and timeouts. Seen at",
                  "the peer: rxe's counters `duplicate_request`, `out_of_seq_request`, `rcvd_seq_err` and `completer_retry_err`.",
                  "", *impaired_table(impaired)]
    if specials:
        lines += ["", "| event in the midst of a transfer | what has to happen | |", "| --- | --- | --- |"]
        lines += [f"| {s['event']} | {s['wanted']} | {'passed' if s['ok'] else 'FAILED: ' + s['why']} |" for s in specials]
    failures = [result for result in results if not result["ok"]]
    if failures:
        lines += ["", "Failed:", ""] + [f"- {result['row'].name()}: {result['why']}" for result in failures]
    return "\n".join(lines)


def write(path, text):
    """Puts the table between the markers of a document."""
    document = Path(path).read_text()
    before, rest = document.split(BEGIN)
    after = rest.split(END)[1]
    Path(path).write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
