//! Option values with names.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns the name of a value.
pub(crate) fn name_of<T: Copy + PartialEq>(names: &[(T, &'static str)], value: T) -> &'static str {
    let mut names = names.iter();
    let found = names.find(|(other, _)| *other == value);
    found.map_or("", |(_, name)| name)
}

/// Parses a value by name.
pub(crate) fn named<T, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).try_map(move |text| {
        let mut all = all.into_iter();
        let found = all.find(|value| name(*value) == text);
        found.ok_or("there is no such value")
    })
}
