//! A font of strokes, drawn for this crate, so that pictures need no font file.
//!
//! It covers ASCII, Greek, common symbols, and Latin letters with accents, which are composed of a
//! letter and a mark. Other text is spelled: Cyrillic in Latin letters, the rest as code points.

mod glyphs;
mod spelling;

use core::{f32::consts::PI, fmt::Write};
use std::collections::BTreeSet;

use self::spelling::{Spelling, spelling};

/// A position on a sheet, y downward.
pub(crate) type Place = [f32; 2];

/// Height of a capital over the size of text.
const CAPITAL: f32 = 0.72;
/// Height of a capital in the units of `glyphs`.
const UNITS: f32 = 10.0;
/// Height of a lowercase letter without ascender in the units of `glyphs`.
const LOWERCASE: f32 = 7.0;
/// Space between two letters.
const GAP: f32 = 2.3;
/// Width of a space.
const SPACE_WIDTH: f32 = 3.2;
/// Width of the pen.
const STROKE_WIDTH: f32 = 1.12;
/// Number of line segments of a full ellipse.
const ELLIPSE_SEGMENTS: f32 = 28.0;
/// Number of line segments of a curve.
const CURVE_SEGMENTS: u8 = 7;
/// Maximum number of characters that a note lists.
const MAX_NOTED: usize = 12;

/// The shape of a letter.
struct Glyph {
    letter: char,
    /// Distance from its leftmost to its rightmost point.
    width: f32,
    /// Steps: `M x y` moves, `L x y` draws a line, `Q x y x y` a quadratic curve, and
    /// `E x y rx ry from to` a part of an ellipse in degrees. y points up from the base line.
    path: &'static str,
}

/// Returns the strokes of a text whose left end is at 0, 0 on the base line.
pub(crate) fn strokes(text: &str, size: f32) -> Vec<Vec<Place>> {
    let unit = size * CAPITAL / UNITS;
    let (mut strokes, mut left) = (Vec::new(), 0.0);
    let mut draw = |path: &str, [dx, dy]: Place| {
        strokes.extend(outline(path).into_iter().map(|stroke| {
            let place = |[x, y]: Place| [(dx + x) * unit, -(dy + y) * unit];
            stroke.into_iter().map(place).collect()
        }));
    };
    // Middle and top of the last letter, where marks go.
    let mut crown = [0.0, LOWERCASE];
    let text = spelled(text);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if let Some(mark) = glyphs::mark(letter) {
            let lift = if mark.is_below { 0.0 } else { crown[1] };
            draw(mark.path, [crown[0], lift]);
            continue;
        }
        let is_marked = letters
            .peek()
            .is_some_and(|next| glyphs::mark(*next).is_some_and(|mark| !mark.is_below));
        let letter = match letter {
            // A mark replaces the dot.
            'i' if is_marked => 'ı',
            letter => letter,
        };
        let Some(glyph) = glyph(letter) else {
            left += SPACE_WIDTH + GAP;
            continue;
        };
        draw(glyph.path, [left, 0.0]);
        let is_tall = letter.is_uppercase() || "bdfhklt".contains(letter);
        let top = if is_tall { UNITS } else { LOWERCASE };
        crown = [left + glyph.width / 2.0, top];
        left += glyph.width + GAP;
    }
    strokes
}

/// Returns the width of a text.
pub(crate) fn width(text: &str, size: f32) -> f32 {
    let text = spelled(text);
    let letters = text
        .chars()
        .filter(|letter| glyphs::mark(*letter).is_none());
    let widths = letters.map(|letter| glyph(letter).map_or(SPACE_WIDTH, |glyph| glyph.width) + GAP);
    let sum: f32 = widths.sum();
    (sum - GAP).max(0.0) * size * CAPITAL / UNITS
}

/// Returns the width of the pen for a size of text.
pub(crate) fn stroke_width(size: f32) -> f32 {
    STROKE_WIDTH * size * CAPITAL / UNITS
}

/// Shortens a text to a width; an ellipsis marks the cut.
pub(crate) fn fitted(text: &str, size: f32, max: f32) -> String {
    if width(text, size) <= max {
        return text.to_owned();
    }
    let cut = |end: &usize| {
        let kept = text.get(..*end).unwrap_or_default();
        format!("{}…", kept.trim_end())
    };
    // A longer text is not narrower, and texts of any length are searched.
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fitting = ends.partition_point(|end| width(&cut(end), size) <= max);
    let longest = ends.get(..fitting).and_then(<[usize]>::last);
    longest.map_or_else(|| "…".to_owned(), cut)
}

/// Returns a note on the characters of texts that the font cannot draw, if any.
pub(crate) fn substitution_note<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let (mut transliterated, mut coded) = (BTreeSet::new(), BTreeSet::new());
    for letter in texts.flat_map(str::chars) {
        match spelling(letter) {
            Spelling::Transliterated(_) => transliterated.insert(letter),
            Spelling::CodePoint => coded.insert(letter),
            Spelling::Drawn(_) => continue,
        };
    }
    let list = |letters: &BTreeSet<char>| {
        let mut listed: String = letters.iter().take(MAX_NOTED).collect();
        if letters.len() > MAX_NOTED {
            listed.push('…');
        }
        listed
    };
    let mut parts = Vec::new();
    if !transliterated.is_empty() {
        parts.push(format!("{} in Latin letters", list(&transliterated)));
    }
    if !coded.is_empty() {
        parts.push(format!("{} as code points", list(&coded)));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "the font of pictures lacks some characters: the picture shows {}",
            parts.join(" and ")
        )
    })
}

/// Spells a text in characters that the font has.
fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    let mut is_coded = false;
    for letter in text.chars() {
        let spelling = spelling(letter);
        let was_coded = core::mem::replace(&mut is_coded, spelling == Spelling::CodePoint);
        match (was_coded, is_coded) {
            (false, true) => spelled.push('['),
            (true, true) => spelled.push(' '),
            (true, false) => spelled.push(']'),
            (false, false) => {}
        }
        match spelling {
            Spelling::Drawn("") => spelled.push(letter),
            Spelling::Drawn(letters) | Spelling::Transliterated(letters) => {
                spelled.push_str(letters);
            }
            Spelling::CodePoint => {
                // Writing to a string cannot fail.
                let _ = write!(spelled, "U+{:04X}", u32::from(letter));
            }
        }
    }
    if is_coded {
        spelled.push(']');
    }
    spelled
}

/// Returns the glyph of a letter, `None` for a space, and a frame if the font lacks the letter.
fn glyph(letter: char) -> Option<&'static Glyph> {
    if letter.is_whitespace() {
        return None;
    }
    Some(find(letter).unwrap_or(&glyphs::UNKNOWN))
}

/// Returns the glyph of a letter that the font has.
fn find(letter: char) -> Option<&'static Glyph> {
    glyphs::GLYPHS.iter().find(|glyph| glyph.letter == letter)
}

/// Returns the strokes of a path. A missing number ends it.
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
                    let at =
                        (1..=CURVE_SEGMENTS).map(|at| f32::from(at) / f32::from(CURVE_SEGMENTS));
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
    let steps = ((to - from).abs() / 360.0 * ELLIPSE_SEGMENTS)
        .ceil()
        .max(2.0) as u8;
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
    fn every_glyph_is_inside_its_frame() {
        let greek = "αβγδεζηθικλνξοπρσςτυφχψωΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ";
        let letters = ('!'..='~').chain("µ°²³·×–…≤≥→ßæÆøØłŁđı±√∞∂∑≈≠".chars());
        for letter in letters.chain(greek.chars()) {
            let glyph = find(letter).unwrap_or_else(|| panic!("no glyph for {letter}"));
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
    fn no_glyph_is_defined_twice_and_every_path_is_complete() {
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
    fn text_has_the_width_of_its_letters() {
        assert!(width("", 10.0).abs() < 1e-6);
        assert!(width("mm", 20.0) > 2.0 * width("m", 20.0));
        assert!((width("mm", 20.0) - 2.0 * width("mm", 10.0)).abs() < 1e-4);
    }

    #[test]
    fn text_beyond_ascii_is_drawn_or_spelled() {
        let check = |text: &str, want: &str, note: Option<&str>| {
            assert_eq!(spelled(text), want, "{text}");
            for letter in want.chars().filter(|letter| !letter.is_whitespace()) {
                let is_known = find(letter).is_some() || glyphs::mark(letter).is_some();
                assert!(is_known, "{letter}");
            }
            let found = substitution_note([text].into_iter());
            let prefix = "the font of pictures lacks some characters: the picture shows ";
            let note = note.map(|note| format!("{prefix}{note}"));
            assert_eq!(found, note, "{text}");
        };
        check("Straße, σ = 3 µm", "Straße, σ = 3 µm", None);
        check("\u{3bc}m", "µm", None);
        check(
            "Čerenkov à Ångström",
            "C\u{30c}erenkov a\u{300} A\u{30a}ngstro\u{308}m",
            None,
        );
        check("e\u{301}", "e\u{301}", None);
        check("“x” — y", "\"x\" – y", None);
        check("Клетка 7", "Kletka 7", Some("Каеклт in Latin letters"));
        check("神経 A", "[U+795E U+7D4C] A", Some("神経 as code points"));
        check("👾", "[U+1F47E]", Some("👾 as code points"));
    }

    #[test]
    fn marks_add_strokes_but_no_width() {
        assert!((width("é", 10.0) - width("e", 10.0)).abs() < 1e-4);
        assert_eq!(strokes("é", 10.0).len(), strokes("e", 10.0).len() + 1);
        // The accent replaces the dot of the i.
        assert_eq!(strokes("í", 10.0).len(), strokes("i", 10.0).len());
        let top = |text: &str| {
            let strokes = strokes(text, 10.0);
            let ys = strokes.iter().flatten().map(|[_, y]| *y);
            ys.fold(f32::INFINITY, f32::min)
        };
        assert!(top("É") < top("é") && top("é") < top("e"));
    }

    #[test]
    fn long_text_is_cut_to_a_width() {
        assert_eq!(fitted("short", 10.0, 100.0), "short");
        let cut = fitted(&"long name ".repeat(9), 10.0, 100.0);
        assert!(cut.starts_with("long name") && cut.ends_with('…'), "{cut}");
        assert!(width(&cut, 10.0) <= 100.0);
        assert_eq!(fitted("long", 10.0, 0.0), "…");
    }
}
