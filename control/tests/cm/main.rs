//! Connections by connection management: what librdmacm programs rely on.

mod connecting;
mod datagrams;
mod refusing;
mod support;
