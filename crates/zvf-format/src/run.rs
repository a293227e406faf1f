//! Recognition of lists that the encoders store as runs.

use core::ops::Range;

/// Returns the run `first..last + 1` if `numbers` are exactly that and not empty, and the end is a
/// valid number below 2^63.
pub(crate) fn ascending(numbers: impl IntoIterator<Item = u64>) -> Option<Range<u64>> {
    let mut numbers = numbers.into_iter();
    let start = numbers.next()?;
    let mut end = start.checked_add(1)?;
    for number in numbers {
        if number != end {
            return None;
        }
        end = end.checked_add(1)?;
    }
    i64::try_from(end).is_ok().then_some(start..end)
}
