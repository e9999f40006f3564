//! Dialogues with the responder: a QP in this state, this packet in, exactly these packets and completions
//! out.

mod admission;
mod any_packet;
mod atomic;
mod atomic_write;
mod bursts;
mod drops;
mod duplicates;
mod faults;
mod flush;
mod held;
mod help;
mod order;
mod path_mtu;
mod plain;
mod read;
mod read_runs;
mod runs;
mod send;
mod sequence;
mod srq;
mod uc;
mod ud;
mod windows;
mod write;
mod xrc;
