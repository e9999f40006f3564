//! What a running loop looks at once a millisecond: the line to the peer, the wish to stop, the time.

use super::error::RunError;
use super::link::Link;
use super::protocol::{Message, Received, Sent};
use engine::Nanos;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Between two looks.
const LOOK_NS: Nanos = 1_000_000;
/// Between two signs of life to the peer.
const SPEAK_NS: Nanos = 1_000_000_000;
/// A peer that gave no sign of life for so long is taken for dead.
const SILENCE_NS: Nanos = 15_000_000_000;

/// What a run shares with other threads.
#[derive(Debug, Default)]
pub struct Shared {
    stop: AtomicBool,
    messages: AtomicU64,
}

impl Shared {
    /// Ends the run early: what was measured so far is the result.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Messages that this end has sent or received so far, in the run that is under way.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    pub(super) fn set_messages(&self, messages: u64) {
        self.messages.store(messages, Ordering::Relaxed);
    }
}

/// The peer's account of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerResult {
    pub sent: Sent,
    pub received: Received,
    pub counters: BTreeMap<String, u64>,
}

/// Looks after a loop.
pub(super) struct Watch<'a> {
    link: &'a mut Link,
    shared: &'a Shared,
    next: Nanos,
    heard: Nanos,
    spoken: Nanos,
    /// The client is at work: whoever sends may begin.
    pub has_begun: bool,
    /// The client has sent all (seen by the server).
    pub peer_sent: Option<Sent>,
    /// The server has finished (seen by the client).
    pub peer_result: Option<PeerResult>,
}

impl<'a> Watch<'a> {
    pub fn new(link: &'a mut Link, shared: &'a Shared, now: Nanos) -> Self {
        shared.set_messages(0);
        Watch {
            link,
            shared,
            next: now,
            heard: now,
            spoken: now,
            has_begun: false,
            peer_sent: None,
            peer_result: None,
        }
    }

    /// This end's loop comes next: the server may be sent to, and the client sends. What is sent before its receiver is at work finds
    /// receives that nobody posts again.
    pub fn begin(&mut self, is_client: bool) -> Result<(), RunError> {
        self.has_begun = is_client;
        Ok(self.link.send(if is_client { &Message::Go } else { &Message::Ready })?)
    }

    /// Whether it is time to [`look`](Self::look).
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// Hears what the peer says, gives a sign of life, tells others how far the run is.
    #[cold]
    pub fn look(&mut self, now: Nanos, messages: u64) -> Result<(), RunError> {
        self.next = now + LOOK_NS;
        self.shared.set_messages(messages);
        while let Some(message) = self.link.try_recv()? {
            self.heard = now;
            match message {
                Message::Alive => {}
                Message::Go if !self.has_begun => self.has_begun = true,
                Message::Done(sent) if self.peer_sent.is_none() => self.peer_sent = Some(sent),
                Message::Result { sent, received, counters } => {
                    self.peer_result = Some(PeerResult { sent, received, counters });
                }
                Message::Abort { reason } => return Err(RunError::Peer(reason)),
                other => return Err(RunError::unexpected("a run to go on", &other)),
            }
        }
        if now.saturating_sub(self.heard) > SILENCE_NS {
            return Err(RunError::Silent(Duration::from_nanos(SILENCE_NS)));
        }
        if now.saturating_sub(self.spoken) > SPEAK_NS {
            self.spoken = now;
            self.link.send(&Message::Alive)?;
        }
        Ok(())
    }

    /// Whether somebody asked this end to stop.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }

    /// Tells the peer that all is sent.
    pub fn say_done(&mut self, sent: &Sent) -> Result<(), RunError> {
        Ok(self.link.send(&Message::Done(sent.clone()))?)
    }

    /// Sleeps until the peer says something, for a few milliseconds at most.
    pub fn nap(&mut self) {
        self.link.nap();
    }
}
