//! Text from a store, shortened for messages.

use core::fmt;

/// The beginning of a text from a store, short enough for a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Excerpt(Box<str>);

impl Excerpt {
    const CHARS: usize = 64;

    /// Returns the first characters of `text`, with control characters escaped.
    pub fn of(text: &str) -> Self {
        let mut short: String = text
            .chars()
            .take(Self::CHARS)
            .flat_map(|c| {
                let plain = !c.is_control();
                let escaped = (!plain).then(|| c.escape_default());
                escaped.into_iter().flatten().chain(plain.then_some(c))
            })
            .collect();
        if text.chars().nth(Self::CHARS).is_some() {
            short.push('…');
        }
        Self(short.into_boxed_str())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
