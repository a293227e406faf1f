//! Parents of vertices.

use super::numbers::{Flags, NONE, at_mut, at_of};

/// The parent of each vertex.
#[derive(Debug)]
pub(super) struct Parents {
    parents: Vec<u32>,
    /// Vertices whose parent comes from a link, not from the order of rows.
    stored: Flags,
}

impl Parents {
    pub(super) fn new(vertices: u32) -> Self {
        Self {
            parents: vec![NONE; usize::try_from(vertices).unwrap_or_default()],
            stored: Flags::new(vertices),
        }
    }

    /// Sets the parent that the order of rows implies.
    pub(super) fn imply(&mut self, child: u32, parent: u32) {
        if let Some(at) = at_mut(&mut self.parents, child) {
            *at = parent;
        }
    }

    /// Sets the parent that a link states, which takes precedence. Returns whether another link
    /// stated a different one before.
    pub(super) fn store(&mut self, child: u32, parent: u32) -> bool {
        let before = core::mem::replace(
            match at_mut(&mut self.parents, child) {
                Some(at) => at,
                None => return false,
            },
            parent,
        );
        let was_stored = self.stored.is_set(child);
        self.stored.set(child);
        was_stored && before != parent
    }

    pub(super) fn of(&self, child: u32) -> Option<u32> {
        at_of(&self.parents, child)
            .copied()
            .filter(|parent| *parent != NONE)
    }

    /// Returns one vertex of each cycle.
    pub(super) fn cycles(&self) -> Vec<u32> {
        let count = u32::try_from(self.parents.len()).unwrap_or(NONE);
        let (mut open, mut done) = (Flags::new(count), Flags::new(count));
        let mut cycles = Vec::new();
        for start in 0..count {
            let mut at = start;
            while !open.is_set(at) && !done.is_set(at) {
                open.set(at);
                match self.of(at) {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
            // An open vertex here was opened by this walk, unless the walk ended at a root.
            if open.is_set(at) && !done.is_set(at) && self.of(at).is_some() {
                cycles.push(at);
            }
            let mut at = start;
            while !done.is_set(at) {
                done.set(at);
                match self.of(at) {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
        }
        cycles
    }
}

#[cfg(test)]
mod tests {
    use super::Parents;

    #[test]
    fn finds_each_cycle_once() {
        let mut parents = Parents::new(8);
        for (child, parent) in [(1, 0), (2, 1), (3, 4), (4, 5), (5, 3), (6, 4), (7, 7)] {
            assert!(!parents.store(child, parent));
        }
        assert_eq!(parents.cycles(), [3, 7]);
        assert!(parents.store(2, 0));
    }
}
