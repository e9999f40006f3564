//! Memory for an application to register: zeroed, page-aligned where it is of whole pages, on huge pages where the kernel gives them.

use crate::area::{Area, OutOfRange};
use crate::map::Map;
use memmap2::MmapOptions;
use nix::fcntl::posix_fallocate;
use nix::sys::statfs::{FsType, TMPFS_MAGIC, fstatfs};
use std::fs::File;

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
    /// The file cannot hold the buffer.
    #[error(
        "the file cannot hold a buffer of {len} bytes: {why}; free some space or open it for reading and writing"
    )]
    File {
        /// Bytes asked for.
        len: usize,
        /// The system's reason.
        why: std::io::Error,
    },
    /// The file's own file system is in memory.
    #[error(
        "the file lies in memory itself (tmpfs) and would not outlive a loss of power; use a file on a disk"
    )]
    Volatile,
}

/// Memory that peers may write while the program reads it: so it is copied in and out, never borrowed.
///
/// Threads may use it at once; overlapping accesses then see bytes of either.
///
/// With debug assertions memory that is not a file's lies between guard pages, as close to the second as a multiple of 64 bytes
/// allows: an access beside it is a fault.
#[derive(Debug)]
pub struct Buffer {
    map: Map,
    durable: bool,
}

/// The file system `ramfs`, which `nix` has no name for.
const RAMFS_MAGIC: FsType = FsType(0x8584_58F6);

/// A file system whose files are gone with the power.
fn lies_in_memory(kind: FsType) -> bool {
    kind == TMPFS_MAGIC || kind == RAMFS_MAGIC
}

impl Buffer {
    /// `len` bytes of zeros. Pages are taken from the system when they are first touched.
    pub fn new(len: usize) -> Result<Buffer, BufferError> {
        if len == 0 {
            return Err(BufferError::Empty);
        }
        let map = Map::anonymous(len).map_err(|why| BufferError::Memory { len, why })?;
        Ok(Buffer { map, durable: false })
    }

    /// The first `len` bytes of a file, which is made as long as that; its place on the disk is taken at once. Whoever reads or
    /// maps the file sees the buffer's bytes, and what was made persistent ([`Memory::persist`](engine::Memory::persist)) is
    /// there after a loss of power, as far as the file system and the disk keep their promises.
    ///
    /// The file must not be cut short while the buffer lives: the system kills a program that touches what is gone.
    pub fn of_file(file: &File, len: usize) -> Result<Buffer, BufferError> {
        let fails = |why: std::io::Error| BufferError::File { len, why };
        if len == 0 {
            return Err(BufferError::Empty);
        }
        let kind = fstatfs(file).map_err(|errno| fails(errno.into()))?.filesystem_type();
        if lies_in_memory(kind) {
            return Err(BufferError::Volatile);
        }
        // A hole would be filled when it is first written, and a full disk would then kill the program.
        let size = i64::try_from(len).map_err(|_| fails(std::io::ErrorKind::FileTooLarge.into()))?;
        posix_fallocate(file, 0, size).map_err(|errno| fails(errno.into()))?;
        let map = MmapOptions::new().len(len).map_raw(file).map_err(fails)?;
        Ok(Buffer { map: Map::of_file(map), durable: true })
    }

    /// Its bytes can be made to survive a loss of power.
    pub fn is_durable(&self) -> bool {
        self.durable
    }

    /// Bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> usize {
        self.area().len()
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
        self.map.area()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::statfs::{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC};

    /// The numbers are those of `man 2 statfs`.
    #[test]
    fn file_systems_in_memory_are_known() {
        for kind in [FsType(0x0102_1994), FsType(0x8584_58F6)] {
            assert!(lies_in_memory(kind), "{kind:?}");
        }
        assert!(!lies_in_memory(EXT4_SUPER_MAGIC) && !lies_in_memory(XFS_SUPER_MAGIC));
    }
}
