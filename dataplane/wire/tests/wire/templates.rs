//! Header templates against headers built field by field.

use crate::support::{addressing_v4, addressing_v6, addressings};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::*;

/// The headers of a packet, the plain way.
fn plain(a: &Addressing, ip_id: u16, transport_len: usize) -> Vec<u8> {
    let network = a.network().expect("GIDs of one family");
    let ethertype = match network {
        Network::V4 => 0x0800,
        Network::V6 => 0x86DD,
        Network::V1 => 0x8915,
    };
    let mut bytes = vec![0; 18];
    let ethernet = EthernetHeader { dmac: a.dmac, smac: a.smac, vlan: a.vlan, ethertype };
    let len = ethernet.emit(&mut bytes).expect("room");
    bytes.truncate(len);
    let udp = UdpHeader { sport: a.udp_sport, dport: 4791, len: transport_len as u16 + 8, checksum: 0 };
    if network == Network::V4 {
        let last = |gid: Gid| Ipv4Addr::new(gid.0[12], gid.0[13], gid.0[14], gid.0[15]);
        let mut ip = Ipv4Header {
            tos: a.traffic_class,
            total_len: transport_len as u16 + 28,
            id: ip_id,
            df: true,
            mf: false,
            fragment_offset: 0,
            ttl: a.hop_limit,
            protocol: 17,
            checksum: 0,
            src: last(a.src),
            dst: last(a.dst),
        };
        let sum: u32 = ip.to_bytes().chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        let sum = (sum & 0xFFFF) + (sum >> 16);
        ip.checksum = !(((sum & 0xFFFF) + (sum >> 16)) as u16);
        bytes.extend(ip.to_bytes());
    } else {
        let v1 = network == Network::V1;
        let ip = Ipv6Header {
            traffic_class: a.traffic_class,
            flow_label: a.flow_label,
            payload_len: transport_len as u16 + if v1 { 0 } else { 8 },
            next_header: if v1 { 0x1B } else { 17 },
            hop_limit: a.hop_limit,
            src: Ipv6Addr::from(a.src.0),
            dst: Ipv6Addr::from(a.dst.0),
        };
        bytes.extend(ip.to_bytes());
    }
    if network != Network::V1 {
        bytes.extend(udp.to_bytes());
    }
    bytes
}

fn addressing() -> impl Strategy<Value = Addressing> {
    let fields = (any::<[u8; 12]>(), any::<[u8; 32]>(), any::<u8>(), any::<u32>(), any::<u8>(), any::<u16>());
    (0..6usize, fields).prop_map(|(which, (macs, gids, traffic_class, flow_label, hop_limit, udp_sport))| {
        let base = addressings()[which];
        let gid = |old: Gid, bytes: &[u8]| {
            // Keep what makes it IPv4 or IPv6, vary the rest.
            let mut gid = old.0;
            gid[12..].copy_from_slice(&bytes[12..16]);
            Gid(gid)
        };
        let mac = |at: usize| Mac(*macs[at..].first_chunk().expect("six bytes"));
        let (src, dst) = (gid(base.src, &gids[..16]), gid(base.dst, &gids[16..]));
        Addressing {
            smac: mac(0),
            dmac: mac(6),
            src,
            dst,
            traffic_class,
            flow_label,
            hop_limit,
            udp_sport,
            ..base
        }
    })
}

proptest! {
    #[test]
    fn templates_write_what_the_plain_way_does(a in addressing(), ip_id: u16, transport_len in 16..9000usize) {
        let template = HeaderTemplate::new(&a).expect("GIDs of one family");
        let expected = plain(&a, ip_id, transport_len);
        prop_assert_eq!(template.len(), expected.len());
        let mut exact = vec![0xEE; template.len()];
        prop_assert_eq!(template.emit(&mut exact, ip_id, transport_len), expected.len());
        prop_assert_eq!(hex::encode(&exact), hex::encode(&expected));
        let mut roomy = vec![0xEE; 200];
        template.emit(&mut roomy, ip_id, transport_len);
        prop_assert_eq!(&roomy[..expected.len()], &expected[..]);
        prop_assert!(roomy[HeaderTemplate::MAX_LEN..].iter().all(|&byte| byte == 0xEE));
    }

    /// The CRC put together from tables is the CRC of the bytes.
    #[test]
    fn the_icrc_of_a_template_is_that_of_its_bytes(a in addressing(), ip_id: u16, transport_len in 16..9000usize) {
        let template = HeaderTemplate::new(&a).expect("GIDs of one family");
        let mut bytes = vec![0; template.len()];
        template.emit(&mut bytes, ip_id, transport_len);
        let l3 = if a.vlan.is_some() { 18 } else { 14 };
        mask_headers(template.network(), &mut bytes[l3..]);
        let expected = crc32fast::hash(&[&[0xFF; 8], &bytes[l3..template.len()]].concat());
        prop_assert_eq!(template.icrc(ip_id, transport_len).value(), expected);
    }

    /// The headers of a run are those that each of its packets has by itself, and so is the iCRC; nothing is written behind their room.
    #[test]
    fn a_run_has_the_headers_of_its_packets(
        a in addressing(), is_write: bool, first: u32, len in 0..400usize, ip_id: u16, each: [(u32, u64, bool); 3], flags: u8,
    ) {
        let template = HeaderTemplate::new(&a).expect("GIDs of one family");
        let operation = if is_write { Operation::Write } else { Operation::Send };
        let opcode = Opcode::of(Service::Rc, operation, Position::Only).expect("RC has both");
        let own = Bth { ack_req: flags & 1 != 0, solicited: flags & 2 != 0, becn: flags & 4 != 0, resv7: flags >> 3,
            pad_count: Bth::pad_for(len), ..Bth::new(opcode, Qpn::new(first), Psn::new(first)) };
        let reth = is_write.then_some(Reth { va: 9, rkey: RKey::new(first), dma_len: len as u32 });
        let run = HeaderRun::new(&template, &own.to_bytes(), reth, ip_id, len);
        for (psn, va, ack_req) in each {
            let psn = Psn::new(psn & 0xFF_FFFF);
            let bth = Bth { psn, ack_req, ..own };
            prop_assert_eq!(Bth::with_last(own.to_bytes(), ack_req, psn), bth.to_bytes());
            let ext = reth.map_or(ExtHeaders::EMPTY, |reth| ExtHeaders::EMPTY.with(Reth { va, ..reth }));
            let mut expected = vec![0; MAX_HEADERS_LEN];
            let headers = write_headers(&template, &bth.to_bytes(), &ext, ip_id, len, &mut expected);
            let mut room = [0xEE; HeaderRun::ROOM];
            run.write((ack_req, psn), va, &mut room);
            prop_assert_eq!((run.len(), run.bth_offset(), run.icrc()), (headers.len, headers.bth_offset, headers.icrc));
            prop_assert_eq!(hex::encode(&room[..headers.len]), hex::encode(&expected[..headers.len]));
            let mut summed = headers.icrc;
            summed.update(&expected[headers.bth_offset..headers.len]);
            let mut again = [0xEE; HeaderRun::ROOM];
            prop_assert_eq!(run.write_summed((ack_req, psn), va, &mut again), summed);
            prop_assert_eq!(room, again);
            let mut again = [0xEE; HeaderRun::ROOM];
            let lead = run.write_leading((ack_req, psn), va, &mut again);
            prop_assert_eq!((room, lead.state()), (again, summed.value()));
        }
    }

    /// A template with another source port is the one that is made with it, CRC included.
    #[test]
    fn the_source_port_can_be_changed(a in addressing(), sport: u16) {
        let changed = HeaderTemplate::new(&a).expect("GIDs of one family").with_udp_sport(sport);
        let made = HeaderTemplate::new(&Addressing { udp_sport: sport, ..a }).expect("GIDs of one family");
        let v1 = a.version == RoceVersion::V1;
        prop_assert_eq!(changed.udp_sport(), if v1 { 0 } else { sport });
        let (mut one, mut other) = (vec![0; changed.len()], vec![0; made.len()]);
        changed.emit(&mut one, 1, 100);
        made.emit(&mut other, 1, 100);
        prop_assert_eq!(one, other);
        prop_assert_eq!(changed.icrc(1, 100).value(), made.icrc(1, 100).value());
        prop_assert_eq!(changed.dst(), a.dst);
    }
}

#[test]
fn the_macs_tell_how_far_packets_go() {
    let a = addressing_v4();
    let reach = |a: Addressing| (a.reach(), HeaderTemplate::new(&a).expect("one family").reach());
    assert_eq!(reach(a), (Reach::Wire, Reach::Wire));
    assert_eq!(reach(Addressing { dmac: a.smac, ..a }), (Reach::Own, Reach::Own));
    let group = Addressing { dmac: Mac([0x01, 0, 0x5E, 1, 2, 3]), ..a };
    assert_eq!(reach(group), (Reach::Group, Reach::Group));
}

#[test]
fn the_gids_decide_the_network() {
    assert_eq!(addressing_v4().network(), Ok(Network::V4));
    assert_eq!(addressing_v6().network(), Ok(Network::V6));
    assert_eq!(Addressing { version: RoceVersion::V1, ..addressing_v4() }.network(), Ok(Network::V1));
}

#[test]
fn mixed_families_are_refused() {
    let mixed = Addressing { dst: addressing_v6().dst, ..addressing_v4() };
    assert_eq!(HeaderTemplate::new(&mixed).err(), Some(MixedFamilies));
    let mixed = Addressing { src: addressing_v6().src, ..addressing_v4() };
    assert_eq!(HeaderTemplate::new(&mixed).err(), Some(MixedFamilies));
}

/// A flow label of more than 20 bits must not reach the traffic class.
#[test]
fn a_wide_flow_label_is_cut() {
    let a = Addressing { flow_label: 0xFFF1_2345, traffic_class: 0, ..addressing_v6() };
    let mut bytes = [0; HeaderTemplate::MAX_LEN];
    HeaderTemplate::new(&a).expect("one family").emit(&mut bytes, 0, 16);
    assert_eq!(bytes[14..18], [0x60, 0x01, 0x23, 0x45]);
}
