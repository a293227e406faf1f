//! Every rule, by the depth it is checked at. A code is never used again for
//! something else.

use crate::rule::Rule;

pub mod consistency;
pub mod metadata;
pub mod semantics;
pub mod structure;

/// All rules, by code.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let depths = [
        structure::ALL,
        metadata::ALL,
        consistency::ALL,
        semantics::ALL,
    ];
    depths.into_iter().flatten().copied()
}

/// The rule of a code.
pub fn find(code: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.code == code)
}
