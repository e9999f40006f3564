//! Impairments: what a bad link does to frames, from a plan in words.
//!
//! ```
//! use impair::{Direction, Plan, Stage};
//!
//! let plan: Plan = "drop 1%; corrupt psn=100 qp=0x12; reorder 3 every 1000".parse()?;
//! let mut stage = Stage::new(&plan, 0);
//! let frame = [0; 60];
//! let verdict = stage.decide(0, Direction::Tx, &frame, frame.len());
//! assert!(verdict.is_pass(), "no RoCE packet, so nothing of it is meant");
//! # Ok::<(), impair::PlanError>(())
//! ```
//!
//! # A plan
//!
//! Clauses with `;` between them. Each frame goes through them from left to right; what a clause drops the next do not see.
//!
//! | clause begins with | what happens to a frame that it strikes |
//! | --- | --- |
//! | `drop` | it vanishes |
//! | `duplicate` | an unharmed copy follows it, or goes ahead of it when it is held |
//! | `reorder` \[K\] | it is held until K (1) further frames have passed in its direction, or none has for [`QUIET_NS`] |
//! | `delay` T\[..T\] | it is held for so long (`ns`, `us`, `ms`, `s`), or for a time between the two |
//! | `corrupt` \[N `bits`\] | one (up to three) of its bits behind the Ethernet header flip |
//! | `truncate` \[`to` N\] | it ends after N bytes, or anywhere behind the Ethernet header |
//! | `ce` | it is marked "congestion experienced"; the IPv4 header checksum stays right |
//! | `seed` N | (not a clause: other dice) |
//!
//! then says which frames are meant, in any order:
//!
//! | word | meaning |
//! | --- | --- |
//! | `1%`, `0.01%` | with this probability, by the seed's dice |
//! | `every` N | each Nth frame that passes the filters |
//! | `packet` N | the Nth frame that passes the filters, the first is 1 |
//! | `psn=`N `qp=`N `opcode=`N or name | filter: the number in the packet's BTH; `qp` is the destination QP |
//! | `rx` `tx` | filter: frames that arrive, or that leave; without, the clause stands for two, one each way |
//! | `any` | also frames that are no RoCE packets (ARP …), which no clause touches otherwise |
//! | `times` N or `all` | ends after so many strikes. A clause with `psn=` and neither probability nor `every` ends after one, so that the repetition gets through; `times all` strikes those too |
//!
//! # Determinism
//!
//! What happens to a frame depends on the plan, the seed and the frames before it in its direction, and on nothing else: each
//! clause has dice of its own for each direction. The clock is asked only for when a held frame is let go.
//!
//! # Parts
//!
//! [`Stage::decide`] looks at a frame's first bytes and gives a [`Verdict`]; it holds no frame. [`Verdict::apply`] changes the
//! bytes of a frame that lies in one piece; other buffers take the [changes](Verdict::changes) one by one. A [`Shelf`] holds
//! frames of any kind for those verdicts that say so. Nothing is allocated after creation.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod counters;
mod error;
mod parse;
mod plan;
mod print;
mod shelf;
mod stage;
mod strike;
mod verdict;
mod words;

pub use counters::{Counters, Effect};
pub use error::PlanError;
pub use plan::{Action, Clause, Direction, Filter, MAX_CLAUSES, Plan, Rate, Times, When};
pub use shelf::{QUIET_NS, Shelf};
pub use stage::Stage;
pub use verdict::{Change, Hold, Verdict};

/// A time, or a length of time, in nanoseconds.
pub type Nanos = u64;
