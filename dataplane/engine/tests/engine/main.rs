//! The engine's objects from outside: transitions, keys, queues, events, timers, and the QP table.

mod modify_applies;
mod modify_refuses;
mod support;
mod transitions;
