//! Colours of numbers, categories and directions.

use crate::color::{Background, Color};

/// Colours of numbers, from the lowest to the highest. Lightness grows evenly, so that the maps
/// also work in grey and for colour-blind readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Colormap {
    /// Violet, teal, yellow.
    #[default]
    Viridis,
    /// Blue to yellow.
    Cividis,
    /// Violet, red, orange, pale yellow.
    Inferno,
}

/// Every tenth colour of matplotlib's maps of these names (CC0). The third starts above its dark
/// end, which is black.
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
    /// Returns the colour of a position from 0 to 1, without the end of the map that is close to
    /// the background.
    pub(crate) fn on(self, background: Background, position: f32) -> Color {
        let position = if position.is_nan() {
            0.0
        } else {
            position.clamp(0.0, 1.0)
        };
        self.at(match background {
            Background::Dark => 0.1 + 0.9 * position,
            Background::Light => 0.92 * position,
        })
    }

    /// Returns the colour of a position from 0 to 1; positions beyond are clamped, NaN counts as 0.
    pub fn at(self, position: f32) -> Color {
        let anchors: &[u32] = match self {
            Self::Viridis => &VIRIDIS,
            Self::Cividis => &CIVIDIS,
            Self::Inferno => &INFERNO,
        };
        let steps = anchors.len().saturating_sub(1);
        let position = if position.is_nan() {
            0.0
        } else {
            position.clamp(0.0, 1.0)
        };
        let scaled = position * steps as f32;
        let below = (scaled as usize).min(steps);
        let anchor = |at: usize| anchors.get(at.min(steps)).copied().map(Color::hex);
        let (low, high) = (anchor(below), anchor(below + 1));
        let low = low.unwrap_or_default();
        low.mix(high.unwrap_or(low), scaled - below as f32)
    }
}

/// Colours of Okabe and Ito, which colour-blind readers can tell apart, ordered so that the first
/// ones differ most. Their blue is lighter here and grey replaces their black, for dark backgrounds.
const CATEGORIES: [u32; 8] = [
    0xe6_9f_00, 0x56_b4_e9, 0x00_9e_73, 0xcc_79_a7, 0xf0_e4_42, 0xd5_5e_00, 0x3b_6f_d4, 0x9a_a3_ad,
];

/// Maximum number of distinct values of an integer attribute that are coloured as categories.
pub(crate) const MAX_INTEGER_CATEGORIES: usize = CATEGORIES.len();

/// Maximum number of distinct category colours. More could not be told apart at all.
const MAX_CATEGORY_COLORS: usize = 512;

/// Colours of categories. Beyond [`CATEGORIES`], each colour is the one farthest from all before
/// it, so the colour of a category does not depend on how many follow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Categories(Vec<Color>);

impl Categories {
    /// Computes the colours of `count` categories; the colours repeat after
    /// [`MAX_CATEGORY_COLORS`].
    pub(crate) fn new(count: usize) -> Self {
        let count = count.min(MAX_CATEGORY_COLORS);
        let mut colors: Vec<Color> = CATEGORIES.map(Color::hex).to_vec();
        colors.truncate(count);
        if colors.len() == count {
            return Self(colors);
        }
        // Each candidate with its distance to the nearest chosen colour.
        let mut candidates = candidates();
        let mut exclude = |chosen: Color| {
            let chosen = Oklab::of(chosen);
            for (_, perceived, distance) in &mut candidates {
                *distance = perceived.distance(chosen).min(*distance);
            }
            // The first of equals, so that the order is defined.
            let farthest = candidates
                .iter()
                .rev()
                .max_by_key(|(_, _, distance)| *distance);
            farthest.map(|(color, _, _)| *color)
        };
        exclude(MISSING);
        exclude(PLAIN);
        let mut next = None;
        for color in &colors {
            next = exclude(*color);
        }
        while let Some(color) = next.filter(|_| colors.len() < count) {
            colors.push(color);
            next = exclude(color);
        }
        Self(colors)
    }

    /// Returns the number of distinct colours.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the colour of a category.
    pub(crate) fn color(&self, rank: u32) -> Color {
        let rank = usize::try_from(rank).unwrap_or(usize::MAX);
        let color = self.0.get(rank % self.0.len().max(1));
        color.copied().unwrap_or(MISSING)
    }
}

/// Returns colours that are visible on both backgrounds: a grid of the sRGB cube without its very
/// dark, very light and dull parts.
fn candidates() -> Vec<(Color, Oklab, u32)> {
    const STEPS: u8 = 20;
    let level = |step: u8| ((u16::from(step) * 255) / u16::from(STEPS - 1)) as u8;
    let steps = || (0..STEPS).map(level);
    let cube = steps().flat_map(|red| {
        steps().flat_map(move |green| steps().map(move |blue| Color([red, green, blue])))
    });
    let seen = cube.map(|color| (color, Oklab::of(color), u32::MAX));
    let is_visible = |perceived: Oklab| {
        (480..=880).contains(&perceived.lightness) && perceived.chroma_squared() > 60 * 60
    };
    seen.filter(|(_, perceived, _)| is_visible(*perceived))
        .collect()
}

/// A colour in the perceptual space `OKLab`, in thousandths. Integers give equal palettes on
/// platforms whose floating-point functions differ in the last digit.
#[derive(Clone, Copy, Debug)]
struct Oklab {
    lightness: i32,
    green_red: i32,
    blue_yellow: i32,
}

impl Oklab {
    fn of(color: Color) -> Self {
        let [red, green, blue] = color.linear();
        let cone = |of: [f32; 3]| (of[0] * red + of[1] * green + of[2] * blue).cbrt();
        let long = cone([0.412_221_5, 0.536_332_54, 0.051_445_99]);
        let medium = cone([0.211_903_5, 0.680_699_5, 0.107_396_96]);
        let short = cone([0.088_302_46, 0.281_718_84, 0.629_978_7]);
        let mixed = |of: [f32; 3]| {
            let value = of[0] * long + of[1] * medium + of[2] * short;
            (value * 1000.0).round() as i32
        };
        Self {
            lightness: mixed([0.210_454_26, 0.793_617_8, -0.004_072_047]),
            green_red: mixed([1.977_998_5, -2.428_592_2, 0.450_593_7]),
            blue_yellow: mixed([0.025_904_037, 0.782_771_77, -0.808_675_77]),
        }
    }

    fn chroma_squared(self) -> i32 {
        self.green_red * self.green_red + self.blue_yellow * self.blue_yellow
    }

    /// Returns the squared distance. Lightness counts less than hue, because shading changes it.
    fn distance(self, other: Self) -> u32 {
        let lightness = (self.lightness - other.lightness) / 2;
        let green_red = self.green_red - other.green_red;
        let blue_yellow = self.blue_yellow - other.blue_yellow;
        let sum = lightness * lightness + green_red * green_red + blue_yellow * blue_yellow;
        sum.unsigned_abs()
    }
}

/// Second colour of plots, beside a colour of [`Colormap::Viridis`].
pub(crate) const CORAL: Color = Color::hex(0xd5_5e_00);
/// Colour of missing values.
pub(crate) const MISSING: Color = Color::hex(0x7c_82_8b);
/// Colour of geometry that is not coloured by anything.
pub(crate) const PLAIN: Color = Color::hex(0xd9_c7_a8);

/// Returns the colour of a direction and its opposite: red along the first axis, green along the
/// second, blue along the third.
pub(crate) fn direction(unit: [f32; 3]) -> Color {
    let [x, y, z] = unit.map(f32::abs);
    // Pure blue is dark and a mix of equal parts is dull, so all colours are lifted.
    let max = x.max(y).max(z).max(f32::MIN_POSITIVE);
    let part = |own: f32| 38.0 + 217.0 * (own / max * (0.45 + 0.55 * own)).clamp(0.0, 1.0);
    let blue = part(z);
    let green = (part(y) * 0.92 + 0.16 * blue * z).min(255.0);
    let red = (part(x) + 0.08 * blue * z).min(255.0);
    Color([red as u8, green as u8, blue as u8])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lightness of CIE 1976.
    fn lightness(color: Color) -> f64 {
        let linear = color.linear().map(f64::from);
        let y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
        116.0 * y.cbrt() - 16.0
    }

    #[test]
    fn lightness_of_colormaps_grows_evenly() {
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
    fn positions_beyond_the_ends_and_nan_have_colours() {
        assert_eq!(Colormap::Viridis.at(-1.0), Color::hex(0x44_01_54));
        assert_eq!(Colormap::Viridis.at(f32::NAN), Color::hex(0x44_01_54));
        assert_eq!(Colormap::Viridis.at(7.0), Color::hex(0xfd_e7_25));
    }

    #[test]
    fn category_colors_are_far_apart() {
        let nearest = |count: usize| {
            let colors = Categories::new(count).0;
            let seen: Vec<Oklab> = colors.iter().map(|color| Oklab::of(*color)).collect();
            let pairs = seen.iter().enumerate().flat_map(|(at, one)| {
                let after = seen.iter().skip(at + 1);
                after.map(|other| one.distance(*other))
            });
            pairs.min().unwrap().isqrt()
        };
        // Neighbours of an 8-bit screen differ by about 3, and just noticeable is about 20.
        assert!(nearest(8) > 60, "{}", nearest(8));
        assert!(nearest(20) > 50, "{}", nearest(20));
        assert!(nearest(100) > 20, "{}", nearest(100));
        assert!(nearest(512) > 5, "{}", nearest(512));
    }

    #[test]
    fn more_categories_do_not_change_the_first() {
        let all = Categories::new(MAX_CATEGORY_COLORS);
        for count in [1, 3, 8, 9, 20, 300] {
            let some = Categories::new(count);
            assert_eq!(some.len(), count);
            for rank in (0..).take(count) {
                assert_eq!(some.color(rank), all.color(rank), "{rank} of {count}");
            }
        }
        assert_eq!(Categories::new(100_000).len(), MAX_CATEGORY_COLORS);
        assert_eq!(all.color(512), all.color(0));
        assert_eq!(Categories::new(0).color(0), MISSING);
    }
}
