//! The k best of many.

use std::{cmp::Ordering, collections::BinaryHeap};

/// Keeps the `k` items of least squared distance; of equally distant ones the
/// least items. What it keeps does not depend on the order of arrival.
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
    furthest_first: BinaryHeap<Entry<T>>,
}

impl<T: Ord> KNearest<T> {
    /// For `k` items; memory is used as they come.
    pub fn new(k: usize) -> Self {
        let furthest_first = BinaryHeap::new();
        Self { k, furthest_first }
    }

    /// Number of items kept so far.
    pub fn len(&self) -> usize {
        self.furthest_first.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.furthest_first.is_empty()
    }

    /// Whether an item at this squared distance could still be kept: with a
    /// lower bound for a box, whether to look into it. Never for NaN.
    pub fn admits(&self, squared: f64) -> bool {
        if self.len() < self.k {
            return !squared.is_nan();
        }
        let furthest = self.furthest_first.peek();
        furthest.is_some_and(|furthest| squared <= furthest.squared)
    }

    /// Offers an item. A NaN is at no distance and never kept. Logarithmic
    /// in k when it is kept, constant when not.
    pub fn push(&mut self, squared: f64, item: T) {
        if !self.admits(squared) {
            return;
        }
        // No negative zero, which the order would put before the other.
        let squared = squared + 0.0;
        let entry = Entry { squared, item };
        if self.len() < self.k {
            self.furthest_first.push(entry);
        } else if let Some(mut furthest) = self.furthest_first.peek_mut()
            && entry < *furthest
        {
            *furthest = entry;
        }
    }

    /// Squared distances and items, nearest first.
    pub fn into_sorted(self) -> Vec<(f64, T)> {
        let entries = self.furthest_first.into_sorted_vec().into_iter();
        entries.map(|entry| (entry.squared, entry.item)).collect()
    }
}

#[derive(Clone, Debug)]
struct Entry<T> {
    squared: f64,
    item: T,
}

impl<T: Ord> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_distance = self.squared.total_cmp(&other.squared);
        by_distance.then_with(|| self.item.cmp(&other.item))
    }
}

impl<T: Ord> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Entry<T> {}
