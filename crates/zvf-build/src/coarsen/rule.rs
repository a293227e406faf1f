//! What becomes of values when what they are of becomes one.

use core::{fmt, str::FromStr};

use zvf_format::numeric::Kind;

/// How values of the coarser level come from those they stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregation {
    /// The value of what is kept.
    Own,
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The one that is there most often.
    Mode,
    /// How many there are.
    Count,
}

impl Aggregation {
    /// Every rule there is.
    pub const ALL: [Self; 7] = [
        Self::Own,
        Self::Mean,
        Self::Sum,
        Self::Min,
        Self::Max,
        Self::Mode,
        Self::Count,
    ];

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Mean => "mean",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mode => "mode",
            Self::Count => "count",
        }
    }

    /// The rule for values of this type when nobody says: their own where vertices are
    /// kept; else the mean of floats, complex numbers and colours (three or four
    /// `uint8`), and the mode of all that are names rather than quantities: codes of a
    /// dictionary, truth values, other integers.
    pub fn default_for(kind: Kind, columns: usize, is_coded: bool, is_kept: bool) -> Self {
        match kind {
            _ if is_kept => Self::Own,
            _ if is_coded => Self::Mode,
            Kind::UInt8 if !matches!(columns, 3 | 4) => Self::Mode,
            Kind::UInt8
            | Kind::Float16
            | Kind::Float32
            | Kind::Float64
            | Kind::Complex64
            | Kind::Complex128 => Self::Mean,
            _ => Self::Mode,
        }
    }

    /// Whether it makes sense of codes, which stand for words.
    pub fn suits_codes(self) -> bool {
        matches!(self, Self::Own | Self::Mode | Self::Count)
    }

    /// The rule for the level after one that this made: counts are added up.
    #[must_use]
    pub fn again(self) -> Self {
        match self {
            Self::Count => Self::Sum,
            rule => rule,
        }
    }

    /// The rule of an attribute, as in `fa=max`.
    ///
    /// ```
    /// use zvf_build::coarsen::Aggregation;
    ///
    /// assert_eq!(Aggregation::of_attribute("fa=max"), Ok(("fa", Aggregation::Max)));
    /// assert!(Aggregation::of_attribute("fa=most").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`ParseAggregationError`] says what is missing or unknown.
    pub fn of_attribute(text: &str) -> Result<(&str, Self), ParseAggregationError> {
        match text.rsplit_once('=') {
            Some((name, rule)) if !name.is_empty() => Ok((name, rule.parse()?)),
            _ => Err(ParseAggregationError::NoName(text.to_owned())),
        }
    }
}

impl fmt::Display for Aggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Aggregation {
    type Err = ParseAggregationError;

    fn from_str(text: &str) -> Result<Self, ParseAggregationError> {
        let rule = Self::ALL.into_iter().find(|rule| rule.name() == text);
        rule.ok_or_else(|| ParseAggregationError::Unknown(text.to_owned()))
    }
}

/// Why text names no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseAggregationError {
    /// No attribute is named before an equals sign.
    #[error("{0:?} is not an attribute, an equals sign and a rule, as in fa=max")]
    NoName(String),
    /// There is no such rule.
    #[error("{0:?} is none of own, mean, sum, min, max, mode and count")]
    Unknown(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named() {
        for rule in Aggregation::ALL {
            assert_eq!(rule.name().parse(), Ok(rule));
            let unknown = ParseAggregationError::Unknown(String::new()).to_string();
            assert!(unknown.contains(rule.name()), "{rule} is not told of");
        }
        assert_eq!(
            Aggregation::of_attribute("a=b=min"),
            Ok(("a=b", Aggregation::Min)),
            "the last sign counts"
        );
        for text in ["", "max", "=max"] {
            assert!(
                matches!(
                    Aggregation::of_attribute(text),
                    Err(ParseAggregationError::NoName(_))
                ),
                "{text}"
            );
        }
        assert_eq!(
            "MAX".parse::<Aggregation>(),
            Err(ParseAggregationError::Unknown("MAX".to_owned()))
        );
    }

    #[test]
    fn names_are_not_averaged() {
        let check = |kind, columns, is_coded, rule| {
            assert_eq!(
                Aggregation::default_for(kind, columns, is_coded, false),
                rule
            );
            assert_eq!(
                Aggregation::default_for(kind, columns, is_coded, true),
                Aggregation::Own
            );
        };
        check(Kind::Float16, 3, false, Aggregation::Mean);
        check(Kind::Complex64, 1, false, Aggregation::Mean);
        check(Kind::UInt8, 3, false, Aggregation::Mean);
        check(Kind::UInt8, 4, false, Aggregation::Mean);
        check(Kind::UInt8, 1, false, Aggregation::Mode);
        check(Kind::UInt8, 1, true, Aggregation::Mode);
        check(Kind::UInt64, 1, false, Aggregation::Mode);
        check(Kind::Int32, 3, false, Aggregation::Mode);
        check(Kind::Bool, 1, false, Aggregation::Mode);
    }
}
