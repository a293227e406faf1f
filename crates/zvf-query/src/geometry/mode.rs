//! Selection modes of a region: touch, within, clip.

use std::fmt;

/// The relation to a box or sphere that selects geometry.
///
/// ```
/// use zvf_query::geometry::Mode;
///
/// assert_eq!(Mode::parse("within"), Some(Mode::Within));
/// assert_eq!(Mode::default().to_string(), "touch");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Selects every geometry that enters the region, whole.
    #[default]
    Touch,
    /// Selects geometry entirely inside the region.
    Within,
    /// Selects the part inside the region of every geometry that enters it.
    Clip,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Touch, Self::Within, Self::Clip];

    /// Parses the name of a mode. Returns `None` for an unknown name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == text)
    }

    /// Returns the name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Touch => "touch",
            Self::Within => "within",
            Self::Clip => "clip",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
