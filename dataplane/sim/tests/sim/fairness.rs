//! QPs that always have something to send share a full transmitter by bytes, whatever the size of their messages.

use crate::support::*;
use engine::{Access, Counter, QpType, SendFlags, SendOp, SendWr, WrData};
use sim::{Options, for_each_seed};

#[test]
fn bytes_are_shared_between_large_and_small_messages() {
    for_each_seed(2, |seed| {
        let (mut world, a, b) = two(seed);
        let options = Options { depth: 2_048, ..Options::default() };
        let source = world.register(a, vec![7; 1 << 20], Access::empty());
        let targets = [1 << 20, 1_000, 64].map(|len| {
            let (qp, peer) = world.connect(QpType::Rc, a, b, &options);
            let target = world.register(b, vec![0; len], Access::LOCAL_WRITE | Access::REMOTE_WRITE);
            for wr_id in 0..2_000 {
                let data = WrData::Sges([source.sge(0, len as u32)].into_iter().collect());
                let op = SendOp::Write(target.remote(0));
                world.post_send(qp, SendWr { wr_id, op, data, flags: SendFlags::empty() }).unwrap();
            }
            peer
        });
        // While all of them have more to send.
        assert!(world.run_for(60_000).is_err());
        let sent = targets.map(|peer| {
            let counters = world.qp_counters(peer);
            // What a packet costs besides its payload, as the scheduler counts it.
            counters.get(Counter::RxPayloadBytes) + 64 * counters.get(Counter::RxPackets)
        });
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(*least > 100_000, "{sent:?}");
        // A quantum of 16 KiB and what is under way.
        assert!(most - least < 64 * 1024, "{sent:?}");
    });
}
