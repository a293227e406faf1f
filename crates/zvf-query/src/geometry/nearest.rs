//! The k items nearest to a point.

use std::{cmp::Ordering, collections::BinaryHeap};

/// A bounded heap of the `k` items with the least squared distance.
///
/// Items at equal distance are ordered by `T`, least first, so the result does not depend on the
/// order of insertion.
///
/// ```
/// use zvf_query::geometry::KNearest;
///
/// let mut nearest = KNearest::new(2);
/// for (squared, row) in [(9.0, 0), (1.0, 1), (4.0, 2), (4.0, 3)] {
///     nearest.push(squared, row);
/// }
/// assert!(!nearest.admits(5.0));
/// assert_eq!(nearest.into_sorted(), [(1.0, 1), (4.0, 2)]);
/// ```
#[derive(Clone, Debug)]
pub struct KNearest<T: Ord> {
    k: usize,
    furthest_first: BinaryHeap<Candidate<T>>,
}

impl<T: Ord> KNearest<T> {
    /// Creates an empty heap for `k` items. Memory grows with the number of items.
    pub fn new(k: usize) -> Self {
        let furthest_first = BinaryHeap::new();
        Self { k, furthest_first }
    }

    /// Returns the number of items kept so far.
    pub fn len(&self) -> usize {
        self.furthest_first.len()
    }

    /// Returns whether no item is kept.
    pub fn is_empty(&self) -> bool {
        self.furthest_first.is_empty()
    }

    /// Returns whether an item at this squared distance could still be kept; `false` for NaN.
    /// Called with the lower bound of a chunk, it tells whether the chunk has to be read.
    pub fn admits(&self, squared: f64) -> bool {
        if self.len() < self.k {
            return !squared.is_nan();
        }
        let furthest = self.furthest_first.peek();
        furthest.is_some_and(|furthest| squared <= furthest.squared)
    }

    /// Inserts an item if it is among the `k` nearest. Items at a NaN distance are never kept.
    /// Takes O(log k) for a kept item and O(1) for a rejected one.
    pub fn push(&mut self, squared: f64, item: T) {
        if !self.admits(squared) {
            return;
        }
        // Adding 0 turns a negative zero into a positive one; `total_cmp` tells them apart.
        let squared = squared + 0.0;
        let entry = Candidate { squared, item };
        if self.len() < self.k {
            self.furthest_first.push(entry);
        } else if let Some(mut furthest) = self.furthest_first.peek_mut()
            && entry < *furthest
        {
            *furthest = entry;
        }
    }

    /// Returns the items kept so far, in any order.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.furthest_first.iter().map(|entry| &entry.item)
    }

    /// Returns squared distances and items, nearest first.
    pub fn into_sorted(self) -> Vec<(f64, T)> {
        let entries = self.furthest_first.into_sorted_vec().into_iter();
        entries.map(|entry| (entry.squared, entry.item)).collect()
    }
}

#[derive(Clone, Debug)]
struct Candidate<T> {
    squared: f64,
    item: T,
}

impl<T: Ord> Ord for Candidate<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_distance = self.squared.total_cmp(&other.squared);
        by_distance.then_with(|| self.item.cmp(&other.item))
    }
}

impl<T: Ord> PartialOrd for Candidate<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Candidate<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Candidate<T> {}
