//! Splits the text of a predicate into tokens.

use super::{Number, ParseError, ParseErrorKind};

pub(super) const KEYWORDS: [&str; 9] = [
    "and", "or", "not", "in", "is", "between", "null", "true", "false",
];

/// Symbols; one that starts with another precedes it.
const SYMBOLS: [&str; 17] = [
    "!=", "<=", ">=", "<>", "==", "&&", "||", "=", "<", ">", "!", "(", ")", "[", "]", ",", ".",
];

/// Symbols of other languages, and the spelling in this one.
const FOREIGN: [(&str, &str); 15] = [
    ("=>", ">="),
    ("=<", "<="),
    ("≥", ">="),
    ("≤", "<="),
    ("≠", "!="),
    ("∧", "and"),
    ("∨", "or"),
    ("¬", "not"),
    ("‘", "'"),
    ("’", "'"),
    ("“", "\""),
    ("”", "\""),
    ("`", "\""),
    ("&", "and"),
    ("|", "or"),
];

/// A token. Keywords are words; the parser tells them apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// Letters, digits and `_`, as written.
    Word(&'a str),
    /// A name in double quotes, without the quotes.
    Quoted(String),
    /// Text in single quotes, without the quotes.
    Text(String),
    Number(Number),
    Symbol(&'static str),
    End,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next token and the byte offset of its start. Returns [`Token::End`] repeatedly
    /// at the end.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'a>), ParseError> {
        self.take(char::is_whitespace);
        let at = self.at;
        let error = |kind| ParseError { at, kind };
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok((at, Token::End));
        };
        let token = if is_name_start(first) {
            Token::Word(self.take(is_name_part))
        } else if first == '\'' {
            let text = self.quoted('\'');
            Token::Text(text.ok_or(error(ParseErrorKind::UnclosedText))?)
        } else if first == '"' {
            let name = self.quoted('"');
            Token::Quoted(name.ok_or(error(ParseErrorKind::UnclosedName))?)
        } else if starts_number(rest) {
            Token::Number(self.number().ok_or(error(ParseErrorKind::Number))?)
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let foreign = FOREIGN.into_iter().find(|(other, _)| {
                rest.starts_with(other) && symbol.is_none_or(|symbol| symbol.len() < other.len())
            });
            if let Some((_, instead)) = foreign {
                return Err(error(ParseErrorKind::Write(instead)));
            }
            let symbol = symbol.ok_or(error(ParseErrorKind::Character(first)))?;
            self.at += symbol.len();
            Token::Symbol(symbol)
        };
        Ok((at, token))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Consumes the longest prefix whose characters all satisfy `fits`.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    /// Consumes quoted text and returns its content; two quotes in a row stand for one. Returns
    /// `None` if the closing quote is missing.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        loop {
            self.at += quote.len_utf8();
            text.push_str(self.take(|c| c != quote));
            self.rest().strip_prefix(quote)?;
            self.at += quote.len_utf8();
            if !self.rest().starts_with(quote) {
                return Some(text);
            }
            text.push(quote);
        }
    }

    /// Consumes a number. Takes every character that could belong to one, so that `1x` and `1.2.3`
    /// are one invalid number rather than two tokens.
    fn number(&mut self) -> Option<Number> {
        let start = self.at;
        self.at += 1;
        self.take(is_number_part);
        while self.text.get(..self.at).is_some_and(ends_in_exponent)
            && self.rest().starts_with(['+', '-'])
        {
            self.at += 1;
            self.take(is_number_part);
        }
        let text = self.text.get(start..self.at)?;
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let signed = text.parse().map(Number::Int);
            return signed.or_else(|_| text.parse().map(Number::UInt)).ok();
        }
        // std also parses `inf` and `nan`; they do not get here, because a number starts with a
        // digit or a point.
        let value: f64 = text.parse().ok()?;
        value.is_finite().then_some(Number::Float(value))
    }
}

fn starts_number(rest: &str) -> bool {
    let unsigned = rest.strip_prefix('-').unwrap_or(rest);
    let digits = unsigned.strip_prefix('.').unwrap_or(unsigned);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

fn ends_in_exponent(text: &str) -> bool {
    text.ends_with(['e', 'E'])
}

fn is_number_part(c: char) -> bool {
    is_name_part(c) || c == '.'
}

pub(super) fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

pub(super) fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
