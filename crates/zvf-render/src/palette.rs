//! Colours that stand for numbers and for categories.

use crate::color::{Background, Color};

/// Colours for numbers, from the least to the greatest. Lightness grows evenly, so that
/// they read the same for the colour-blind and in grey.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colormap {
    /// Violet, teal, yellow.
    #[default]
    Viridis,
    /// Blue to yellow.
    Cividis,
    /// Violet, red, orange, pale yellow.
    Inferno,
}

/// From matplotlib's maps of these names (CC0), every tenth of the way. Of the third the
/// darkest end is left out, which is black.
const VIRIDIS: [u32; 11] = [
    0x44_01_54, 0x48_24_75, 0x41_44_87, 0x35_5f_8d, 0x2a_78_8e, 0x21_91_8c, 0x22_a8_84, 0x44_bf_70,
    0x7a_d1_51, 0xbd_df_26, 0xfd_e7_25,
];
const CIVIDIS: [u32; 11] = [
    0x00_22_4e, 0x08_33_70, 0x35_45_6c, 0x4f_57_6c, 0x66_69_70, 0x7d_7c_78, 0x94_8e_77, 0xae_a3_71,
    0xc8_b8_66, 0xe5_cf_52, 0xfe_e8_38,
];
const INFERNO: [u32; 9] = [
    0x42_0a_68, 0x6a_17_6e, 0x93_26_67, 0xbc_37_54, 0xdd_51_3a, 0xf3_78_19, 0xfc_a5_0a, 0xf6_d7_46,
    0xfc_ff_a4,
];

impl Colormap {
    /// The colour of a place between 0 and 1 on a picture: without the end that nobody would
    /// see there.
    pub(crate) fn on(self, background: Background, place: f32) -> Color {
        let place = if place.is_nan() {
            0.0
        } else {
            place.clamp(0.0, 1.0)
        };
        self.at(match background {
            Background::Dark => 0.1 + 0.9 * place,
            Background::Light => 0.92 * place,
        })
    }

    /// The colour of a place between 0 and 1.
    pub fn at(self, place: f32) -> Color {
        let anchors: &[u32] = match self {
            Self::Viridis => &VIRIDIS,
            Self::Cividis => &CIVIDIS,
            Self::Inferno => &INFERNO,
        };
        let steps = anchors.len().saturating_sub(1);
        let place = if place.is_nan() {
            0.0
        } else {
            place.clamp(0.0, 1.0)
        };
        let scaled = place * steps as f32;
        let below = (scaled as usize).min(steps);
        let anchor = |at: usize| anchors.get(at.min(steps)).copied().map(Color::hex);
        let (low, high) = (anchor(below), anchor(below + 1));
        let low = low.unwrap_or_default();
        low.mix(high.unwrap_or(low), scaled - below as f32)
    }
}

/// Okabe and Ito's colours, which the colour-blind can tell apart; grey for their black.
const CATEGORIES: [u32; 8] = [
    0xe6_9f_00, 0x56_b4_e9, 0x00_9e_73, 0xf0_e4_42, 0x3f_8f_d2, 0xd5_5e_00, 0xcc_79_a7, 0x9a_a3_ad,
];

/// How many categories have a colour that no other has.
pub(crate) const DISTINCT: usize = CATEGORIES.len();

/// The colour of a category. After [`DISTINCT`] of them they come again, paler and darker.
pub(crate) fn category(number: u32) -> Color {
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    let color = CATEGORIES.get(at % CATEGORIES.len()).copied();
    let color = color.map(Color::hex).unwrap_or_default();
    match at / CATEGORIES.len() % 3 {
        0 => color,
        1 => color.mix(Color::hex(0xff_ff_ff), 0.45),
        _ => color.lit(0.68),
    }
}

/// For bars beside those of [`Colormap::Viridis`].
pub(crate) const CORAL: Color = Color::hex(0xd5_5e_00);
/// What a thing has that has no value.
pub(crate) const MISSING: Color = Color::hex(0x7c_82_8b);
/// What a thing has that no attribute gives a colour.
pub(crate) const PLAIN: Color = Color::hex(0xd9_c7_a8);

/// The colour of a direction: red along the first axis, green along the second, blue along the
/// third, whichever way.
pub(crate) fn direction(unit: [f32; 3]) -> Color {
    let [x, y, z] = unit.map(f32::abs);
    // Blue is dark and the mix of equals is dull: all are lifted to where they can be told apart.
    let most = x.max(y).max(z).max(f32::MIN_POSITIVE);
    let part = |own: f32| 38.0 + 217.0 * (own / most * (0.45 + 0.55 * own)).clamp(0.0, 1.0);
    let blue = part(z);
    let green = (part(y) * 0.92 + 0.16 * blue * z).min(255.0);
    let red = (part(x) + 0.08 * blue * z).min(255.0);
    Color([red as u8, green as u8, blue as u8])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lightness of CIE 1976.
    fn lightness(color: Color) -> f64 {
        let linear = color.0.map(|part| {
            let part = f64::from(part) / 255.0;
            match part <= 0.04045 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        });
        let y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
        116.0 * y.cbrt() - 16.0
    }

    #[test]
    fn ramps_become_lighter_evenly() {
        for ramp in [Colormap::Viridis, Colormap::Cividis, Colormap::Inferno] {
            let steps: Vec<f64> = (0..=20_u8)
                .map(|at| lightness(ramp.at(f32::from(at) / 20.0)))
                .collect();
            let mean = (steps[20] - steps[0]) / 20.0;
            assert!(mean > 2.5, "{ramp:?} spans {}", mean * 20.0);
            for pair in steps.windows(2) {
                let step = pair[1] - pair[0];
                assert!(
                    (mean * 0.4..mean * 1.8).contains(&step),
                    "{ramp:?}: {steps:?}"
                );
            }
        }
    }

    #[test]
    fn ends_and_what_is_no_number_have_colours() {
        assert_eq!(Colormap::Viridis.at(-1.0), Color::hex(0x44_01_54));
        assert_eq!(Colormap::Viridis.at(f32::NAN), Color::hex(0x44_01_54));
        assert_eq!(Colormap::Viridis.at(7.0), Color::hex(0xfd_e7_25));
    }

    #[test]
    fn categories_differ_for_three_rounds() {
        let mut seen: Vec<Color> = (0..24).map(category).collect();
        seen.sort_by_key(|color| color.0);
        seen.dedup();
        assert_eq!(seen.len(), 24);
        assert_eq!(category(24), category(0));
    }
}
