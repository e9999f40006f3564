//! Access rights of memory regions and queue pairs, with the verbs' bit values.

bitflags::bitflags! {
    /// What a key or a QP allows. Bit values are those of verbs (`IBV_ACCESS_*`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct Access: u32 {
        /// The local side may write (receive buffers, READ and atomic results).
        const LOCAL_WRITE = 1;
        /// The peer may WRITE.
        const REMOTE_WRITE = 2;
        /// The peer may READ.
        const REMOTE_READ = 4;
        /// The peer may run atomics.
        const REMOTE_ATOMIC = 8;
        /// Memory windows may be bound to the region.
        const MW_BIND = 16;
        /// Addresses count from zero at the start of the region.
        const ZERO_BASED = 32;
        /// The peer may FLUSH to global visibility.
        const FLUSH_GLOBAL = 256;
        /// The peer may FLUSH to persistence.
        const FLUSH_PERSISTENT = 512;
    }
}

impl Access {
    /// Remote write and atomic rights need the local write right too (verbs rule for registration).
    pub fn is_consistent(self) -> bool {
        !self.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC) || self.contains(Access::LOCAL_WRITE)
    }
}
