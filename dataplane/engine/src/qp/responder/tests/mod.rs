//! Dialogues with the responder: a QP in this state, this packet in, exactly these packets and completions out.

mod help;
mod send;
