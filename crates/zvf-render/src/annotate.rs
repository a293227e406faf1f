//! What is written beside a picture: a title, what colours mean, how long things are, and where
//! the axes go.

use crate::{
    color::{Background, Color},
    font,
    paint::{Kinds, Paint},
    palette, scale,
    sheet::{Anchor, Sheet},
    view::{Camera, Window},
};

/// Size of plain text.
const TEXT: f32 = 14.0;
/// Between what is written and the border.
const EDGE: f32 = 22.0;
/// Categories that are listed.
const MOST_LISTED: usize = 14;

/// What a picture says beside what it shows. Lengths are in units of text: `zoom` of them are
/// dots.
#[derive(Debug)]
pub(crate) struct Notes<'a> {
    pub(crate) size: [f32; 2],
    pub(crate) background: Background,
    pub(crate) title: &'a str,
    pub(crate) subtitle: String,
    /// Names of the axes that are drawn, and their unit where they share one.
    pub(crate) axes: [Option<&'a str>; 3],
    pub(crate) unit: Option<&'a str>,
    pub(crate) has_scale: bool,
}

/// How many dots a unit of text is, for a picture of this size.
pub(crate) fn zoom(width: usize, height: usize) -> f32 {
    (width.min(height) as f32 / 800.0).clamp(0.5, 6.0)
}

impl Notes<'_> {
    /// What is left for the picture.
    pub(crate) fn window(&self, paint: &Paint) -> Window {
        let legend = match paint.kinds {
            Kinds::Numbers { .. } => 96.0,
            Kinds::Words { .. } | Kinds::Integers(_) => self.list_width(paint) + 24.0,
            _ => 0.0,
        };
        let top = if self.title.is_empty() { EDGE } else { 70.0 };
        let bottom = 62.0;
        Window {
            from: [EDGE, top],
            size: [
                self.size[0] - 2.0 * EDGE - legend,
                self.size[1] - top - bottom,
            ],
        }
    }

    /// All of it.
    pub(crate) fn sheet(&self, paint: &Paint, camera: &Camera, zoom: f32) -> Sheet {
        let mut sheet = Sheet::default();
        let (ink, faint) = (self.background.ink(), self.background.faint_ink());
        if !self.title.is_empty() {
            sheet.text([EDGE, 36.0], 19.0, Anchor::Start, self.title, ink);
            sheet.text([EDGE, 58.0], TEXT, Anchor::Start, &self.subtitle, faint);
        }
        self.legend(&mut sheet, paint);
        self.directions(
            &mut sheet,
            camera,
            matches!(paint.kinds, Kinds::Orientation),
        );
        if self.has_scale {
            self.scale_bar(&mut sheet, camera.scale / zoom);
        }
        sheet
    }

    fn legend(&self, sheet: &mut Sheet, paint: &Paint) {
        match &paint.kinds {
            Kinds::Numbers {
                ramp,
                background,
                low,
                high,
                is_below,
                is_above,
            } => {
                self.color_bar(
                    sheet,
                    &paint.name,
                    |at| ramp.on(*background, at),
                    (*low, *high),
                    (*is_below, *is_above),
                );
            }
            Kinds::Words { names, .. } => {
                let names = names.iter().enumerate();
                let names = names.map(|(at, name)| (palette::category(at as u32), name.clone()));
                self.list(sheet, paint, &names.collect::<Vec<_>>());
            }
            Kinds::Integers(values) => {
                let values = values.iter().enumerate();
                let values =
                    values.map(|(at, value)| (palette::category(at as u32), value.to_string()));
                self.list(sheet, paint, &values.collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    fn color_bar(
        &self,
        sheet: &mut Sheet,
        name: &str,
        color: impl Fn(f32) -> Color,
        (low, high): (f32, f32),
        (is_below, is_above): (bool, bool),
    ) {
        let (ink, faint) = (self.background.ink(), self.background.faint_ink());
        let height = (self.size[1] * 0.42).min(360.0);
        let (width, left) = (15.0, self.size[0] - EDGE - 62.0);
        let top = (self.size[1] - height) / 2.0;
        sheet.text(
            [self.size[0] - EDGE, top - 24.0],
            TEXT + 1.0,
            Anchor::End,
            name,
            ink,
        );
        let steps = 96_u8;
        let step = height / f32::from(steps);
        // Each down to the foot of the bar, or the dots between two would be of neither.
        for at in 0..steps {
            let y = top + f32::from(at) * step;
            let share = 1.0 - (f32::from(at) + 0.5) / f32::from(steps);
            sheet.fill([left, y], [width, top + height - y], color(share));
        }
        for (value, text) in scale::ticks(f64::from(low), f64::from(high), 5) {
            let share = (value as f32 - low) / (high - low);
            let y = top + height * (1.0 - share);
            sheet.line(
                [[left + width + 3.0, y], [left + width + 7.0, y]],
                1.2,
                faint,
            );
            sheet.text(
                [left + width + 12.0, y + 4.6],
                TEXT - 1.0,
                Anchor::Start,
                &text,
                ink,
            );
        }
        // Some of what is drawn is beyond the ends.
        let middle = left + width / 2.0;
        if is_above {
            sheet.line(
                [
                    [middle - 4.0, top - 5.0],
                    [middle, top - 10.0],
                    [middle + 4.0, top - 5.0],
                ],
                1.6,
                faint,
            );
        }
        if is_below {
            let low = top + height;
            sheet.line(
                [
                    [middle - 4.0, low + 5.0],
                    [middle, low + 10.0],
                    [middle + 4.0, low + 5.0],
                ],
                1.6,
                faint,
            );
        }
    }

    fn list_width(&self, paint: &Paint) -> f32 {
        let of = |text: &str| font::width(text, TEXT) + 24.0;
        let widths: Vec<f32> = match &paint.kinds {
            Kinds::Words { names, .. } => names
                .iter()
                .take(MOST_LISTED)
                .map(|name| of(name))
                .collect(),
            Kinds::Integers(values) => values.iter().map(|value| of(&value.to_string())).collect(),
            _ => Vec::new(),
        };
        let title = font::width(&paint.name, TEXT + 1.0);
        widths
            .into_iter()
            .fold(title, f32::max)
            .min(self.size[0] * 0.3)
    }

    fn list(&self, sheet: &mut Sheet, paint: &Paint, entries: &[(Color, String)]) {
        let (ink, faint) = (self.background.ink(), self.background.faint_ink());
        let shown = entries.len().min(MOST_LISTED);
        let left = self.size[0] - EDGE - self.list_width(paint);
        let line = 25.0;
        let mut y = (self.size[1] - line * shown as f32) / 2.0;
        sheet.text(
            [left, y - 12.0],
            TEXT + 1.0,
            Anchor::Start,
            &paint.name,
            ink,
        );
        for (color, name) in entries.iter().take(shown) {
            y += line;
            sheet.line(
                [[left + 6.0, y - 5.0], [left + 6.01, y - 5.0]],
                12.0,
                *color,
            );
            sheet.text([left + 22.0, y], TEXT, Anchor::Start, name, ink);
        }
        if entries.len() > shown {
            let more = format!("and {} more", entries.len() - shown);
            sheet.text([left, y + line], TEXT - 1.0, Anchor::Start, &more, faint);
        }
    }

    /// The axes, in the colours of directions where these are shown.
    fn directions(&self, sheet: &mut Sheet, camera: &Camera, is_colored: bool) {
        let faint = self.background.faint_ink();
        let ink = self.background.ink();
        let length = 30.0;
        let arms: Vec<_> = (0..3_usize)
            .filter_map(|axis| {
                let name = self.axes.get(axis).copied().flatten()?;
                let mut along = [0.0; 3];
                *along.get_mut(axis)? = 1.0;
                let [x, y, near] = camera.turn().apply(along);
                let color = if is_colored {
                    palette::direction(along)
                } else {
                    faint
                };
                Some((near, [x * length, -y * length], color, name))
            })
            .collect();
        // Far enough from the corner that no arm leaves the picture.
        let room = |side: usize, sign: f32| {
            let reach = arms.iter().map(|(_, arm, _, _)| arm[side] * sign);
            reach.fold(0.0, f32::max) + 14.0
        };
        let origin = [
            EDGE - 6.0 + room(0, -1.0),
            self.size[1] - EDGE + 6.0 - room(1, 1.0),
        ];
        let mut arms = arms;
        arms.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, [x, y], color, name) in arms {
            let reach = x.hypot(y);
            // An axis that points at who looks has nothing to show.
            if reach < 4.0 {
                continue;
            }
            let tip = [origin[0] + x, origin[1] + y];
            sheet.line([origin, tip], 2.2, color);
            let beyond = (reach + 10.0) / reach;
            let at = [origin[0] + x * beyond, origin[1] + y * beyond + 4.6];
            let name: String = name.chars().take(8).collect();
            sheet.text(
                at,
                TEXT - 1.0,
                Anchor::Middle,
                &name,
                if is_colored { color } else { ink },
            );
        }
    }

    /// `scale` is units of text of a unit of the store.
    fn scale_bar(&self, sheet: &mut Sheet, scale: f32) {
        let (ink, faint) = (self.background.ink(), self.background.faint_ink());
        let most = f64::from((self.size[0] * 0.2).min(200.0) / scale);
        let (length, text) = scale::bar(most, self.unit);
        let right = self.size[0] - EDGE;
        let left = right - length as f32 * scale;
        let y = self.size[1] - EDGE;
        if !left.is_finite() || right - left < 4.0 {
            return;
        }
        sheet.line([[left, y], [right, y]], 2.4, ink);
        for end in [left, right] {
            sheet.line([[end, y - 4.5], [end, y + 4.5]], 2.4, ink);
        }
        let middle = f32::midpoint(left, right).min(right - font::width(&text, TEXT) / 2.0);
        sheet.text([middle, y - 11.0], TEXT, Anchor::Middle, &text, faint);
    }
}
