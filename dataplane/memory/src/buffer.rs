//! Memory for an application to register: zeroed, page-aligned, on huge pages where the kernel gives them.

use crate::area::{Area, OutOfRange};
use memmap2::{MmapMut, MmapRaw};

/// Why there is no buffer.
#[derive(Debug, thiserror::Error)]
pub enum BufferError {
    /// A buffer has at least one byte.
    #[error("a buffer needs at least one byte")]
    Empty,
    /// The system gives no such amount.
    #[error("no memory for a buffer of {len} bytes: {why}")]
    Memory {
        /// Bytes asked for.
        len: usize,
        /// The system's reason.
        why: std::io::Error,
    },
}

/// Memory that peers may write while the program reads it: so it is copied in and out, never borrowed.
///
/// Threads may use it at once; overlapping accesses then see bytes of either.
#[derive(Debug)]
pub struct Buffer {
    map: MmapRaw,
}

impl Buffer {
    /// `len` bytes of zeros. Pages are taken from the system when they are first touched.
    pub fn new(len: usize) -> Result<Buffer, BufferError> {
        if len == 0 {
            return Err(BufferError::Empty);
        }
        let map = MmapMut::map_anon(len).map_err(|why| BufferError::Memory { len, why })?;
        let map = MmapRaw::from(map);
        // Advice: without it everything works, with more misses of the translation cache. Miri has no such call.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Buffer { map })
    }

    /// Bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Address of the first byte: what keys and SGEs count from.
    pub fn addr(&self) -> u64 {
        self.area().start().addr() as u64
    }

    /// Copies `to.len()` bytes from `offset` out.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), OutOfRange> {
        self.area().read(offset as u64, to)
    }

    /// Copies `from` to `offset`, its last byte last.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfRange> {
        self.area().write(offset as u64, from)
    }

    /// Sets `len` bytes from `offset` to `byte`.
    pub fn fill(&self, offset: usize, len: usize, byte: u8) -> Result<(), OutOfRange> {
        let end = offset.checked_add(len).filter(|&end| end <= self.len()).ok_or(OutOfRange)?;
        let piece = [byte; 4096];
        for at in (offset..end).step_by(piece.len()) {
            self.write(at, &piece[..piece.len().min(end - at)])?;
        }
        Ok(())
    }

    /// The byte at `offset`. What was written before it is seen by reads after this: the way to wait for a WRITE is to
    /// poll its last byte.
    pub fn load_u8(&self, offset: usize) -> Result<u8, OutOfRange> {
        self.area().load_u8(offset as u64)
    }

    /// The 8 bytes at `offset`, a multiple of 8, in host order and at once.
    pub fn load_u64(&self, offset: usize) -> Result<u64, OutOfRange> {
        self.area().load_u64(offset as u64)
    }

    /// Stores 8 bytes at `offset`, a multiple of 8, in host order and at once.
    pub fn store_u64(&self, offset: usize, value: u64) -> Result<(), OutOfRange> {
        self.area().store_u64(offset as u64, value)
    }

    pub(crate) fn area(&self) -> Area<'_> {
        Area::of_map(&self.map)
    }
}
