//! What a misspelt name was meant to be.

/// The name that is likely meant by one that is not there: one of the same letters in another case,
/// or one that a few slips away. `None` when nothing is near.
///
/// ```
/// use zvf_query::closest;
///
/// let there = ["object.length", "object.bundle"];
/// assert_eq!(closest("object.lenght", there), Some("object.length"));
/// assert_eq!(closest("radius", there), None);
/// ```
pub fn closest<'a>(name: &str, there: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let slips = |other: &str| strsim::damerau_levenshtein(&name, &other.to_lowercase());
    let near = there.into_iter().map(|other| (slips(other), other));
    // A slip in a name of two letters leaves half of it; more than a third is another name.
    let near =
        near.filter(|(slips, _)| *slips <= 1 || slips.saturating_mul(3) <= name.chars().count());
    let (_, other) = near.min_by_key(|(slips, _)| *slips)?;
    Some(other)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_slip_is_found_and_another_name_is_not() {
        let there = ["fa", "radius", "X"];
        assert_eq!(closest("faa", there), Some("fa"));
        assert_eq!(closest("raduis", there), Some("radius"));
        assert_eq!(closest("x", there), Some("X"));
        assert_eq!(closest("curvature", there), None);
        assert_eq!(closest("fa", []), None);
    }
}
