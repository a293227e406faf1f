//! Numbers of levels.

use core::fmt;

/// The number of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(u32);

impl LevelId {
    /// The finest level.
    pub const FULL: Self = Self(0);

    /// A level by number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Reads the name of a group; `None` when it is no level: anything but a
    /// decimal number in its one spelling.
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

    /// The number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The level so many coarser, or finer below zero; `None` when there is no
    /// such number.
    pub fn offset(self, levels: i32) -> Option<Self> {
        self.0.checked_add_signed(levels).map(Self)
    }
}

impl fmt::Display for LevelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
