//! Numbers and words as text.

use std::{borrow::Cow, fmt::Write as _};

/// Formats a number with blanks between groups of three digits.
pub(crate) fn group_digits(n: u64) -> String {
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
pub(crate) fn count_noun(n: u64, singular: &str, plural: &str) -> String {
    let noun = if n == 1 { singular } else { plural };
    format!("{} {noun}", group_digits(n))
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain =
        |character: char| character.is_alphanumeric() || "_-.,:/=+@%".contains(character);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Formats a number that was widened from float32 or less with its own digits, not those of the
/// wide type.
pub(crate) fn narrow_float(value: f64) -> String {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "it was widened from an f32 or less"
    )]
    let value = value as f32;
    format!("{value:?}")
}

/// Formats a bound of narrow floats with few digits, so that the box of the printed numbers still
/// contains all vertices: the text is the bound itself, or lies on its outer side.
pub(crate) fn narrow_bound(bound: f64, is_outside: impl Fn(f64) -> bool) -> String {
    let exact = bound.to_string();
    let is_narrow = |text: &str| text.parse::<f32>().ok().map(f64::from) == Some(bound);
    let rounded = (8..16).map(|digits| format!("{bound:.digits$e}"));
    let texts = [narrow_float(bound)].into_iter().chain(rounded);
    let mut values = texts.filter_map(|text| text.parse::<f64>().ok());
    match values.find(|value| value.total_cmp(&bound).is_eq() || is_outside(*value)) {
        Some(value) if is_narrow(&exact) => value.to_string(),
        _ => exact,
    }
}

/// Escapes control characters of a text from a store, which could control the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// Escapes everything in an output that could control a terminal or reorder its text, except line
/// ends and tabs. Names in stores and files, and errors about them, contain it by accident or
/// intention. The escapes are those of JSON, so that JSON keeps its meaning.
pub(crate) fn for_terminal(text: &str) -> Cow<'_, str> {
    let is_unsafe = |character: char| match character {
        '\n' | '\t' => false,
        // Marks of writing direction.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        character => character.is_control(),
    };
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_unsafe(character) {
            true => {
                let _ = write!(shown, "\\u{:04x}", u32::from(character));
            }
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Adds notes to the lines of a report, after a blank line.
pub(crate) fn push_notes(lines: &mut Vec<String>, notes: &[String]) {
    if !notes.is_empty() {
        lines.push(String::new());
        lines.extend(notes.iter().map(|note| format!("note: {note}")));
    }
}

/// Converts a length to 64 bits.
pub(crate) fn len_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_a_terminal_cannot_control_it() {
        let shown = for_terminal("a\u{1b}]0;b\u{7}\r\u{9b}2J\u{7f}\u{202e}c\n\td é");
        let want = "a\\u001b]0;b\\u0007\\u000d\\u009b2J\\u007f\\u202ec\n\td é";
        assert_eq!(shown, want);
        assert!(matches!(for_terminal("a é\n"), Cow::Borrowed("a é\n")));
    }

    #[test]
    fn digits_are_grouped_in_threes() {
        assert_eq!(group_digits(0), "0");
        assert_eq!(group_digits(999), "999");
        assert_eq!(group_digits(1000), "1 000");
    }

    #[test]
    fn narrow_floats_show_their_own_digits() {
        assert_eq!(narrow_float(f64::from(0.3_f32)), "0.3");
        let wide = f64::from(-57.014_183_f32);
        let lower = narrow_bound(wide, |value| value < wide);
        assert_eq!(lower, "-57.014183044434");
        let upper = narrow_bound(wide, |value| value > wide);
        assert_eq!(upper, "-57.014183");
        // A bound that is not a float32 is printed unchanged.
        assert_eq!(narrow_bound(0.1, |value| value < 0.1), "0.1");
        assert_eq!(narrow_bound(12.5, |value| value < 12.5), "12.5");
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
