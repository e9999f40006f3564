//! The public API over a pair of ring ports: every operation with its data checked, and what is refused.

mod atomics;
mod channels;
mod connecting;
mod datagrams;
mod destroying;
mod devices;
mod fast_registration;
mod flush;
mod loopback;
mod messages;
mod multicast;
mod network;
mod numbers;
mod path_mtu;
mod roce_v1;
mod shared_receives;
mod statistics;
mod support;
mod threads;
mod vlans;
mod windows;
mod xrc;
