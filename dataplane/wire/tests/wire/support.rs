//! The worked vectors, and a packet of every kind to bend.

use serde_json::Value;
use std::sync::LazyLock;
use wire::*;

static FILE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/wire-vectors.json")).expect("the vectors are JSON")
});

/// One worked vector.
pub struct Vector {
    pub name: &'static str,
    pub frame: Vec<u8>,
    pub value: &'static Value,
}

impl Vector {
    /// Text of a field of the vector itself, empty when it has none.
    pub fn text(&self, key: &str) -> &'static str {
        self.value[key].as_str().unwrap_or_default()
    }

    pub fn parse(&self) -> Frame {
        Frame::parse(&self.frame, self.frame.len()).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

fn vectors(list: &'static str) -> impl Iterator<Item = Vector> {
    FILE[list].as_array().expect("a list").iter().map(|value| Vector {
        name: value["name"].as_str().expect("a name"),
        frame: hex::decode(value["frame_hex"].as_str().expect("a frame")).expect("hex"),
        value,
    })
}

/// Vectors that must be taken.
pub fn valid_vectors() -> Vec<Vector> {
    let valid: Vec<_> = vectors("vectors").filter(|vector| vector.value["valid"] == true).collect();
    assert_eq!(valid.len(), 50);
    valid
}

/// A vector by its name, valid or not.
pub fn vector(name: &str) -> Vector {
    vectors("vectors")
        .chain(vectors("other_frames"))
        .find(|vector| vector.name == name)
        .expect("a vector of that name")
}

/// A number written as one, or as "0x…".
pub fn number(value: &Value) -> u64 {
    match value {
        Value::String(text) => {
            u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal number")
        }
        other => other.as_u64().expect("a number"),
    }
}

/// An address pair over IPv4.
pub fn addressing_v4() -> Addressing {
    Addressing {
        version: RoceVersion::V2,
        smac: Mac([2, 0, 0, 0, 0, 0x0A]),
        dmac: Mac([2, 0, 0, 0, 0, 0x0B]),
        vlan: None,
        src: Gid::from_v4([192, 0, 2, 10]),
        dst: Gid::from_v4([192, 0, 2, 20]),
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        udp_sport: 0xC123,
    }
}

/// An address pair over IPv6.
pub fn addressing_v6() -> Addressing {
    let gid = |text: &str| text.parse().expect("a GID");
    Addressing { src: gid("2001:db8::a"), dst: gid("2001:db8::b"), flow_label: 0x12345, ..addressing_v4() }
}

/// One per network, with and without tag.
pub fn addressings() -> Vec<Addressing> {
    let v1 = Addressing { version: RoceVersion::V1, ..addressing_v6() };
    let tagged = |plain: Addressing| Addressing { vlan: Some(Vlan::new(3, 100)), ..plain };
    let plain = [addressing_v4(), addressing_v6(), v1];
    plain.into_iter().chain(plain.map(tagged)).collect()
}

/// Extension headers of the right length for an opcode, with bytes that count up.
pub fn ext_for(info: &OpcodeInfo) -> ExtHeaders {
    (0..info.ext_len() / 4).fold(ExtHeaders::EMPTY, |ext, i| ext.with(ImmDt([i as u8, 1, 2, 3])))
}

/// A whole frame with an opcode.
pub fn frame_with(addressing: &Addressing, info: &OpcodeInfo, payload: &[u8]) -> Vec<u8> {
    let template = HeaderTemplate::new(addressing).expect("GIDs of one family");
    let bth = Bth::new(info.opcode, Qpn::new(0x123), Psn::new(0x104));
    let mut frame = Vec::new();
    build_frame(&template, &bth, &ext_for(info), 7, payload, &mut frame);
    frame
}
