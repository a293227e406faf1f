//! Flat drawings of boxes, lines and text, drawn on a picture or written as SVG.

use core::fmt::Write;

use crate::{
    color::Color,
    font::{self, Place},
};

/// The part of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A shape or text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    Box {
        from: Place,
        size: Place,
        color: Color,
    },
    Line {
        places: Vec<Place>,
        width: f32,
        color: Color,
    },
    Text {
        at: Place,
        size: f32,
        anchor: Anchor,
        text: String,
        color: Color,
    },
}

/// Shapes and text; later ones cover earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    pub(crate) marks: Vec<Mark>,
}

/// Maximum number of characters of a text.
const MAX_CHARACTERS: usize = 64;

impl Sheet {
    pub(crate) fn fill(&mut self, from: Place, size: Place, color: Color) {
        self.marks.push(Mark::Box { from, size, color });
    }

    pub(crate) fn line(&mut self, places: impl Into<Vec<Place>>, width: f32, color: Color) {
        let places = places.into();
        self.marks.push(Mark::Line {
            places,
            width,
            color,
        });
    }

    pub(crate) fn text(&mut self, at: Place, size: f32, anchor: Anchor, text: &str, color: Color) {
        let text = shown(text);
        self.marks.push(Mark::Text {
            at,
            size,
            anchor,
            text,
            color,
        });
    }

    /// Returns the text of the note on characters that pictures show in another form, if any.
    pub(crate) fn substitution_note(&self) -> Option<String> {
        let texts = self.marks.iter().filter_map(|mark| match mark {
            Mark::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        font::substitution_note(texts)
    }

    /// Writes the sheet as an SVG file.
    pub(crate) fn svg(&self, [width, height]: Place, background: Color) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" \
             font-family=\"Inter, 'Segoe UI', Helvetica, Arial, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{background}\"/>\n"
        );
        for mark in &self.marks {
            // Writing to a string cannot fail.
            let _ = match mark {
                Mark::Box {
                    from: [x, y],
                    size: [width, height],
                    color,
                } => writeln!(
                    svg,
                    "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
                     fill=\"{color}\"/>"
                ),
                Mark::Line {
                    places,
                    width,
                    color,
                } => {
                    let places: Vec<String> = places
                        .iter()
                        .map(|[x, y]| format!("{x:.2},{y:.2}"))
                        .collect();
                    writeln!(
                        svg,
                        "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" \
                         stroke-width=\"{width:.2}\" stroke-linecap=\"round\" \
                         stroke-linejoin=\"round\"/>",
                        places.join(" ")
                    )
                }
                Mark::Text {
                    at: [x, y],
                    size,
                    anchor,
                    text,
                    color,
                } => {
                    let anchor = match anchor {
                        Anchor::Start => "start",
                        Anchor::Middle => "middle",
                        Anchor::End => "end",
                    };
                    writeln!(
                        svg,
                        "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size:.2}\" \
                         text-anchor=\"{anchor}\" fill=\"{color}\">{}</text>",
                        escaped(text)
                    )
                }
            };
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl Anchor {
    /// Returns the distance from the start of a text to its position.
    pub(crate) fn shift(self, text: &str, size: f32) -> f32 {
        match self {
            Self::Start => 0.0,
            Self::Middle => font::width(text, size) / 2.0,
            Self::End => font::width(text, size),
        }
    }
}

/// Shortens a text and replaces control characters.
fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(MAX_CHARACTERS)
        .map(|letter| match letter {
            // These reorder the text around them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            letter if letter.is_control() => '\u{fffd}',
            letter => letter,
        })
        .collect();
    if text.chars().nth(MAX_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        let mut sheet = Sheet::default();
        let color = Color::default();
        sheet.text(
            [0.0, 0.0],
            10.0,
            Anchor::Start,
            "</text><script>\u{1b}\"&",
            color,
        );
        let svg = sheet.svg([10.0, 10.0], color);
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;\u{fffd}&quot;&amp;</text>"));
        sheet.text([0.0, 0.0], 10.0, Anchor::Start, &"x".repeat(1000), color);
        assert!(sheet.svg([10.0, 10.0], color).len() < svg.len() + 300);
    }
}
