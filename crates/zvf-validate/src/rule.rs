//! The definition of a rule.

use core::fmt;

/// Level of checks. Each level includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// L1: nodes and their types.
    Structure = 1,
    /// L2: the metadata of nodes.
    Metadata = 2,
    /// L3: every cell, and agreement between cells.
    Consistency = 3,
    /// L4: the meaning of the geometry.
    Semantics = 4,
}

impl Depth {
    /// All levels, shallowest first.
    pub const ALL: [Self; 4] = [
        Self::Structure,
        Self::Metadata,
        Self::Consistency,
        Self::Semantics,
    ];

    /// Returns the number of the level, 1 to 4.
    pub const fn number(self) -> u8 {
        match self {
            Self::Structure => 1,
            Self::Metadata => 2,
            Self::Consistency => 3,
            Self::Semantics => 4,
        }
    }
}

/// Consequence of a violation for users of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// No reader is affected.
    Note,
    /// Results are right, but metadata are wrong or other readers may fail.
    Warning,
    /// Data are lost or unreadable, or results would be wrong.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// The way to fix a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// `zvf validate --repair` fixes it. The text completes "the repair …".
    Repair(&'static str),
    /// A person has to decide. The text says how to fix it.
    Advice(&'static str),
}

impl Remedy {
    /// Returns the text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Repair(text) | Self::Advice(text) => text,
        }
    }
}

/// A condition that every valid store meets.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Permanent code, such as `ZV-L3-017`.
    pub code: &'static str,
    /// Level at which the rule is checked.
    pub depth: Depth,
    /// Severity of a violation.
    pub severity: Severity,
    /// Short description of the fault.
    pub title: &'static str,
    /// Explanation of the fault and its consequences.
    pub meaning: &'static str,
    /// The way to fix a violation.
    pub remedy: Remedy,
}

/// Declares the rules of one level. The documentation of each rule is its meaning.
macro_rules! rules {
    ($depth:ident; $(
        $(#[doc = $meaning:literal])+
        $name:ident = $code:literal, $severity:ident, $title:literal, $remedy:ident($how:literal);
    )+) => {
        $(
            $(#[doc = $meaning])+
            pub static $name: $crate::rule::Rule = $crate::rule::Rule {
                code: $code,
                depth: $crate::rule::Depth::$depth,
                severity: $crate::rule::Severity::$severity,
                title: $title,
                meaning: concat!($($meaning),+),
                remedy: $crate::rule::Remedy::$remedy($how),
            };
        )+
        /// All rules of this level, by code.
        pub(crate) static ALL: &[&$crate::rule::Rule] = &[$(&$name),+];
    };
}

pub(crate) use rules;
