//! Letters as strokes of a pen: drawn for this crate, so that pictures need no font file.

mod glyphs;

use core::f32::consts::PI;

/// A place on a sheet, y downward.
pub(crate) type Place = [f32; 2];

/// Height of a capital over the size of text.
const CAPITAL: f32 = 0.72;
/// Units that a capital is high in `glyphs`.
const UNITS: f32 = 10.0;
/// Between two letters.
const GAP: f32 = 2.3;
/// Of a blank.
const BLANK: f32 = 3.2;
/// Width of the pen.
const PEN: f32 = 1.12;
/// Lines that a full turn is cut into.
const TURN: f32 = 28.0;
/// Lines that a bend is cut into.
const BEND: u8 = 7;

/// What a letter is drawn with.
struct Glyph {
    letter: char,
    /// From its leftmost to its rightmost place.
    width: f32,
    /// Steps: `M x y` goes there, `L x y` draws a line, `Q x y x y` a bend, `E x y rx ry from to`
    /// a part of an ellipse in degrees. y is upward from the base line.
    path: &'static str,
}

/// Strokes of a text, with its left end at 0, 0 on the base line.
pub(crate) fn strokes(text: &str, size: f32) -> Vec<Vec<Place>> {
    let unit = size * CAPITAL / UNITS;
    let (mut strokes, mut left) = (Vec::new(), 0.0);
    for letter in text.chars() {
        let Some(glyph) = glyph(letter) else {
            left += BLANK + GAP;
            continue;
        };
        for stroke in outline(glyph.path) {
            let place = |[x, y]: Place| [(left + x) * unit, -y * unit];
            strokes.push(stroke.into_iter().map(place).collect());
        }
        left += glyph.width + GAP;
    }
    strokes
}

/// How wide a text is.
pub(crate) fn width(text: &str, size: f32) -> f32 {
    let widths = text
        .chars()
        .map(|letter| glyph(letter).map_or(BLANK, |glyph| glyph.width) + GAP);
    let sum: f32 = widths.sum();
    (sum - GAP).max(0.0) * size * CAPITAL / UNITS
}

/// Width of the pen for a size.
pub(crate) fn pen(size: f32) -> f32 {
    PEN * size * CAPITAL / UNITS
}

/// `None` for a blank; a frame for what there is no letter for.
fn glyph(letter: char) -> Option<&'static Glyph> {
    if letter.is_whitespace() {
        return None;
    }
    let found = glyphs::GLYPHS.iter().find(|glyph| glyph.letter == letter);
    Some(found.unwrap_or(&glyphs::UNKNOWN))
}

/// What a path draws. Numbers that are missing end it.
fn outline(path: &str) -> Vec<Vec<Place>> {
    let mut strokes: Vec<Vec<Place>> = Vec::new();
    let mut words = path.split_ascii_whitespace();
    while let Some(step) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse::<f32>().ok());
        let mut place = || Some([number()?, number()?]);
        match step {
            "M" => strokes.extend(place().map(|at| vec![at])),
            "L" => {
                if let (Some(stroke), Some(to)) = (strokes.last_mut(), place()) {
                    stroke.push(to);
                }
            }
            "Q" => {
                if let (Some(stroke), Some(bend), Some(to)) = (strokes.last_mut(), place(), place())
                    && let Some(from) = stroke.last().copied()
                {
                    let at = (1..=BEND).map(|at| f32::from(at) / f32::from(BEND));
                    stroke.extend(at.map(|at| between(from, bend, to, at)));
                }
            }
            _ => {
                if let (Some(centre), Some(radii), Some([from, to])) = (place(), place(), place()) {
                    strokes.push(arc(centre, radii, from, to));
                }
            }
        }
    }
    strokes
}

fn between(from: Place, bend: Place, to: Place, at: f32) -> Place {
    let rest = 1.0 - at;
    let part = |axis: usize| {
        let of = |place: Place| place.get(axis).copied().unwrap_or(0.0);
        rest * rest * of(from) + 2.0 * rest * at * of(bend) + at * at * of(to)
    };
    [part(0), part(1)]
}

fn arc([x, y]: Place, [across, up]: Place, from: f32, to: f32) -> Vec<Place> {
    let steps = ((to - from).abs() / 360.0 * TURN).ceil().max(2.0) as u8;
    let places = (0..=steps).map(|step| {
        let angle = (from + (to - from) * f32::from(step) / f32::from(steps)) * PI / 180.0;
        [x + across * angle.cos(), y + up * angle.sin()]
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_ascii_is_drawn_inside_its_frame() {
        for letter in ('!'..='~').chain("µ°²³·×–…≤≥åÅ→".chars()) {
            let glyph = glyph(letter).unwrap();
            assert_eq!(glyph.letter, letter);
            let strokes = outline(glyph.path);
            assert!(!strokes.is_empty(), "{letter}");
            for [x, y] in strokes.into_iter().flatten() {
                let across = -1.1..=glyph.width + 0.7;
                assert!(across.contains(&x), "{letter}: {x}");
                assert!((-3.5..=12.5).contains(&y), "{letter}: {y}");
            }
        }
    }

    #[test]
    fn no_letter_is_there_twice_and_every_path_is_read_whole() {
        let mut letters: Vec<char> = glyphs::GLYPHS.iter().map(|glyph| glyph.letter).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), glyphs::GLYPHS.len());
        for glyph in glyphs::GLYPHS {
            let steps = glyph.path.split_ascii_whitespace().map(|word| match word {
                "M" | "L" => 3,
                "Q" => 5,
                "E" => 7,
                number => {
                    assert!(number.parse::<f32>().is_ok(), "{}: {number}", glyph.letter);
                    0
                }
            });
            let words = glyph.path.split_ascii_whitespace().count();
            assert_eq!(steps.sum::<usize>(), words, "{}", glyph.letter);
        }
    }

    #[test]
    fn text_is_as_wide_as_its_letters() {
        assert!(width("", 10.0).abs() < 1e-6);
        assert!(width("mm", 20.0) > 2.0 * width("m", 20.0));
        assert!((width("mm", 20.0) - 2.0 * width("mm", 10.0)).abs() < 1e-4);
    }
}
