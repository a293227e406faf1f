//! Colours, and what is drawn on.

use core::{fmt, str::FromStr};

/// A colour as screens have it, sRGB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Color(pub [u8; 3]);

/// Why text is no colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a colour is written #rrggbb")]
pub struct ColorError;

impl Color {
    /// Of `0xrrggbb`.
    pub const fn hex(value: u32) -> Self {
        let [_, red, green, blue] = value.to_be_bytes();
        Self([red, green, blue])
    }

    /// So much brighter or darker.
    pub(crate) fn lit(self, by: f32) -> Self {
        Self(self.0.map(|part| (f32::from(part) * by) as u8))
    }

    /// Between this, at 0, and another, at 1.
    pub(crate) fn mix(self, other: Self, at: f32) -> Self {
        let at = at.clamp(0.0, 1.0);
        let mut mixed = self.0;
        for (mine, theirs) in mixed.iter_mut().zip(other.0) {
            let (a, b) = (f32::from(*mine), f32::from(theirs));
            // The nearest: casts cut.
            *mine = (a + (b - a) * at + 0.5) as u8;
        }
        Self(mixed)
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl FromStr for Color {
    type Err = ColorError;

    fn from_str(text: &str) -> Result<Self, ColorError> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        value.map(Self::hex).ok_or(ColorError)
    }
}

/// What a picture is drawn on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Nearly black.
    #[default]
    Dark,
    /// Nearly white.
    Light,
}

impl Background {
    /// At the top and at the bottom.
    pub(crate) fn colors(self) -> [Color; 2] {
        match self {
            Self::Dark => [Color::hex(0x17_1b_22), Color::hex(0x0b_0d_11)],
            Self::Light => [Color::hex(0xff_ff_ff), Color::hex(0xf1_f3_f6)],
        }
    }

    /// What is written on it.
    pub(crate) fn ink(self) -> Color {
        match self {
            Self::Dark => Color::hex(0xe8_eb_f0),
            Self::Light => Color::hex(0x1d_24_2e),
        }
    }

    /// What is written on it and matters less.
    pub(crate) fn faint_ink(self) -> Color {
        match self {
            Self::Dark => Color::hex(0x9a_a4_b2),
            Self::Light => Color::hex(0x5c_68_78),
        }
    }
}
