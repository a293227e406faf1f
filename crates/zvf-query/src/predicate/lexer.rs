//! Text cut into tokens.

use super::{Number, ParseError, ParseErrorKind};

pub(super) const KEYWORDS: [&str; 9] = [
    "and", "or", "not", "in", "is", "between", "null", "true", "false",
];

const SYMBOLS: [&str; 12] = [
    "!=", "<=", ">=", "=", "<", ">", "(", ")", "[", "]", ",", ".",
];

/// A token; what is a keyword is for the parser to say.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// Letters, digits and `_`, as written.
    Word(&'a str),
    /// A name in quotes, without them.
    Quoted(String),
    /// Text in quotes, without them.
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

    /// The next token and the byte it starts at; the end again and again.
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
            let symbol = symbol.ok_or(error(ParseErrorKind::Character(first)))?;
            self.at += symbol.len();
            Token::Symbol(symbol)
        };
        Ok((at, token))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The longest start of the rest whose characters all fit.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    /// What is between here and the closing quote; two quotes are one.
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

    /// Everything that could belong to a number is taken, so that `1x` and
    /// `1.2.3` are one bad number rather than two tokens.
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
        // What std reads beyond digits, points and exponents is no literal: a number begins
        // with a digit or a point, so neither `inf` nor `nan` gets here.
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
    c.is_ascii_alphabetic() || c == '_'
}

pub(super) fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
