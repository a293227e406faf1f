//! Colours and backgrounds.

use core::{fmt, str::FromStr};

/// A colour in sRGB: red, green, blue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Color(pub [u8; 3]);

/// Error of parsing a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a colour as #rrggbb, in hexadecimal digits")]
pub struct ColorError;

impl Color {
    /// Creates a colour from `0xrrggbb`.
    pub const fn hex(value: u32) -> Self {
        let [_, red, green, blue] = value.to_be_bytes();
        Self([red, green, blue])
    }

    /// Multiplies the brightness by a factor. Hue and saturation stay the same unless a channel
    /// saturates.
    pub(crate) fn scaled(self, by: f32) -> Self {
        Self(self.0.map(|part| (f32::from(part) * by) as u8))
    }

    /// Interpolates between this colour, at 0, and another, at 1.
    pub(crate) fn mix(self, other: Self, at: f32) -> Self {
        let at = at.clamp(0.0, 1.0);
        let mut mixed = self.0;
        for (mine, theirs) in mixed.iter_mut().zip(other.0) {
            let (a, b) = (f32::from(*mine), f32::from(theirs));
            // Rounded to the nearest integer; the cast alone would truncate.
            *mine = (a + (b - a) * at + 0.5) as u8;
        }
        Self(mixed)
    }

    /// Returns the channels as linear light, 0 to 1.
    pub(crate) fn linear(self) -> [f32; 3] {
        self.0.map(|part| {
            let part = f32::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        })
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

/// Background of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Background {
    /// Nearly black.
    #[default]
    Dark,
    /// Nearly white.
    Light,
}

impl Background {
    /// Returns the colours of the top and the bottom.
    pub(crate) fn colors(self) -> [Color; 2] {
        match self {
            Self::Dark => [Color::hex(0x17_1b_22), Color::hex(0x0b_0d_11)],
            Self::Light => [Color::hex(0xff_ff_ff), Color::hex(0xf1_f3_f6)],
        }
    }

    /// Returns the colour of text.
    pub(crate) fn text_color(self) -> Color {
        match self {
            Self::Dark => Color::hex(0xe8_eb_f0),
            Self::Light => Color::hex(0x1d_24_2e),
        }
    }

    /// Returns the colour of secondary text.
    pub(crate) fn faint_text_color(self) -> Color {
        match self {
            Self::Dark => Color::hex(0x9a_a4_b2),
            Self::Light => Color::hex(0x5c_68_78),
        }
    }
}
