//! A parser for the Python literals that occur in dtypes.

use super::NumpyDtypeError;

/// The unparsed rest of a literal.
pub(super) struct Literal<'a> {
    rest: core::iter::Peekable<core::str::Chars<'a>>,
}

impl<'a> Literal<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text.chars().peekable(),
        }
    }

    /// Returns the next character that is not a space.
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.rest.next_if(|mark| mark.is_whitespace()).is_some() {}
        self.rest.peek().copied()
    }

    /// Consumes `mark` if it is next.
    pub(super) fn eat(&mut self, mark: char) -> bool {
        let is_next = self.peek() == Some(mark);
        if is_next {
            self.rest.next();
        }
        is_next
    }

    pub(super) fn expect(&mut self, mark: char) -> Result<(), NumpyDtypeError> {
        if self.eat(mark) {
            Ok(())
        } else {
            Err(NumpyDtypeError::Record)
        }
    }

    pub(super) fn end(&mut self) -> Result<(), NumpyDtypeError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(NumpyDtypeError::Record),
        }
    }

    /// Parses text in single or double quotes, with the escapes that occur in names.
    pub(super) fn string(&mut self) -> Result<String, NumpyDtypeError> {
        let quote = self
            .peek()
            .filter(|mark| matches!(mark, '\'' | '"'))
            .ok_or(NumpyDtypeError::Record)?;
        self.rest.next();
        let mut text = String::new();
        loop {
            match self.rest.next().ok_or(NumpyDtypeError::Record)? {
                '\\' => {
                    let mark = self.rest.next().ok_or(NumpyDtypeError::Record)?;
                    text.push(self.escaped(mark)?);
                }
                mark if mark == quote => return Ok(text),
                mark => text.push(mark),
            }
        }
    }

    fn escaped(&mut self, mark: char) -> Result<char, NumpyDtypeError> {
        let digits = match mark {
            '\\' | '\'' | '"' => return Ok(mark),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return Err(NumpyDtypeError::Record),
        };
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self
                .rest
                .next()
                .and_then(|mark| mark.to_digit(16))
                .ok_or(NumpyDtypeError::Record)?;
            code = code.checked_mul(16).ok_or(NumpyDtypeError::Record)? | digit;
        }
        char::from_u32(code).ok_or(NumpyDtypeError::Record)
    }

    pub(super) fn number(&mut self) -> Result<u32, NumpyDtypeError> {
        self.peek();
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().map_err(|_| NumpyDtypeError::Record)
    }
}
