//! Two endpoints.

use sim::{EndpointId, Mix, World};

/// A world of two.
pub fn two(seed: u64) -> (World, EndpointId, EndpointId) {
    let mut world = World::new(seed);
    let (a, b) = (world.add_endpoint(), world.add_endpoint());
    (world, a, b)
}

/// Requests of every kind that RC has.
pub fn rc_mix(requests: usize) -> Mix {
    Mix { requests, max_len: 9_000, kinds: sim::Kind::RC }
}
