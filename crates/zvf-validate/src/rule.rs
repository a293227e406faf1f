//! What a rule is.

use core::fmt;

/// How deep a check looks. Each depth includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// L1: which nodes there are, and of which type.
    Structure = 1,
    /// L2: what they say about themselves.
    Metadata = 2,
    /// L3: every blob, and whether blobs agree with each other.
    Consistency = 3,
    /// L4: whether it is the geometry that the store says it is.
    Semantics = 4,
}

impl Depth {
    /// All of them, the shallowest first.
    pub const ALL: [Self; 4] = [
        Self::Structure,
        Self::Metadata,
        Self::Consistency,
        Self::Semantics,
    ];

    /// 1 to 4.
    pub const fn number(self) -> u8 {
        match self {
            Self::Structure => 1,
            Self::Metadata => 2,
            Self::Consistency => 3,
            Self::Semantics => 4,
        }
    }
}

/// What a finding means for who uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Right to the letter, and worth knowing.
    Note,
    /// Answers are right; something that is said of the store is not, or other
    /// readers will trip over it.
    Warning,
    /// Something cannot be read, is lost, or would be answered wrongly.
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

/// How what a rule finds is put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// `zvf validate --repair` does it, as the text says.
    Repair(&'static str),
    /// Somebody has to decide; the text says what.
    Advice(&'static str),
}

impl Remedy {
    /// What is done or is to be done.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Repair(text) | Self::Advice(text) => text,
        }
    }
}

/// Something that holds in every store that can be trusted.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name for ever: `ZV-L3-017`.
    pub code: &'static str,
    /// Where it is checked.
    pub depth: Depth,
    /// What breaking it means.
    pub severity: Severity,
    /// What is wrong, in a line.
    pub title: &'static str,
    /// What that means.
    pub meaning: &'static str,
    /// How to put it right.
    pub remedy: Remedy,
}

/// Declares rules of one depth: the documentation of each is its meaning.
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
        /// All of them, by code.
        pub(crate) static ALL: &[&$crate::rule::Rule] = &[$(&$name),+];
    };
}

pub(crate) use rules;
