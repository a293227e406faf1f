//! Names of attributes: any text is a label, and an identifier is stored for it.
//!
//! The format requires the name of an attribute, which is also that of its node, to consist of letters,
//! digits and `_`, and not to start with a digit. A label that is such an identifier is stored
//! unchanged. In every other label, each other character is replaced by `_`, and a suffix tells what each `_`
//! stands for, so that a stored name means one label and no two labels share a stored name:
//!
//! | label | stored name |
//! |---|---|
//! | `fa` | `fa` |
//! | `HLA-A` | `HLA_A__u2d` |
//! | `mean FA` | `mean_FA__u20` |
//! | `mean_FA (z)` | `mean_FA__z___u_20_28_29` |
//! | `2d` | `_2d__ux` |
//!
//! After `__u` stands a code for each `_` before it, separated by `_`: nothing for `_` itself, `x` for the
//! one in front of a digit, and otherwise the code point in hexadecimal digits. The metadata of the
//! node has the label as `label`, for readers that do not know this rule.

use std::borrow::Cow;

use crate::metadata::JsonMembers;

/// Maximum length of a stored name in bytes.
const MAX_STORED_BYTES: usize = 200;

/// Separates the readable part of a stored name from the codes.
const CODES: &str = "__u";

/// Code of a `_` that no character of the label stands for.
const INSERTED: &str = "x";

/// Returns whether a name is stored unchanged.
fn is_identifier(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.chars().all(is_part) && !name.is_empty() && !starts_with_digit(name)
}

fn starts_with_digit(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns the name under which an attribute with this label is stored.
///
/// ```
/// use zvf_model::attribute_name::{label, stored_name};
///
/// assert_eq!(stored_name("HLA-A"), "HLA_A__u2d");
/// assert_eq!(label("HLA_A__u2d"), "HLA-A");
/// ```
pub fn stored_name(label: &str) -> Cow<'_, str> {
    if is_identifier(label) {
        return label.into();
    }
    let mut name = String::with_capacity(label.len());
    let mut codes = Vec::new();
    if label.is_empty() || starts_with_digit(label) {
        name.push('_');
        codes.push(INSERTED.to_owned());
    }
    for letter in label.chars() {
        if letter.is_ascii_alphanumeric() {
            name.push(letter);
            continue;
        }
        name.push('_');
        codes.push(match letter {
            '_' => String::new(),
            other => format!("{:x}", u32::from(other)),
        });
    }
    name.push_str(CODES);
    name.push_str(&codes.join("_"));
    name.into()
}

/// Returns the label of a stored name. A name that stands for no other label is its own label.
pub fn label(stored: &str) -> Cow<'_, str> {
    let decoded = decoded(stored).filter(|label| stored_name(label) == stored);
    decoded.map_or(Cow::Borrowed(stored), Cow::Owned)
}

fn decoded(stored: &str) -> Option<String> {
    let (name, codes) = stored.rsplit_once(CODES)?;
    let mut codes = codes.split('_');
    let mut label = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter != '_' {
            label.push(letter);
            continue;
        }
        match codes.next()? {
            INSERTED => {}
            "" => label.push('_'),
            code => label.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?),
        }
    }
    codes.next().is_none().then_some(label)
}

/// Returns why an attribute cannot have a label; `None` if it can.
pub fn problem(label: &str) -> Option<&'static str> {
    if label.is_empty() {
        Some("a name is not empty")
    } else if stored_name(label).len() > MAX_STORED_BYTES {
        Some(
            "a name is stored in at most 200 letters, digits and _, to which each other character \
             adds its code",
        )
    } else {
        None
    }
}

/// Adds the name of an attribute, by its label or stored name, to the metadata of its node.
pub(crate) fn write(members: JsonMembers, name: Option<&str>) -> JsonMembers {
    let stored = name.map(stored_name);
    let label = stored.as_deref().map(label);
    members.with_some("name", stored.as_deref()).with_some(
        "label",
        label
            .as_deref()
            .filter(|own| stored.as_deref() != Some(own)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_has_one_identifier() {
        for (text, expected) in [
            ("fa", "fa"),
            ("_", "_"),
            ("HLA-A", "HLA_A__u2d"),
            ("mean FA", "mean_FA__u20"),
            ("mean_FA (z)", "mean_FA__z___u_20_28_29"),
            ("2d", "_2d__ux"),
            ("-2", "_2__u2d"),
            ("", "___ux"),
            ("_2-", "_2___u_2d"),
            ("\u{1b}/..\\\u{0}", "________u1b_2f_2e_2e_5c_0"),
            ("Größe", "Gr__e__uf6_df"),
            ("平均", "____u5e73_5747"),
            ("🧠", "___u1f9e0"),
        ] {
            assert_eq!(stored_name(text), expected, "{text:?}");
            assert!(is_identifier(&stored_name(text)), "{text:?}");
            assert_eq!(label(expected), text);
            assert_eq!(stored_name(expected), expected);
        }
    }

    #[test]
    fn names_without_codes_are_their_own_labels() {
        for name in [
            "a__u",
            "a_b__u",
            "a_b__ux",
            "a_b__u2D",
            "a_b__u02d",
            "_b__u5f",
            "a__u2d",
            "HLA-A",
        ] {
            assert_eq!(label(name), name);
        }
        assert_eq!(problem(&"a".repeat(200)), None);
        for name in ["a".repeat(201), "é".repeat(50), String::new()] {
            assert!(problem(&name).is_some(), "{name:?}");
        }
    }
}
