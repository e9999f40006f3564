//! Frames that are not RoCE for us: the control thread's.

use crate::counters::Drop;
use crate::lane::Lane;
use dpdk::Mbuf;

impl Lane {
    /// Gives a frame to the control thread, or counts it when too many wait.
    pub(crate) fn give_to_control(&mut self, mbuf: Mbuf) {
        if self.link.push_slow(mbuf) {
            self.counters.traffic.slow += 1;
        } else {
            self.counters.count_drop(Drop::SlowPathFull);
        }
    }

    /// Takes the control thread's frames into the burst to send: worker 0's work.
    pub(crate) fn take_injected(&mut self) {
        if self.index != 0 {
            return;
        }
        let injected = self.link.injected();
        while !injected.is_empty() && !self.outgoing.burst.is_full() {
            let Some(mbuf) = injected.pop() else { break };
            // There is room, as just seen.
            self.outgoing.push(mbuf);
        }
    }
}
