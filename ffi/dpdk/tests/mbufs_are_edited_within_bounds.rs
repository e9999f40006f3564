//! Growing, shrinking, chaining and reading packets, and every edge at which that is refused.

mod common;

use common::{bytes, eal, frame, packet, pool};
use dpdk::mbuf::Checksum;
use dpdk::mempool::HEADROOM;

#[test]
fn mbufs_are_edited_within_bounds() {
    let eal = eal();
    let pool = pool(&eal, 127, 256);
    let headroom = usize::from(HEADROOM);

    let mut mbuf = pool.alloc().unwrap();
    assert_eq!((mbuf.pkt_len(), mbuf.nb_segs(), mbuf.data().len()), (0, 1, 0));
    assert_eq!((mbuf.headroom(), mbuf.tailroom()), (headroom, 256));
    assert_eq!((mbuf.rss_hash(), mbuf.stripped_vlan()), (None, None));
    assert_eq!((mbuf.ip_checksum(), mbuf.l4_checksum()), (Checksum::Unknown, Checksum::Unknown));

    assert!(mbuf.append(257).is_none());
    assert_eq!(mbuf.pkt_len(), 0);
    mbuf.append(256).unwrap().fill(0xaa);
    assert!(mbuf.append(1).is_none());
    assert!(mbuf.prepend(headroom + 1).is_none());
    mbuf.prepend(headroom).unwrap().fill(0xbb);
    assert!(mbuf.prepend(1).is_none());
    assert_eq!((mbuf.pkt_len(), mbuf.headroom(), mbuf.tailroom()), (256 + headroom, 0, 0));
    assert!(mbuf.data()[..headroom].iter().all(|&b| b == 0xbb));
    assert!(mbuf.data()[headroom..].iter().all(|&b| b == 0xaa));

    assert!(!mbuf.trim_front(257 + headroom));
    assert!(mbuf.trim_front(headroom + 1));
    assert!(!mbuf.trim_back(256));
    assert!(mbuf.trim_back(250));
    mbuf.data_mut().copy_from_slice(b"12345");
    assert_eq!((bytes(&mbuf), mbuf.headroom(), mbuf.tailroom()), (b"12345".to_vec(), headroom + 1, 250));

    // Plain until a tag is removed, or a second buffer follows.
    assert_eq!(mbuf.plain_data(), Some(&b"12345"[..]));
    let mut tagged = pool.alloc().unwrap();
    tagged.set_stripped_vlan(7);
    assert_eq!(tagged.plain_data(), None);
    let chained = pool.alloc().unwrap().chain(tagged).unwrap();
    assert_eq!((chained.nb_segs(), chained.plain_data()), (2, None));
    drop(chained);

    // Room behind what is appended, as far as the buffer has it.
    let mut roomy = pool.alloc().unwrap();
    for (n, room, got) in [(10, 20, 20), (10, 5, 10), (200, 300, 236)] {
        assert_eq!(roomy.append_roomy(n, room).map(|bytes| bytes.len()), Some(got), "{n} and {room}");
    }
    assert!(roomy.append_roomy(37, 37).is_none());
    assert_eq!((roomy.pkt_len(), roomy.tailroom()), (220, 36));
    drop(roomy);

    // Chains: the first segment grows in front, the last one behind.
    let content = frame(700, 3);
    let mut chain = packet(&pool, &content);
    assert_eq!((chain.nb_segs(), chain.pkt_len(), chain.data().len()), (3, 700, 256));
    assert_eq!(chain.tailroom(), 3 * 256 - 700);
    assert!(chain.extend_from_slice(b"end"));
    chain.prepend(5).unwrap().copy_from_slice(b"start");
    assert_eq!(bytes(&chain), [b"start", &content[..], b"end"].concat());
    assert!(chain.trim_front(5) && chain.trim_back(3));
    assert_eq!(bytes(&chain), content);
    let mut part = [0u8; 300];
    assert_eq!(chain.copy_to(250, &mut part), 300);
    assert_eq!(part, content[250..550]);
    assert_eq!(chain.copy_to(512, &mut part), 188);
    assert_eq!(part[..188], content[512..]);
    assert_eq!(chain.copy_to(700, &mut part), 0);
    assert_eq!(chain.copy_to(9000, &mut part), 0);

    let both = chain.chain(mbuf).unwrap();
    assert_eq!((both.nb_segs(), both.pkt_len()), (4, 705));
    assert_eq!(bytes(&both), [&content[..], b"12345"].concat());
    drop(both);
    assert_eq!(pool.in_use(), 0);

    // Single bytes and the length, across segments.
    let mut chain = packet(&pool, &content);
    for offset in [0, 255, 256, 511, 512, 699] {
        *chain.byte_mut(offset).unwrap() ^= 0xFF;
    }
    assert!(chain.byte_mut(700).is_none());
    let mut changed = content.clone();
    [0, 255, 256, 511, 512, 699].iter().for_each(|&offset: &usize| changed[offset] ^= 0xFF);
    assert_eq!(bytes(&chain), changed);
    for len in [700, 699, 512, 511, 256, 3, 0] {
        chain.truncate(len);
        assert_eq!((chain.pkt_len(), bytes(&chain)), (len, changed[..len].to_vec()));
        assert!(chain.byte_mut(len).is_none());
    }
    assert_eq!(chain.nb_segs(), 3, "the empty ones stay");
    chain.truncate(5);
    assert_eq!(chain.pkt_len(), 0, "nothing grows");
    drop(chain);
    assert_eq!(pool.in_use(), 0);

    // The clock, while DPDK runs.
    let clock = dpdk::tsc::Clock::new(&eal);
    let start = std::time::Instant::now();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let (tsc, real) = (clock.now_ns() as i128, start.elapsed().as_nanos() as i128);
    assert!((tsc - real).abs() < 5_000_000, "{tsc} ns by TSC, {real} ns by the system");
}
