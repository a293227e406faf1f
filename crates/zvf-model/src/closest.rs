//! Suggestions for misspelled names.

/// Returns the name likely intended by an unknown one: the same letters in another case, or a name
/// at a small edit distance. `None` if no name is similar.
///
/// ```
/// use zvf_model::closest::closest;
///
/// let there = ["object.length", "object.bundle"];
/// assert_eq!(closest("object.lenght", there), Some("object.length"));
/// assert_eq!(closest("radius", there), None);
/// ```
pub fn closest<'a>(name: &str, present: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let slips = |other: &str| strsim::damerau_levenshtein(&name, &other.to_lowercase());
    let near = present.into_iter().map(|other| (slips(other), other));
    // One error is accepted in any name of two letters or more. Otherwise, a distance of more than
    // a third of the letters means another name.
    let letters = name.chars().count();
    let near = near.filter(|(slips, _)| match slips {
        0 => true,
        1 => letters > 1,
        slips => slips.saturating_mul(3) <= letters,
    });
    let (_, other) = near.min_by_key(|(slips, _)| *slips)?;
    Some(other)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn typing_errors_are_matched_and_other_names_are_not() {
        let present = ["fa", "radius", "X"];
        assert_eq!(closest("faa", present), Some("fa"));
        assert_eq!(closest("raduis", present), Some("radius"));
        assert_eq!(closest("x", present), Some("X"));
        assert_eq!(closest("curvature", present), None);
        // Another letter is another name.
        assert_eq!(closest("β", present), None);
        assert_eq!(closest("fa", []), None);
    }
}
