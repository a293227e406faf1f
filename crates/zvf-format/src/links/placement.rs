//! Placement of the copies of a record that is stored once per chunk.

use super::{LinkWidth, LinkWidthError, MAX_WIDTH, Permutation};

/// The placements of a record in a family with `store: duplicate`: one for each **distinct** chunk
/// of the record.
///
/// The endpoints are taken in canonical order, ascending by chunk and then vertex row; each copy
/// starts with the first endpoint of its chunk, followed by the other endpoints in ascending input
/// position. Every copy has its own code, so all decode to the same record. Created by
/// [`duplicates`].
#[derive(Clone, Debug)]
pub struct Duplicates {
    width: LinkWidth,
    leaders: [u8; MAX_WIDTH],
    count: usize,
    next: usize,
}

/// Returns the placements of a record in a family with `store: duplicate`.
///
/// ```
/// use zvf_format::links::duplicates;
///
/// let record = [([5, 0, 0], 3), ([0, 0, 0], 1), ([0, 0, 0], 2)];
/// let copies: Vec<_> = duplicates(&record)?.collect();
/// assert_eq!(copies[0].slots(), [1, 0, 2]); // cell 0.0.0 5.0.0 0.0.0, code 2
/// assert_eq!(copies[1].slots(), [0, 1, 2]); // cell 5.0.0 0.0.0 0.0.0, code 0
/// assert_eq!(copies.len(), 2);
/// # Ok::<(), zvf_format::links::LinkWidthError>(())
/// ```
///
/// # Errors
///
/// [`LinkWidthError`] if there are no endpoints or more than 8.
pub fn duplicates<C: Ord>(endpoints: &[(C, u64)]) -> Result<Duplicates, LinkWidthError> {
    let order = Permutation::sorting(endpoints)?;
    let mut leaders = [0; MAX_WIDTH];
    let mut count = 0usize;
    let mut last: Option<&C> = None;
    for &at in order.slots() {
        let Some((chunk, _)) = endpoints.get(usize::from(at)) else {
            continue;
        };
        if last.replace(chunk) == Some(chunk) {
            continue;
        }
        if let Some(leader) = leaders.get_mut(count) {
            *leader = at;
        }
        count = count.saturating_add(1);
    }
    Ok(Duplicates {
        width: order.width(),
        leaders,
        count,
        next: 0,
    })
}

impl Iterator for Duplicates {
    type Item = Permutation;

    fn next(&mut self) -> Option<Permutation> {
        let leader = *self.leaders.get(..self.count)?.get(self.next)?;
        self.next = self.next.saturating_add(1);
        Some(Permutation::led_by(self.width, leader))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.count.saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Duplicates {}
