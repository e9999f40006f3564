//! Bounded queues between posters and workers: a [`Ring`], whose items are written and read where they lie, for the requests of a queue
//! pair, which one worker takes; and an [`Exchange`] for completions, which many add and many take.
//!
//! # The ring
//!
//! A work request is large, and most of it is room for what most requests do not have. A queue that moves its items copies all of
//! it on the way in and on the way out; here a poster writes into a place of the ring what there is, and the taker reads it there.
//!
//! | who | what |
//! | --- | --- |
//! | [`Ring`] | the places, and three counters modulo 2^32: posted, taken, released |
//! | [`Posting`] | one poster's turn: any thread may have one, one at a time. It fills places, then publishes all of them at once |
//! | [`Taker`] | the one reader. It takes items in order, and gives their places back later, when it likes |
//!
//! A place belongs to whoever may touch it, which the counters say: those from *released* up to *posted* are the taker's, all others
//! the poster's whose turn it is.
//!
//! # Turns, and the bell
//!
//! A turn begins and ends with one atomic operation on one word, which holds two bits: somebody has the turn, and a bell was rung.
//! The end of a turn sets the second and tells whether it was set before; the taker clears it *before* it looks for items. So in the
//! order of changes to this word either the clearing comes later, and then the taker's look sees what was published, or the end of
//! the turn finds the bit clear, and the poster knows that it has to wake the taker. No item waits with nobody told.
//!
//! Whoever finds the turn taken spins: a turn is a few stores for each item. A thread that is suspended in its turn keeps other
//! posters of the same ring waiting, never the taker.
//!
//! Unsafe code: asking for memory ahead (`ahead.rs`), access to places (`posting.rs`, `taker.rs`, `exchange.rs`), and that threads may share a ring (`ring.rs`, `exchange.rs`). Under Miri:
//! `scripts/miri.sh ring`.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod ahead;
mod exchange;
mod posting;
mod ring;
mod taker;

pub use ahead::{fetch, fetch_from};
pub use exchange::Exchange;
pub use posting::Posting;
pub use ring::Ring;
pub use taker::Taker;
