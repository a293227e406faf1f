//! A recursive-descent parser of predicates.

use super::{
    ColumnRef, Comparison, Expected, Literal, MAX_DEPTH, MAX_LENGTH, Number, Operand, ParseError,
    ParseErrorKind, Predicate, Scope, Truth,
    lexer::{KEYWORDS, Lexer, Token, is_name_part},
};

impl Predicate {
    /// Parses a predicate; the [module](super) documents the language.
    ///
    /// ```
    /// use zvf_query::predicate::Predicate;
    ///
    /// let text = "\"my column\"[2] between -1 and 2.5 and not object.done";
    /// assert_eq!(Predicate::parse(text)?.to_string(), text);
    /// # Ok::<(), zvf_query::predicate::ParseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ParseError`] with the position of the first error and the expected token.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.len() > MAX_LENGTH {
            return Err(ParseErrorKind::TooLong.at(MAX_LENGTH));
        }
        whole(text).map_err(|error| match error.kind {
            ParseErrorKind::Character(_)
            | ParseErrorKind::Number
            | ParseErrorKind::Expected(Expected::End) => match unquoted(text, error.at) {
                Some((at, name)) => ParseErrorKind::Unquoted(name.to_owned()).at(at),
                None => error,
            },
            _ => error,
        })
    }
}

fn whole(text: &str) -> Result<Predicate, ParseError> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        at: 0,
        token: Token::End,
        depth: 0,
    };
    parser.advance()?;
    let predicate = parser.or()?;
    match parser.token {
        Token::End => Ok(predicate),
        _ => Err(parser.expected(Expected::End)),
    }
}

/// Returns the text around an error that lacks quotes if it is one name or text: several words, or one
/// with other characters than letters, digits and `_`. Also returns its start.
fn unquoted(text: &str, at: usize) -> Option<(usize, &str)> {
    let is_end = |letter: char| "<>=!(),[]|&".contains(letter);
    let is_keyword = |word: &&str| KEYWORDS.iter().any(|k| k.eq_ignore_ascii_case(word));
    let start = text.get(..at)?.rfind(is_end).map_or(0, |end| end + 1);
    let end = text
        .get(at..)?
        .find(is_end)
        .map_or(text.len(), |end| at + end);
    // Words from the last keyword before the error to the first after it.
    let mut words = text.get(start..end)?.split_inclusive(char::is_whitespace);
    let (mut from, mut to) = (start, start);
    for word in words.by_ref() {
        let next = to + word.len();
        if is_keyword(&word.trim()) {
            if to > at {
                break;
            }
            from = next;
        }
        to = next;
    }
    let name = text.get(from..to)?;
    let trimmed = name.trim();
    let is_word = trimmed.chars().all(is_name_part);
    let has_quotes = trimmed.contains(['\'', '"']);
    let has_letter = trimmed.chars().any(char::is_alphabetic);
    let before = name.len() - name.trim_start().len();
    (has_letter && !is_word && !has_quotes).then_some((from + before, trimmed))
}

/// A logical operator: a keyword, and the symbol that means the same.
#[derive(Clone, Copy)]
struct Logical {
    word: &'static str,
    symbol: &'static str,
}

const OR: Logical = Logical {
    word: "or",
    symbol: "||",
};
const AND: Logical = Logical {
    word: "and",
    symbol: "&&",
};
const NOT: Logical = Logical {
    word: "not",
    symbol: "!",
};

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token; it starts at byte `at`.
    token: Token<'a>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn or(&mut self) -> Result<Predicate, ParseError> {
        self.chain(OR, Self::and, Predicate::Or)
    }

    fn and(&mut self) -> Result<Predicate, ParseError> {
        self.chain(AND, Self::not, Predicate::And)
    }

    fn chain(
        &mut self,
        operator: Logical,
        part: impl Fn(&mut Self) -> Result<Predicate, ParseError>,
        join: impl Fn(Vec<Predicate>) -> Predicate,
    ) -> Result<Predicate, ParseError> {
        let first = part(self)?;
        if !self.is_operator(operator) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.is_operator(operator) {
            self.advance()?;
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    fn not(&mut self) -> Result<Predicate, ParseError> {
        if self.is_operator(NOT) {
            return self.nested(|parser| {
                parser.advance()?;
                Ok(Predicate::Not(Box::new(parser.not()?)))
            });
        }
        if self.token == Token::Symbol("(") {
            return self.nested(|parser| {
                parser.advance()?;
                let inner = parser.or()?;
                parser.require(")", Expected::Closing)?;
                Ok(inner)
            });
        }
        self.test()
    }

    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Predicate, ParseError>,
    ) -> Result<Predicate, ParseError> {
        if self.depth == MAX_DEPTH {
            return Err(ParseErrorKind::TooDeep.at(self.at));
        }
        self.depth += 1;
        let inner = inner(self)?;
        self.depth -= 1;
        Ok(inner)
    }

    fn test(&mut self) -> Result<Predicate, ParseError> {
        let operand = self.operand()?;
        if let Some(comparison) = self.comparison() {
            self.advance()?;
            return Ok(Predicate::Compare {
                left: operand,
                comparison,
                right: self.operand()?,
            });
        }
        if self.skip_keyword("is")? {
            let not = self.skip_keyword("not")?;
            if !self.skip_keyword("null")? {
                let expected = if not {
                    Expected::Null
                } else {
                    Expected::NullOrNot
                };
                return Err(self.expected(expected));
            }
            return Ok(negated(not, Predicate::IsNull(operand)));
        }
        let not = self.skip_keyword("not")?;
        if self.skip_keyword("between")? {
            let low = self.operand()?;
            if !self.skip_keyword("and")? {
                return Err(self.expected(Expected::And));
            }
            let high = self.operand()?;
            return Ok(negated(not, Predicate::Between { operand, low, high }));
        }
        if self.skip_keyword("in")? {
            let list = self.list()?;
            return Ok(negated(not, Predicate::In { operand, list }));
        }
        match operand {
            _ if not => Err(self.expected(Expected::BetweenOrIn)),
            Operand::Column(column) => Ok(Predicate::IsTrue(column)),
            Operand::Literal(Literal::Bool(value)) => Ok(Predicate::Constant(value.into())),
            Operand::Literal(Literal::Null) => Ok(Predicate::Constant(Truth::Unknown)),
            Operand::Literal(_) => Err(self.expected(Expected::Comparison)),
        }
    }

    fn list(&mut self) -> Result<Vec<Literal>, ParseError> {
        self.require("(", Expected::Opening)?;
        let mut list = vec![self.literal()?];
        while self.skip(",")? {
            list.push(self.literal()?);
        }
        self.require(")", Expected::ListEnd)?;
        Ok(list)
    }

    fn literal(&mut self) -> Result<Literal, ParseError> {
        let literal = self.take_literal()?;
        literal.ok_or_else(|| self.expected(Expected::Literal))
    }

    fn operand(&mut self) -> Result<Operand, ParseError> {
        if let Some(literal) = self.take_literal()? {
            return Ok(Operand::Literal(literal));
        }
        let mut scope = None;
        let mut name = self.name(Expected::Operand)?;
        if self.token == Token::Symbol(".") {
            let (word, in_quotes) = &name;
            let named = |scope: &Scope| scope.name() == word && !in_quotes;
            let found = Scope::ALL.into_iter().find(named);
            scope = Some(found.ok_or_else(|| ParseErrorKind::Scope.at(self.at))?);
            self.advance()?;
            name = self.name(Expected::Name)?;
        }
        let channel = if self.skip("[")? {
            let Token::Number(Number::Int(channel)) = self.token else {
                return Err(self.expected(Expected::Channel));
            };
            let channel = u32::try_from(channel).map_err(|_| self.expected(Expected::Channel))?;
            self.advance()?;
            self.require("]", Expected::ChannelEnd)?;
            Some(channel)
        } else {
            None
        };
        Ok(Operand::Column(ColumnRef {
            scope,
            name: name.0,
            channel,
        }))
    }

    /// Parses a name and returns it with a flag that is `true` for a quoted name.
    fn name(&mut self, expected: Expected) -> Result<(String, bool), ParseError> {
        let name = match &self.token {
            Token::Word(word) if !KEYWORDS.iter().any(|k| k.eq_ignore_ascii_case(word)) => {
                ((*word).to_owned(), false)
            }
            Token::Quoted(name) => (name.clone(), true),
            _ => return Err(self.expected(expected)),
        };
        self.advance()?;
        Ok(name)
    }

    fn take_literal(&mut self) -> Result<Option<Literal>, ParseError> {
        let literal = match &self.token {
            Token::Number(number) => Literal::Number(*number),
            Token::Text(text) => Literal::Text(text.clone()),
            _ if self.is_keyword("true") => Literal::Bool(true),
            _ if self.is_keyword("false") => Literal::Bool(false),
            _ if self.is_keyword("null") => Literal::Null,
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(literal))
    }

    fn comparison(&self) -> Option<Comparison> {
        let Token::Symbol(symbol) = self.token else {
            return None;
        };
        let symbol = match symbol {
            "==" => "=",
            "<>" => "!=",
            symbol => symbol,
        };
        let mut all = Comparison::ALL.into_iter();
        all.find(|comparison| comparison.symbol() == symbol)
    }

    /// Returns whether the next token is this logical operator, as a word or as a symbol.
    fn is_operator(&self, operator: Logical) -> bool {
        self.is_keyword(operator.word) || self.token == Token::Symbol(operator.symbol)
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn skip_keyword(&mut self, keyword: &str) -> Result<bool, ParseError> {
        let found = self.is_keyword(keyword);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn skip(&mut self, symbol: &'static str) -> Result<bool, ParseError> {
        let found = self.token == Token::Symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn require(&mut self, symbol: &'static str, expected: Expected) -> Result<(), ParseError> {
        if self.skip(symbol)? {
            return Ok(());
        }
        Err(self.expected(expected))
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        (self.at, self.token) = self.lexer.next()?;
        Ok(())
    }

    fn expected(&self, expected: Expected) -> ParseError {
        ParseErrorKind::Expected(expected).at(self.at)
    }
}

fn negated(not: bool, predicate: Predicate) -> Predicate {
    if not {
        Predicate::Not(Box::new(predicate))
    } else {
        predicate
    }
}
