//! What of the geometry near a box a query wants.

use std::fmt;

/// How a box or sphere selects.
///
/// ```
/// use zvf_query::geometry::Mode;
///
/// assert_eq!(Mode::parse("within"), Some(Mode::Within));
/// assert_eq!(Mode::default().to_string(), "touch");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Whatever comes into it, whole.
    #[default]
    Touch,
    /// What is entirely inside.
    Within,
    /// The part inside of what comes into it.
    Clip,
}

impl Mode {
    /// Every mode there is.
    pub const ALL: [Self; 3] = [Self::Touch, Self::Within, Self::Clip];

    /// Reads the name of a mode; `None` when it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == text)
    }

    /// Its name.
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
