//! The order in which a record's endpoints are stored, and its code.

use core::fmt;

use super::{LinkWidth, LinkWidthError, MAX_WIDTH};

/// The order in which a link's endpoints are stored.
///
/// `slots()[i]` is the **input** position of the endpoint stored in slot `i`,
/// so `input[slots[i]] = stored[i]`. On disk it is one number, its rank among
/// all permutations in lexicographic order (Lehmer code):
///
/// ```text
/// code = Σ i in 0..L  rank(i) · (L − 1 − i)!
/// rank(i) = how many later slots j > i hold a smaller input position
/// ```
///
/// Codes run from 0, the identity, to L! − 1. For L = 2, 1 means swapped; for L = 3 the codes 0 to
/// 5 are the slots 012, 021, 102, 120, 201, 210. To decode, take the digits of `code` in the
/// factorial number system; each is the index of an input position among those not yet used.
///
/// ```
/// use zvf_format::links::{LinkWidth, Permutation};
///
/// // A triangle stored with corners A B C, code 3: the input was C A B.
/// let order = Permutation::from_code(LinkWidth::TRIANGLE, 3)?;
/// assert_eq!(order.slots(), [1, 2, 0]);
/// let stored = ['A', 'B', 'C'];
/// let input: String = (0..3).filter_map(|at| Some(stored[order.slot_of(at)?])).collect();
/// assert_eq!(input, "CAB");
/// # Ok::<(), zvf_format::links::PermutationError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permutation {
    width: LinkWidth,
    slots: [u8; MAX_WIDTH],
}

const IDENTITY: [u8; MAX_WIDTH] = [0, 1, 2, 3, 4, 5, 6, 7];

impl Permutation {
    /// Creates the permutation of endpoints stored in input order.
    pub fn identity(width: LinkWidth) -> Self {
        Self {
            width,
            slots: IDENTITY,
        }
    }

    /// Returns the permutation with this code.
    ///
    /// # Errors
    ///
    /// [`PermutationError::Code`] if it is negative or not below L!.
    pub fn from_code(width: LinkWidth, code: i64) -> Result<Self, PermutationError> {
        let refused = PermutationError::Code { width, code };
        let mut left = u64::try_from(code).map_err(|_| refused)?;
        let mut ranks = [0u8; MAX_WIDTH];
        // Least significant digit first: slot L − 1 has one choice left, slot 0 has L.
        let used = ranks.get_mut(..width.get()).ok_or(refused)?;
        for (rank, choices) in used.iter_mut().rev().zip(1..) {
            let digit = left.checked_rem(choices).ok_or(refused)?;
            left = left.checked_div(choices).ok_or(refused)?;
            *rank = u8::try_from(digit).map_err(|_| refused)?;
        }
        if left != 0 {
            return Err(refused);
        }
        let mut slots = IDENTITY;
        let mut unused = u8::MAX;
        for (slot, &rank) in slots.iter_mut().zip(ranks.iter()).take(width.get()) {
            *slot = nth_one(unused, rank);
            unused &= !1u8.wrapping_shl(u32::from(*slot));
        }
        Ok(Self { width, slots })
    }

    /// Returns the permutation with these slots.
    ///
    /// # Errors
    ///
    /// [`PermutationError::Slots`] if they are not 1 to 8 distinct positions.
    pub fn from_slots(slots: &[u8]) -> Result<Self, PermutationError> {
        let width = u64::try_from(slots.len()).ok();
        let width = width
            .and_then(|width| LinkWidth::new(width).ok())
            .ok_or(PermutationError::Slots)?;
        let mut found = IDENTITY;
        let mut unused = u8::MAX;
        for (slot, &position) in found.iter_mut().zip(slots) {
            let bit = 1u8.wrapping_shl(u32::from(position));
            if usize::from(position) >= slots.len() || unused & bit == 0 {
                return Err(PermutationError::Slots);
            }
            unused &= !bit;
            *slot = position;
        }
        Ok(Self {
            width,
            slots: found,
        })
    }

    /// Returns the order that sorts `endpoints` ascending; equal ones keep their order.
    ///
    /// This is the canonical placement of an undirected link when the keys are
    /// `(chunk coordinates, vertex row)`: chunks compare lexicographically as numbers, the vertex
    /// row breaks ties inside a chunk, and equal endpoints keep their order.
    ///
    /// ```
    /// use zvf_format::links::Permutation;
    ///
    /// let endpoints = [([0, 0, 1], 4), ([0, 0, 0], 9), ([0, 0, 0], 2)];
    /// let order = Permutation::sorting(&endpoints)?;
    /// assert_eq!((order.slots(), order.code()), (&[2, 1, 0][..], 5));
    /// # Ok::<(), zvf_format::links::LinkWidthError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LinkWidthError`] if there are none or more than 8.
    pub fn sorting<K: Ord>(endpoints: &[K]) -> Result<Self, LinkWidthError> {
        let width = u64::try_from(endpoints.len()).unwrap_or(u64::MAX);
        let width = LinkWidth::new(width)?;
        let mut slots = IDENTITY;
        for (at, endpoint) in (0u8..).zip(endpoints) {
            let before = |(other_at, other): (u8, &K)| match other.cmp(endpoint) {
                core::cmp::Ordering::Less => true,
                core::cmp::Ordering::Equal => other_at < at,
                core::cmp::Ordering::Greater => false,
            };
            let slot = (0u8..).zip(endpoints).filter(|&pair| before(pair)).count();
            if let Some(slot) = slots.get_mut(slot) {
                *slot = at;
            }
        }
        Ok(Self { width, slots })
    }

    /// Returns the code of this permutation on disk.
    pub fn code(&self) -> i64 {
        let slots = self.slots();
        let mut code = 0i64;
        let choices = (0..=slots.len()).rev();
        for ((at, slot), choices) in slots.iter().enumerate().zip(choices) {
            let later = slots.iter().skip(at).filter(|&later| later < slot);
            // At most 8! − 1; nothing wraps.
            let choices = i64::try_from(choices).unwrap_or(0);
            let rank = i64::try_from(later.count()).unwrap_or(0);
            code = code.wrapping_mul(choices).wrapping_add(rank);
        }
        code
    }

    /// Returns the number of endpoints.
    #[inline]
    pub fn width(&self) -> LinkWidth {
        self.width
    }

    /// Returns the input position of the endpoint in each slot.
    pub fn slots(&self) -> &[u8] {
        self.slots.get(..self.width.get()).unwrap_or(&self.slots)
    }

    /// Returns the slot of endpoint `input` in input order.
    pub fn slot_of(&self, input: usize) -> Option<usize> {
        let input = u8::try_from(input).ok()?;
        self.slots().iter().position(|&at| at == input)
    }

    /// Returns whether the endpoints are stored in input order.
    #[inline]
    pub fn is_identity(&self) -> bool {
        self.slots == IDENTITY
    }

    /// Returns the slots with the one at `leader` moved to the front and the rest in ascending
    /// input order.
    pub(crate) fn led_by(width: LinkWidth, leader: u8) -> Self {
        let rest = (0u8..).filter(|&at| at != leader);
        let mut slots = IDENTITY;
        let order = core::iter::once(leader).chain(rest).take(width.get());
        for (slot, at) in slots.iter_mut().zip(order) {
            *slot = at;
        }
        Self { width, slots }
    }
}

impl fmt::Debug for Permutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.slots()).finish()
    }
}

/// Returns the position of the `nth` set bit, counted from 0; 0 if there is none.
fn nth_one(bits: u8, nth: u8) -> u8 {
    let mut ones = (0u8..8).filter(|&at| bits.wrapping_shr(u32::from(at)) & 1 == 1);
    ones.nth(usize::from(nth)).unwrap_or(0)
}

/// Reason that a number or a list is not a permutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PermutationError {
    /// The code is negative or not below the factorial of the width.
    #[error("permutation code {code} is not below {width}!")]
    Code {
        /// The link width.
        width: LinkWidth,
        /// The code found.
        code: i64,
    },
    /// Positions repeat, or there are not 1 to 8 of them.
    #[error("the slots do not name each of 1 to 8 positions once")]
    Slots,
}
