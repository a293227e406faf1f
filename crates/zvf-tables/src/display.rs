//! Numbers and words as text, in notes and errors.

/// Formats a number with blanks between groups of three digits.
pub fn group_digits(n: u64) -> String {
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

/// Formats a count with the noun in singular or plural.
pub fn count_noun(n: u64, singular: &str, plural: &str) -> String {
    let noun = if n == 1 { singular } else { plural };
    format!("{} {noun}", group_digits(n))
}

/// Returns the note about vertices that were read and not stored, because of the bounds of the store.
pub fn dropped_note(read: u64, stored: u64) -> Option<String> {
    let dropped = read.checked_sub(stored).filter(|dropped| *dropped > 0)?;
    let vertices = count_noun(dropped, "vertex", "vertices");
    Some(format!(
        "{vertices} dropped: outside the bounds, or in a path that leaves them"
    ))
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub fn shell_word(word: &str) -> String {
    let is_plain =
        |character: char| character.is_alphanumeric() || "_-.,:/=+@%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Formats a number that was widened from float32 or less with its own digits, not those of the
/// wide type.
pub fn narrow_float(value: f64) -> String {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "it was widened from an f32 or less"
    )]
    let value = value as f32;
    format!("{value:?}")
}

/// Converts a length to 64 bits.
pub fn len_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_in_threes() {
        assert_eq!(group_digits(0), "0");
        assert_eq!(group_digits(999), "999");
        assert_eq!(group_digits(1000), "1 000");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_word("x,y,z"), "x,y,z");
        assert_eq!(shell_word("x;y"), "'x;y'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn nouns_agree_with_counts() {
        assert_eq!(count_noun(1_234_567, "link", "links"), "1 234 567 links");
        assert_eq!(count_noun(1, "link", "links"), "1 link");
    }
}
