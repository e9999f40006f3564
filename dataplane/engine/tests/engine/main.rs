//! The engine's objects from outside: transitions, keys, queues, events, timers, and the QP table.

mod completion_queue;
mod events;
mod keys;
mod keys_fast_register;
mod keys_race;
mod modify_applies;
mod modify_refuses;
mod posting;
mod qp_table;
mod srq_limit;
mod support;
mod timers;
mod transitions;
mod windows;
