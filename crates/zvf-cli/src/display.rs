//! Numbers and words as text.

use std::{borrow::Cow, fmt::Write as _};

pub(crate) use zvf_files::display::{
    count_noun, dropped_note, group_digits, len_u64, narrow_float, shell_word,
};

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

/// Joins the extents of a shape.
pub(crate) fn extents(shape: &[u64]) -> String {
    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
    shape.join("×")
}

/// Escapes control characters of a text from a store, which could control the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
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
        if is_unsafe(character) {
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
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
}
