//! Recognises the lists that the encoders store as runs.

use core::ops::Range;

/// The run `first..last + 1` when `numbers` are exactly that, not empty, and the
/// end is still a number the format has: below 2^63.
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
