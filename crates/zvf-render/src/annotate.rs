//! Annotations of a picture: title, legend of the colours, scale bar and axes.

use crate::{
    color::{Background, Color},
    font,
    paint::{ColorRange, ColorScale, Paint},
    palette::{self, Categories},
    scale,
    sheet::{Anchor, Sheet},
    view::{Camera, Window},
};

/// Size of plain text.
const TEXT: f32 = 14.0;
/// Margin between annotations and the border of the picture.
const EDGE: f32 = 22.0;
/// Maximum number of categories in a legend.
const MAX_LISTED: usize = 20;
/// Distances between the lines of a legend: preferred, and if space is short.
const LINE: f32 = 25.0;
const MIN_LINE: f32 = 16.0;
/// Width of a colour bar, the distance of its labels, and the minimum width of both.
const BAR: f32 = 15.0;
const LABEL_GAP: f32 = 12.0;
const MIN_BAR_WIDTH: f32 = 62.0;

/// The content of annotations. Lengths are in units of text; a unit is [`zoom`] pixels.
#[derive(Debug)]
pub(crate) struct Notes<'a> {
    pub(crate) size: [f32; 2],
    pub(crate) background: Background,
    pub(crate) title: &'a str,
    pub(crate) subtitle: String,
    /// Names of the drawn axes, and their unit if they share one.
    pub(crate) axes: [Option<&'a str>; 3],
    pub(crate) unit: Option<&'a str>,
    pub(crate) has_scale: bool,
}

/// Returns the number of pixels per unit of text for a picture of this size.
pub(crate) fn zoom(width: usize, height: usize) -> f32 {
    (width.min(height) as f32 / 800.0).clamp(0.5, 6.0)
}

impl Notes<'_> {
    /// Returns the part of the picture that annotations leave free.
    pub(crate) fn window(&self, paint: &Paint) -> Window {
        let legend = match Legend::of(paint) {
            Some(Legend::Bar(range)) => bar_width(range) + 34.0,
            Some(Legend::List(list)) => self.list_width(paint, &list) + 24.0,
            None => 0.0,
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

    /// Draws all annotations.
    pub(crate) fn sheet(&self, paint: &Paint, camera: &Camera, zoom: f32) -> Sheet {
        let mut sheet = Sheet::default();
        let (text_color, faint) = (
            self.background.text_color(),
            self.background.faint_text_color(),
        );
        if !self.title.is_empty() {
            let width = self.size[0] - 2.0 * EDGE;
            let title = font::fitted(self.title, 19.0, width);
            let subtitle = font::fitted(&self.subtitle, TEXT, width);
            sheet.text([EDGE, 36.0], 19.0, Anchor::Start, &title, text_color);
            sheet.text([EDGE, 58.0], TEXT, Anchor::Start, &subtitle, faint);
        }
        self.legend(&mut sheet, paint);
        self.directions(
            &mut sheet,
            camera,
            matches!(paint.scale, ColorScale::Orientation),
        );
        if self.has_scale {
            self.scale_bar(&mut sheet, camera.scale / zoom);
        }
        sheet
    }

    fn legend(&self, sheet: &mut Sheet, paint: &Paint) {
        if let Some(Legend::List(list)) = Legend::of(paint) {
            self.list(sheet, paint, &list);
        }
        if let ColorScale::Numbers {
            ramp,
            background,
            range,
            is_below,
            is_above,
            ..
        } = &paint.scale
        {
            self.color_bar(
                sheet,
                &paint.name,
                |at| ramp.on(*background, at),
                *range,
                (*is_below, *is_above),
            );
        }
    }

    fn color_bar(
        &self,
        sheet: &mut Sheet,
        name: &str,
        color: impl Fn(f32) -> Color,
        range: ColorRange,
        (is_below, is_above): (bool, bool),
    ) {
        let (text_color, faint) = (
            self.background.text_color(),
            self.background.faint_text_color(),
        );
        let height = (self.size[1] * 0.42).min(360.0);
        let (width, left) = (BAR, self.size[0] - EDGE - bar_width(range));
        let top = (self.size[1] - height) / 2.0;
        sheet.text(
            [self.size[0] - EDGE, top - 24.0],
            TEXT + 1.0,
            Anchor::End,
            &font::fitted(name, TEXT + 1.0, self.size[0] * 0.5),
            text_color,
        );
        let steps = 96_u8;
        let step = height / f32::from(steps);
        // Each step reaches down to the foot of the bar, so that no gap shows between two steps.
        for at in 0..steps {
            let y = top + f32::from(at) * step;
            let share = 1.0 - (f32::from(at) + 0.5) / f32::from(steps);
            sheet.fill([left, y], [width, top + height - y], color(share));
        }
        for (value, text) in range.ticks() {
            let y = top + height * (1.0 - range.share(value));
            sheet.line(
                [[left + width + 3.0, y], [left + width + 7.0, y]],
                1.2,
                faint,
            );
            sheet.text(
                [left + width + LABEL_GAP, y + 4.6],
                TEXT - 1.0,
                Anchor::Start,
                &text,
                text_color,
            );
        }
        // Arrows show that some values are beyond the ends.
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

    fn list_width(&self, paint: &Paint, list: &List) -> f32 {
        let entries = list
            .entries
            .iter()
            .map(|(_, name)| font::width(name, TEXT))
            .map(|width| width + 24.0);
        let title = font::width(List::title(paint), TEXT + 1.0);
        let rest = font::width(&list.rest(list.entries.len()), TEXT - 1.0);
        entries
            .fold(title.max(rest), f32::max)
            .min(self.size[0] * 0.3)
    }

    fn list(&self, sheet: &mut Sheet, paint: &Paint, list: &List) {
        let (text_color, faint) = (
            self.background.text_color(),
            self.background.faint_text_color(),
        );
        let width = self.list_width(paint, list);
        let left = self.size[0] - EDGE - width;
        // Title, subtitle and scale bar are above and below.
        let room = (self.size[1] - 150.0).max(MIN_LINE);
        let fitting = ((room / MIN_LINE) as usize).max(1);
        let shown = list.entries.len().min(fitting);
        let line = (room / shown.max(1) as f32).clamp(MIN_LINE, LINE);
        let mut y = (self.size[1] - line * shown as f32) / 2.0;
        sheet.text(
            [left, y - 12.0],
            TEXT + 1.0,
            Anchor::Start,
            &font::fitted(List::title(paint), TEXT + 1.0, width),
            text_color,
        );
        for (color, name) in list.entries.iter().take(shown) {
            y += line;
            let middle = y - 5.0;
            sheet.line([[left + 6.0, middle], [left + 6.01, middle]], 12.0, *color);
            let name = font::fitted(name, TEXT, width - 22.0);
            sheet.text([left + 22.0, y], TEXT, Anchor::Start, &name, text_color);
        }
        let rest = list.rest(shown);
        if !rest.is_empty() {
            // Without entries, the count stands directly below the title.
            let below = if shown == 0 { 8.0 } else { line };
            sheet.text([left, y + below], TEXT - 1.0, Anchor::Start, &rest, faint);
        }
    }

    /// Draws the axes, coloured if colours show directions.
    fn directions(&self, sheet: &mut Sheet, camera: &Camera, is_colored: bool) {
        let faint = self.background.faint_text_color();
        let text_color = self.background.text_color();
        let length = 30.0;
        let arms: Vec<_> = (0..3_usize)
            .filter_map(|axis| {
                let name = self.axes.get(axis).copied().flatten()?;
                let mut along = [0.0; 3];
                *along.get_mut(axis)? = 1.0;
                let [x, y, near] = camera.rotation().apply(along);
                let color = if is_colored {
                    palette::direction(along)
                } else {
                    faint
                };
                let label = font::fitted(name, TEXT - 1.0, self.size[0] * 0.3);
                Some(Arm {
                    near,
                    along: [x * length, -y * length],
                    color,
                    label,
                })
            })
            .collect();
        // The origin is far enough from the corner for every arm and label.
        let room = |side: usize, sign: f32| {
            let reach = arms.iter().map(|arm| arm.along[side] * sign);
            reach.fold(0.0, f32::max) + 14.0
        };
        let labels = arms.iter().map(Arm::reach_of_label).fold(0.0, f32::max);
        let origin = [
            EDGE - 6.0 + room(0, -1.0).max(labels),
            self.size[1] - EDGE + 6.0 - room(1, 1.0),
        ];
        let mut arms = arms;
        arms.sort_by(|a, b| a.near.total_cmp(&b.near));
        for arm in arms {
            let ([x, y], color) = (arm.along, arm.color);
            let reach = x.hypot(y);
            // An axis that points at the viewer has no visible length.
            if reach < 4.0 {
                continue;
            }
            let tip = [origin[0] + x, origin[1] + y];
            sheet.line([origin, tip], 2.2, color);
            let beyond = (reach + 10.0) / reach;
            let at = [origin[0] + x * beyond, origin[1] + y * beyond + 4.6];
            sheet.text(
                at,
                TEXT - 1.0,
                arm.anchor(),
                &arm.label,
                if is_colored { color } else { text_color },
            );
        }
    }

    /// Draws the scale bar; `scale` is the number of units of text per unit of the store.
    fn scale_bar(&self, sheet: &mut Sheet, scale: f32) {
        let (text_color, faint) = (
            self.background.text_color(),
            self.background.faint_text_color(),
        );
        let max = f64::from((self.size[0] * 0.2).min(200.0) / scale);
        let (length, text) = scale::bar(max, self.unit);
        let right = self.size[0] - EDGE;
        let left = right - length as f32 * scale;
        let y = self.size[1] - EDGE;
        if !left.is_finite() || right - left < 4.0 {
            return;
        }
        sheet.line([[left, y], [right, y]], 2.4, text_color);
        for end in [left, right] {
            sheet.line([[end, y - 4.5], [end, y + 4.5]], 2.4, text_color);
        }
        let middle = f32::midpoint(left, right).min(right - font::width(&text, TEXT) / 2.0);
        sheet.text([middle, y - 11.0], TEXT, Anchor::Middle, &text, faint);
    }
}

/// An axis.
struct Arm {
    /// Component toward the viewer.
    near: f32,
    /// The arm on the sheet.
    along: [f32; 2],
    color: Color,
    label: String,
}

impl Arm {
    /// Returns the side of the label that is at the tip. Long labels lead away from the arm.
    fn anchor(&self) -> Anchor {
        let [x, y] = self.along;
        if self.label.chars().count() <= 3 || x.abs() < y.abs() * 0.3 {
            Anchor::Middle
        } else if x > 0.0 {
            Anchor::Start
        } else {
            Anchor::End
        }
    }

    /// Returns the distance by which the label extends to the left of the origin.
    fn reach_of_label(&self) -> f32 {
        let [x, y] = self.along;
        let reach = x.hypot(y);
        if reach < 4.0 {
            return 0.0;
        }
        let tip = x * (reach + 10.0) / reach;
        let width = font::width(&self.label, TEXT - 1.0);
        match self.anchor() {
            Anchor::Start => -tip,
            Anchor::Middle if self.label.chars().count() <= 3 => 0.0,
            Anchor::Middle => width / 2.0 - tip,
            Anchor::End => width - tip,
        }
    }
}

/// A legend.
enum Legend {
    Bar(ColorRange),
    List(List),
}

/// Returns the width of a colour bar with its labels.
fn bar_width(range: ColorRange) -> f32 {
    let ticks = range.ticks();
    let labels = ticks.iter().map(|(_, text)| font::width(text, TEXT - 1.0));
    (BAR + LABEL_GAP + labels.fold(0.0, f32::max)).max(MIN_BAR_WIDTH)
}

/// Categories of a legend.
struct List {
    entries: Vec<(Color, String)>,
    /// Number of categories, listed or not.
    count: usize,
    noun: &'static str,
}

impl Legend {
    /// Returns the legend of a colour scale; `None` if there is nothing to explain.
    fn of(paint: &Paint) -> Option<Self> {
        let listed = |names: &mut dyn Iterator<Item = String>, colors: &Categories| {
            let entries = (0_u32..)
                .zip(names.take(MAX_LISTED))
                .map(|(rank, name)| (colors.color(rank), name));
            entries.collect::<Vec<_>>()
        };
        let (entries, count, noun) = match &paint.scale {
            ColorScale::Numbers { range, .. } => return Some(Self::Bar(*range)),
            ColorScale::Words {
                names,
                by_use,
                colors,
                ..
            } => {
                // The most frequent of many, in the order of their names.
                let mut ranks: Vec<u32> = by_use.iter().take(MAX_LISTED).copied().collect();
                ranks.sort_unstable();
                let entry =
                    |rank: &u32| Some((colors.color(*rank), names.get(*rank as usize)?.clone()));
                let entries = ranks.iter().filter_map(entry).collect();
                (entries, names.len(), "values")
            }
            ColorScale::Integers { values, colors, .. } => {
                let entries = listed(&mut values.iter().map(i128::to_string), colors);
                (entries, values.len(), "values")
            }
            // One object needs no legend, and a few of many ids tell nothing.
            ColorScale::Objects { ids, .. } if ids.len() < 2 => return None,
            ColorScale::Objects { ids, .. } if ids.len() > MAX_LISTED => {
                (Vec::new(), ids.len(), "objects")
            }
            ColorScale::Objects { ids, colors, .. } => {
                let entries = listed(&mut ids.iter().map(i64::to_string), colors);
                (entries, ids.len(), "objects")
            }
            ColorScale::Fixed(_) | ColorScale::Orientation | ColorScale::Color(_) => return None,
        };
        Some(Self::List(List {
            entries,
            count,
            noun,
        }))
    }
}

impl List {
    fn title(paint: &Paint) -> &str {
        match paint.scale {
            ColorScale::Objects { .. } => "object",
            _ => &paint.name,
        }
    }

    /// Returns the line below `shown` entries, empty if no category is left.
    fn rest(&self, shown: usize) -> String {
        match self.count.saturating_sub(shown) {
            0 => String::new(),
            count if shown == 0 => format!("{} {}", scale::grouped(count as u64), self.noun),
            count => format!("and {} more", scale::grouped(count as u64)),
        }
    }
}
