//! Every worked vector is built from its listed fields, byte for byte, iCRC included.

use crate::support::{number, valid_vectors};
use serde_json::Value;
use wire::*;

#[test]
fn vectors_encode_from_their_fields() {
    for vector in valid_vectors() {
        let fields = &vector.value["fields"];
        let template = HeaderTemplate::new(&addressing(fields)).expect("GIDs of one family");
        let payload = hex::decode(fields["payload"].as_str().expect("a payload")).expect("hex");
        let ip_id = fields["ipv4"]["id"].as_u64().unwrap_or(0) as u16;
        let mut frame = Vec::new();
        build_frame(&template, &bth(&fields["bth"]), &ext(fields), ip_id, &payload, &mut frame);
        if vector.name == "uc_send_only_scapy_test" {
            // We send no UDP checksum; this sender did. The iCRC does not cover it.
            frame[40..42].copy_from_slice(&(number(&fields["udp"]["checksum"]) as u16).to_be_bytes());
        }
        assert_eq!(hex::encode(&frame), vector.text("frame_hex"), "{}", vector.name);
    }
}

fn addressing(fields: &Value) -> Addressing {
    let text = |value: &Value| value.as_str().expect("text").to_string();
    let ip = ["ipv4", "ipv6", "grh"]
        .into_iter()
        .map(|key| &fields[key])
        .find(|ip| ip.is_object())
        .expect("an IP header");
    let traffic_class = match &ip["dscp"] {
        Value::Null => number(&ip["traffic_class"]) as u8,
        dscp => (number(dscp) << 2 | number(&ip["ecn"])) as u8,
    };
    let vlan = &fields["vlan"];
    Addressing {
        version: if fields["grh"].is_object() { RoceVersion::V1 } else { RoceVersion::V2 },
        smac: text(&fields["smac"]).parse().expect("a MAC"),
        dmac: text(&fields["dmac"]).parse().expect("a MAC"),
        vlan: vlan.is_object().then(|| Vlan::new(number(&vlan["pcp"]) as u8, number(&vlan["vid"]) as u16)),
        src: text(&ip["src"]).parse().expect("a GID"),
        dst: text(&ip["dst"]).parse().expect("a GID"),
        traffic_class,
        flow_label: ip["flow_label"].as_u64().unwrap_or(0) as u32,
        hop_limit: ip["ttl"].as_u64().or(ip["hop_limit"].as_u64()).expect("a hop limit") as u8,
        udp_sport: fields["udp"]["sport"].as_u64().unwrap_or(0) as u16,
    }
}

fn bth(fields: &Value) -> Bth {
    let bit = |key: &str| number(&fields[key]) == 1;
    Bth {
        opcode: Opcode(number(&fields["opcode"]) as u8),
        solicited: bit("se"),
        mig_req: bit("m"),
        pad_count: 0, // set by the builder
        tver: number(&fields["tver"]) as u8,
        pkey: PKey(number(&fields["pkey"]) as u16),
        fecn: bit("fecn"),
        becn: bit("becn"),
        resv6: number(&fields["resv6"]) as u8,
        dest_qpn: Qpn::new(number(&fields["dest_qp"]) as u32),
        ack_req: bit("ackreq"),
        resv7: number(&fields["resv7"]) as u8,
        psn: Psn::new(number(&fields["psn"]) as u32),
    }
}

/// Headers in wire order, as the fields name them.
fn ext(fields: &Value) -> ExtHeaders {
    let key = |value: &Value| RKey::new(number(value) as u32);
    let mut ext = ExtHeaders::EMPTY;
    if let Some(srqn) = fields.get("xrceth_xrcsrq") {
        ext = ext.with(XrcEth { srqn: number(srqn) as u32 });
    }
    if let Some(deth) = fields.get("deth") {
        let src_qpn = Qpn::new(number(&deth["src_qp"]) as u32);
        ext = ext.with(Deth { qkey: QKey::new(number(&deth["qkey"]) as u32), src_qpn });
    }
    if let Some(feth) = fields.get("feth") {
        ext = ext.with(Feth { plt: number(&feth["plt"]) as u8, sel: number(&feth["sel"]) as u8 });
    }
    if let Some(reth) = fields.get("reth") {
        let dma_len = number(&reth["dma_length"]) as u32;
        ext = ext.with(Reth { va: number(&reth["va"]), rkey: key(&reth["rkey"]), dma_len });
    }
    if let Some(atomic) = fields.get("atomiceth") {
        ext = ext.with(AtomicEth {
            va: number(&atomic["va"]),
            rkey: key(&atomic["rkey"]),
            swap_or_add: number(&atomic["swap_or_add"]),
            compare: number(&atomic["compare"]),
        });
    }
    if let Some(aeth) = fields.get("aeth") {
        let syndrome = Syndrome::from_byte(number(&aeth["syndrome"]) as u8);
        ext = ext.with(Aeth { syndrome, msn: Msn::new(number(&aeth["msn"]) as u32) });
    }
    if let Some(original) = fields.get("atomicack_original") {
        ext = ext.with(AtomicAckEth { original: number(original) });
    }
    if let Some(imm) = fields.get("immdt") {
        let mut bytes = [0; 4];
        hex::decode_to_slice(imm.as_str().expect("text"), &mut bytes).expect("hex");
        ext = ext.with(ImmDt(bytes));
    }
    if let Some(rkey) = fields.get("ieth_rkey") {
        ext = ext.with(Ieth { rkey: key(rkey) });
    }
    ext
}
