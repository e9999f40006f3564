//! Receive and transmit queues: the packet path.
//!
//! A queue handle has one owner and can move to another thread, but two threads cannot use it at once: DPDK's
//! queues are not made for that. It keeps its port open.

use std::cell::Cell;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::burst::MbufBurst;
use crate::lend;
use crate::mbuf::Mbuf;
use crate::mempool::Mempool;
use crate::port::{OpenPort, PortId, Tap};

/// A port's receive queue.
#[derive(Debug)]
pub struct RxQueue {
    port: u16,
    queue: u16,
    /// Where packets that point to lent bytes are copied; none where no such packet can come.
    taken_into: Option<Arc<Mempool>>,
    lost: u64,
    /// Of a `net_tap`.
    tap: Option<Tap>,
    keeps_open: Arc<OpenPort>,
    not_sync: PhantomData<Cell<()>>,
}

/// A port's transmit queue.
#[derive(Debug)]
pub struct TxQueue {
    port: u16,
    queue: u16,
    passes_on: bool,
    keeps_open: Arc<OpenPort>,
    not_sync: PhantomData<Cell<()>>,
}

impl RxQueue {
    /// For each queue number of each port this is called once: that makes the handle the only one.
    pub(crate) fn new(
        port: &Arc<OpenPort>,
        queue: u16,
        taken_into: Option<Arc<Mempool>>,
        tap: Option<Tap>,
    ) -> RxQueue {
        let keeps_open = Arc::clone(port);
        RxQueue { port: port.id().0, queue, taken_into, lost: 0, tap, keeps_open, not_sync: PhantomData }
    }

    /// Appends what has arrived to `burst`, as far as there is room, and returns how many packets that were.
    ///
    /// Give an empty burst: vector drivers round the room down to a multiple of 8 and receive nothing into less.
    #[inline]
    pub fn burst<const N: usize>(&mut self, burst: &mut MbufBurst<N>) -> usize {
        const { assert!(N.is_multiple_of(8), "some drivers receive in multiples of 8 only") };
        let before = burst.len();
        let count = self.burst_as_sent(burst);
        if let Some(pool) = &self.taken_into {
            self.lost += lend::take_in(burst, before, pool);
        }
        count
    }

    /// [`burst`](Self::burst), but packets which point to lent bytes ([`Mbuf::is_lent`]) are left as they are.
    #[inline]
    pub fn burst_as_sent<const N: usize>(&mut self, burst: &mut MbufBurst<N>) -> usize {
        const { assert!(N.is_multiple_of(8), "some drivers receive in multiples of 8 only") };
        let before = burst.len();
        if let Some(tap) = self.tap {
            tap.pull_trigger();
        }
        let count = burst.append(|slots, room| {
            // SAFETY: the port is started and has this queue, `&mut self` makes this its only user, and `slots`
            // has room for `room` packets.
            unsafe { dpdk_sys::rte_eth_rx_burst(self.port, self.queue, slots, room) }
        });
        if self.taken_into.is_some() {
            let received = burst.as_slice().get(before..).unwrap_or_default();
            received.iter().for_each(Mbuf::prefetch);
        }
        count
    }

    /// A file that is readable while packets wait, where the driver has one: to sleep on.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.tap.as_ref()?.file()
    }

    /// Packets that were lost since this was last asked, because the pool had no buffer to copy them into.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// The queue's port.
    pub fn port(&self) -> PortId {
        self.keeps_open.id()
    }

    /// The queue's number.
    pub fn index(&self) -> u16 {
        self.queue
    }
}

impl TxQueue {
    /// See [`RxQueue::new`].
    pub(crate) fn new(port: &Arc<OpenPort>, queue: u16, passes_on: bool) -> TxQueue {
        TxQueue { port: port.id().0, queue, passes_on, keeps_open: Arc::clone(port), not_sync: PhantomData }
    }

    /// The other end of a ring gets the very packets that are sent, so that nobody else looks into them
    /// ([`Mbuf::lend_around`](crate::Mbuf::lend_around)).
    #[inline]
    pub fn passes_on(&self) -> bool {
        self.passes_on
    }

    /// Sends the packets in order and returns how many the driver took. Those it did not take stay in `burst`,
    /// at its front and in order, owned by the caller: try again or drop them.
    #[inline]
    pub fn burst<const N: usize>(&mut self, burst: &mut MbufBurst<N>) -> usize {
        if burst.is_empty() {
            return 0; // net_memif of 24.11 looks at the first packet even if there is none.
        }
        burst.take_front(|packets, count| {
            // SAFETY: the port is started and has this queue, `&mut self` makes this its only user, and the
            // `count` packets are owned by the burst, which gives up those that are taken.
            unsafe { dpdk_sys::rte_eth_tx_burst(self.port, self.queue, packets, count) }
        })
    }

    /// The queue's port.
    pub fn port(&self) -> PortId {
        self.keeps_open.id()
    }

    /// The queue's number.
    pub fn index(&self) -> u16 {
        self.queue
    }
}
