//! Bytes of a region that are copied out later, two strings at a time where two are at hand.

use crate::area::Area;
use crate::{OutOfRange, summed};
use crc::Lead;
use std::marker::PhantomData;

/// Bytes that were found in a region: they can be read until its reader quiesces.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    at: *const u8,
    len: usize,
    alive: PhantomData<&'a ()>,
}

impl<'a> Source<'a> {
    /// `len` bytes from `offset` of an area.
    #[inline(always)]
    pub(crate) fn of_area(area: Area<'a>, offset: u64, len: usize) -> Result<Source<'a>, OutOfRange> {
        Ok(Source { at: area.locate(offset, len)?.as_ptr(), len, alive: PhantomData })
    }

    /// Copies all of them out behind a lead; the CRC-32 state after those that were copied.
    ///
    /// # Panics
    /// When there is room for another number of bytes.
    #[inline(always)]
    pub fn read_led(self, to: &mut [u8], lead: Lead) -> u32 {
        assert_eq!(self.len, to.len(), "there is room for what is read");
        // SAFETY: so many bytes are in the area, which is alive; the slice is exclusive, so they do not overlap.
        unsafe { summed::copy_led(self.at, to.as_mut_ptr(), to.len(), lead) }
    }

    /// The same with another one of as many bytes, which may be the same bytes. Its lead differs in the sixteen bytes alone.
    ///
    /// # Panics
    /// When they are not as many, or there is room for another number.
    #[inline(always)]
    pub fn read_led_pair(
        self,
        to: &mut [u8],
        lead: Lead,
        other: Self,
        its: &mut [u8],
        its_lead: [u64; 2],
    ) -> (u32, u32) {
        let len = self.len;
        assert!(to.len() == len && other.len == len && its.len() == len, "there is room for what is read");
        let (first, second) = ((self.at, to.as_mut_ptr()), (other.at, its.as_mut_ptr()));
        // SAFETY: so many bytes are in the areas, which are alive; the slices are exclusive, so nothing overlaps what is written.
        unsafe { summed::copy_led_pair(first, second, len, lead, its_lead) }
    }
}
