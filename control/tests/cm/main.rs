//! Connections by connection management: what librdmacm programs rely on.

mod connecting;
mod datagrams;
mod dying;
mod flood;
mod management;
mod moving;
mod refusing;
mod rounds;
mod several;
mod stranger;
mod support;
mod thinking;
mod vlans;
