//! Aggregation of attribute values.

use core::{fmt, str::FromStr};

use zvf_format::numeric::Kind;

/// Rule from merged values to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregation {
    /// Value of the kept vertex.
    Own,
    /// Mean.
    Mean,
    /// Sum.
    Sum,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Most frequent value.
    Mode,
    /// Number of values.
    Count,
}

impl Aggregation {
    /// All rules.
    pub const ALL: [Self; 7] = [
        Self::Own,
        Self::Mean,
        Self::Sum,
        Self::Min,
        Self::Max,
        Self::Mode,
        Self::Count,
    ];

    /// Returns the name used on the command line.
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

    /// Returns the default rule of a type: `Own` where vertices are kept; else `Mean` for floats,
    /// complex numbers and colours (three or four `uint8`), and `Mode` for values that name
    /// something: dictionary codes, booleans and other integers.
    #[doc(hidden)]
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

    /// Returns whether the rule is meaningful for dictionary codes.
    #[doc(hidden)]
    pub fn suits_codes(self) -> bool {
        matches!(self, Self::Own | Self::Mode | Self::Count)
    }

    /// Returns the rule for the next coarser level: counts are summed.
    #[must_use]
    #[doc(hidden)]
    pub fn again(self) -> Self {
        match self {
            Self::Count => Self::Sum,
            rule => rule,
        }
    }

    /// Parses an attribute name and its rule, as in `fa=max`.
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
    #[doc(hidden)]
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

/// Text that is not an aggregation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseAggregationError {
    /// The text has no attribute name before an equals sign.
    #[error("{0:?} is not of the form ATTRIBUTE=RULE, as in fa=max")]
    NoName(String),
    /// The rule does not exist.
    #[error("{0:?} is not an aggregation; use own, mean, sum, min, max, mode or count")]
    Unknown(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_round_trip_through_names() {
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
    fn categorical_values_are_not_averaged() {
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
