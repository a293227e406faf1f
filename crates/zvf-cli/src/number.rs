//! Numbers as people read them.

/// A number with its digits in threes.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A count of things, with what one and what several are called.
pub(crate) fn counted(n: u64, [one, several]: [&str; 2]) -> String {
    let name = if n == 1 { one } else { several };
    format!("{} {name}", grouped(n))
}

/// A length as 64 bits hold it.
pub(crate) fn of_len(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_in_threes() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(counted(1_234_567, ["link", "links"]), "1 234 567 links");
        assert_eq!(counted(1, ["link", "links"]), "1 link");
    }
}
