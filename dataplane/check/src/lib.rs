//! A checker of the protocol: frames go in, in the order of their capture, and broken rules come out.
//!
//! It knows nothing of the endpoints. Connections, their two QP numbers, their path MTU and their message counts are learned
//! from the traffic; what cannot be known (the capture began too late, frames are missing, two QPs fit equally well) is not
//! judged. Each rule is a row of [`Rule`], with its words and its source in the facts. What is allowed but worth knowing is a
//! [`Note`].
//!
//! How strict it may be depends on where the capture was taken: [`Vantage`]. Nothing in a capture makes it panic, and memory
//! is bounded per connection ([`Options`]).
//!
//! | to … | use |
//! | --- | --- |
//! | check frames | [`Checker::on_frame`], then [`Checker::finish`] |
//! | read a capture file | [`capture::each_frame`], then [`Checker::on_cut_frame`] |
//! | check a capture of another link type | [`link::ethernet`] first |
//! | tell of a connection that was made outside the capture | [`Checker::connect`] |
//! | see the rules | [`Rule::ALL`] |
//!
//! | file | judges |
//! | --- | --- |
//! | `single` | one frame by itself |
//! | `requests` | the requests of one QP: order, lengths, retransmissions |
//! | `repeats` | whether a frame that is there twice was sent again, or doubled |
//! | `answers` | what a QP answers to them: PSN, MSN, READ data, NAKs |
//! | `pairs`, `cm` | which two directions are one connection |
//!
//! ```
//! use check::{Checker, Options};
//!
//! let mut checker = Checker::new(Options::default());
//! checker.on_frame(0, &[0; 60]);
//! let report = checker.finish();
//! assert!(report.passed());
//! assert_eq!((report.frames, report.roce_frames), (1, 0));
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answers;
pub mod capture;
mod checker;
mod cm;
mod half;
pub mod link;
mod note;
mod options;
mod packet;
mod pairs;
mod record;
mod repeats;
mod report;
mod requests;
mod rule;
mod single;

pub use checker::{Checker, End};
pub use note::Note;
pub use options::{Damage, Options, Vantage};
pub use report::{Report, Violation};
pub use rule::Rule;
