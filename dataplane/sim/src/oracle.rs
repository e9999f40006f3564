//! What must hold of any world, whatever was done in it.

use crate::endpoint::EndpointId;
use crate::world::World;
use engine::{Counter, DropReason};

/// After [`World::run`] came to rest: nothing is said any more, however long one listens.
pub fn assert_silent(world: &mut World) {
    let (frames, now) = (world.frames_sent(), world.now());
    world.run_for(100_000_000_000).expect("a world at rest has nothing to do");
    assert_eq!(world.frames_sent(), frames, "frames after the end");
    assert_eq!(world.now(), now, "a timer after the end");
}

/// On clean links between peers that do nothing wrong: nothing was sent twice, refused, discarded or waited for in vain.
pub fn assert_no_fault_of_ours(world: &World, endpoint: EndpointId) {
    let counters = world.counters(endpoint);
    for counter in [
        Counter::Retransmitted,
        Counter::SeqNakSent,
        Counter::NakSent,
        Counter::RnrNakSent,
        Counter::DuplicateRequest,
        Counter::OutOfSequence,
        Counter::LocalAckTimeoutErr,
        Counter::ImpliedNakSeqErr,
        Counter::CqOverflow,
        Counter::ReqCqeError,
        Counter::RespCqeError,
    ] {
        assert_eq!(counters.get(counter), 0, "{}", counter.name());
    }
    for &reason in DropReason::ALL {
        assert_eq!(counters.dropped(reason), 0, "{}", reason.name());
    }
}
