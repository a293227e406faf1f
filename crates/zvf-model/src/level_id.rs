//! Numbers of levels.

use core::fmt;

/// The number of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(u32);

impl LevelId {
    /// The finest level.
    pub const FULL: Self = Self(0);

    /// Creates the id of a level from its number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Parses the name of a group; `None` if it is not a decimal number in canonical spelling and
    /// therefore not a level.
    ///
    /// ```
    /// use zvf_model::level::LevelId;
    ///
    /// assert_eq!(LevelId::parse("12"), Some(LevelId::new(12)));
    /// assert_eq!(LevelId::parse("012"), None);
    /// assert_eq!(LevelId::parse("parametric"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        let number = name.parse().ok().map(Self)?;
        (number.to_string() == name).then_some(number)
    }

    /// Returns the number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the level this many levels coarser, or finer if negative; `None` if the number is
    /// out of range.
    pub fn offset(self, levels: i32) -> Option<Self> {
        self.0.checked_add_signed(levels).map(Self)
    }
}

impl fmt::Display for LevelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
