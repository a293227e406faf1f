//! Limits and errors of the predicate parser.

use std::fmt;

/// Maximum length of a predicate's text, in bytes.
pub const MAX_LENGTH: usize = 1 << 16;

/// Maximum nesting depth of parentheses and `not`.
pub const MAX_DEPTH: usize = 64;

/// A syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {kind}")]
pub struct ParseError {
    /// Byte offset of the error; the length of the text for an error at its end.
    pub at: usize,
    /// Kind of the error.
    pub kind: ParseErrorKind,
}

/// Kinds of syntax errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Another token was expected.
    #[error("expected {0}")]
    Expected(Expected),
    /// The text that starts here lacks its closing quote.
    #[error("text without closing '")]
    UnclosedText,
    /// The name that starts here lacks its closing quote.
    #[error("name without closing \"")]
    UnclosedName,
    /// The number that starts here is malformed or too large.
    #[error("not an integer of 64 bits or a finite float")]
    Number,
    /// The name before this point is not a scope.
    #[error(
        "only vertex, fragment, link, object or group may precede a point; put a name with a point in \"quotes\""
    )]
    Scope,
    /// This text has other characters than letters, digits and `_`.
    #[error(
        "write \"{0}\" in double quotes if it is the name of an attribute, or '{0}' in single quotes if it is text"
    )]
    Unquoted(String),
    /// A symbol of another language starts here; the text is the spelling in this one.
    #[error("write `{0}`")]
    Write(&'static str),
    /// No token starts with this character.
    #[error("no token starts with {0:?}")]
    Character(char),
    /// Parentheses and `not` are nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH}")]
    TooDeep,
    /// The text is longer than [`MAX_LENGTH`] bytes.
    #[error("longer than {MAX_LENGTH} bytes")]
    TooLong,
}

impl ParseErrorKind {
    pub(super) fn at(self, at: usize) -> ParseError {
        ParseError { at, kind: self }
    }
}

/// The token that the parser expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// A column or a value.
    Operand,
    /// A value.
    Literal,
    /// The name after a scope.
    Name,
    /// The index of a channel.
    Channel,
    /// `]`
    ChannelEnd,
    /// A comparison operator: a value alone is not a predicate.
    Comparison,
    /// The `and` of a `between`.
    And,
    /// `between` or `in`, after a `not`.
    BetweenOrIn,
    /// `null` or `not null`
    NullOrNot,
    /// `null`
    Null,
    /// `(`
    Opening,
    /// `)`
    Closing,
    /// `,` or `)`
    ListEnd,
    /// The end of the text, or `and` or `or`.
    End,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operand => "a column or a value",
            Self::Literal => "a value",
            Self::Name => "a name",
            Self::Channel => "the index of a channel",
            Self::ChannelEnd => "`]`",
            Self::Comparison => "a comparison",
            Self::And => "`and`",
            Self::BetweenOrIn => "`between` or `in`",
            Self::NullOrNot => "`null` or `not null`",
            Self::Null => "`null`",
            Self::Opening => "`(`",
            Self::Closing => "`)`, `and` or `or`",
            Self::ListEnd => "`,` or `)`",
            Self::End => "a comparison, `and`, `or` or the end",
        })
    }
}
