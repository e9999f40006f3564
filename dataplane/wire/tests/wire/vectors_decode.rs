//! Every field of every worked vector is read as listed.

use crate::support::valid_vectors;
use serde_json::{Map, Value, json};
use wire::*;

#[test]
fn vectors_decode_to_their_fields() {
    for vector in valid_vectors() {
        let frame = vector.parse();
        assert_eq!(decoded(&vector.frame, &frame), vector.value["fields"], "{}", vector.name);
        assert_eq!(vector.value["frame_len"], vector.frame.len());
        assert_eq!(frame.end(), vector.frame.len(), "{}", vector.name);
    }
}

/// The fields of a frame as the vectors write them.
fn decoded(bytes: &[u8], frame: &Frame) -> Value {
    let mut fields = Map::new();
    let ethernet = EthernetHeader::parse(bytes).expect("an Ethernet header");
    assert_eq!((frame.dmac, frame.smac, frame.vlan), (ethernet.dmac, ethernet.smac, ethernet.vlan));
    fields.insert("dmac".into(), frame.dmac.to_string().into());
    fields.insert("smac".into(), frame.smac.to_string().into());
    fields.insert("ethertype".into(), format!("{:#06x}", ethernet.ethertype).into());
    if let Some(vlan) = frame.vlan {
        let vlan = json!({"pcp": vlan.pcp, "dei": u8::from(vlan.dei), "vid": vlan.vid});
        fields.insert("vlan".into(), vlan);
    }
    network(bytes, frame, &mut fields);
    if frame.network != Network::V1 {
        let at = frame.bth_offset() - UdpHeader::LEN;
        let udp = UdpHeader::from_bytes(bytes[at..].first_chunk().expect("a UDP header"));
        assert_eq!((frame.udp_sport, frame.udp_checksum), (udp.sport, udp.checksum));
        let checksum = format!("{:#06x}", udp.checksum);
        fields.insert(
            "udp".into(),
            json!({"sport": udp.sport, "dport": udp.dport, "length": udp.len, "checksum": checksum}),
        );
    }
    fields.insert("bth".into(), bth(&frame.bth()));
    ext(bytes, frame, &mut fields);
    let payload = &bytes[frame.payload_offset()..][..frame.payload_len()];
    fields.insert("payload_len".into(), payload.len().into());
    fields.insert("payload".into(), hex::encode(payload).into());
    Value::Object(fields)
}

fn network(bytes: &[u8], frame: &Frame, fields: &mut Map<String, Value>) {
    let header = frame.network_header(bytes);
    if frame.network == Network::V4 {
        let ip = Ipv4Header::from_bytes(header.first_chunk().expect("an IPv4 header"));
        assert_eq!((frame.traffic_class, frame.hop_limit), (ip.tos, ip.ttl));
        assert_eq!((ip.mf, ip.fragment_offset), (false, 0));
        let ip = json!({
            "ihl": header[0] & 15, "dscp": frame.dscp(), "ecn": frame.ecn(), "total_length": ip.total_len, "id": ip.id,
            "df": u8::from(ip.df), "ttl": frame.hop_limit, "proto": ip.protocol,
            "header_checksum": format!("{:#06x}", ip.checksum),
            "src": frame.src.ip().to_string(), "dst": frame.dst.ip().to_string(),
        });
        fields.insert("ipv4".into(), ip);
        return;
    }
    let ip = Ipv6Header::from_bytes(header.first_chunk().expect("an IPv6 header"));
    let name = if frame.network == Network::V1 { "grh" } else { "ipv6" };
    let ip = json!({
        "traffic_class": frame.traffic_class, "flow_label": frame.flow_label, "payload_length": ip.payload_len,
        "next_header": ip.next_header, "hop_limit": frame.hop_limit,
        "src": frame.src.ip().to_string(), "dst": frame.dst.ip().to_string(),
    });
    fields.insert(name.into(), ip);
}

fn bth(bth: &Bth) -> Value {
    json!({
        "opcode": format!("{:#04x}", bth.opcode.0), "se": u8::from(bth.solicited), "m": u8::from(bth.mig_req),
        "padcnt": bth.pad_count, "tver": bth.tver, "pkey": bth.pkey.to_string(), "fecn": u8::from(bth.fecn),
        "becn": u8::from(bth.becn), "resv6": bth.resv6, "dest_qp": bth.dest_qpn.value(),
        "ackreq": u8::from(bth.ack_req), "resv7": bth.resv7, "psn": bth.psn.value(),
    })
}

fn ext(bytes: &[u8], frame: &Frame, fields: &mut Map<String, Value>) {
    let long = |value: u64| format!("{value:#018x}");
    let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
    if let Some(xrc) = frame.ext::<XrcEth>(bytes) {
        put("xrceth_xrcsrq", xrc.srqn.into());
    }
    if let Some(deth) = frame.ext::<Deth>(bytes) {
        put("deth", json!({"qkey": deth.qkey.to_string(), "src_qp": deth.src_qpn.value()}));
    }
    if let Some(feth) = frame.ext::<Feth>(bytes) {
        put("feth", json!({"plt": feth.plt, "sel": feth.sel}));
    }
    if let Some(reth) = frame.ext::<Reth>(bytes) {
        put("reth", json!({"va": long(reth.va), "rkey": reth.rkey.to_string(), "dma_length": reth.dma_len}));
    }
    if let Some(atomic) = frame.ext::<AtomicEth>(bytes) {
        let (swap, compare) = (long(atomic.swap_or_add), long(atomic.compare));
        let (va, rkey) = (long(atomic.va), atomic.rkey.to_string());
        put("atomiceth", json!({"va": va, "rkey": rkey, "swap_or_add": swap, "compare": compare}));
    }
    if let Some(aeth) = frame.ext::<Aeth>(bytes) {
        let syndrome = format!("{:#04x}", aeth.syndrome.to_byte());
        put("aeth", json!({"syndrome": syndrome, "msn": aeth.msn.value()}));
    }
    if let Some(ack) = frame.ext::<AtomicAckEth>(bytes) {
        put("atomicack_original", long(ack.original).into());
    }
    if let Some(imm) = frame.ext::<ImmDt>(bytes) {
        put("immdt", hex::encode(imm.0).into());
    }
    if let Some(ieth) = frame.ext::<Ieth>(bytes) {
        put("ieth_rkey", ieth.rkey.to_string().into());
    }
}
