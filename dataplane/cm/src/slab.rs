//! A table with handles that never name another entry than the one they were given for.

/// A connection. Handles of connections that are gone name nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub(crate) Handle);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Handle {
    index: u32,
    generation: u32,
}

/// Entries at numbers that are used again, each time with another generation.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds the entry that `make` makes of its handle.
    pub fn insert_with(&mut self, make: impl FnOnce(Handle) -> T) -> Handle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (generation, slot) = &mut self.slots[index as usize];
        let handle = Handle { index, generation: *generation };
        *slot = Some(make(handle));
        handle
    }

    pub fn get(&self, handle: Handle) -> Option<&T> {
        let (generation, slot) = self.slots.get(handle.index as usize)?;
        slot.as_ref().filter(|_| *generation == handle.generation)
    }

    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let (generation, slot) = self.slots.get_mut(handle.index as usize)?;
        slot.as_mut().filter(|_| *generation == handle.generation)
    }

    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        let (generation, slot) = self.slots.get_mut(handle.index as usize)?;
        if *generation != handle.generation {
            return None;
        }
        let entry = slot.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(handle.index);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn an_old_handle_names_nothing() {
        let mut slab = Slab::default();
        let first = slab.insert_with(|_| 'a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert_with(|_| 'b');
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!((slab.get(second), slab.len()), (Some(&'b'), 1));
    }
}
