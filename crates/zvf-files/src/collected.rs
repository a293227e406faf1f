//! Results that are written as a whole.

use zvf::{Column, QueryResult};

use crate::{
    FileFault,
    values::{AxisOrder, numbers, to_f64},
    writer::paths,
};

/// The geometry of a result, collected from its batches.
#[derive(Debug, Default)]
pub(crate) struct WholeResult {
    pub(crate) positions: Vec<[f64; 3]>,
    /// Ends of links, in rows of `positions`.
    pub(crate) links: Vec<u64>,
    pub(crate) width: usize,
    /// Rows of each path.
    pub(crate) paths: Vec<(usize, usize)>,
    pub(crate) has_paths: bool,
    /// Red, green, blue and alpha of each vertex, if the store has colours.
    pub(crate) colours: Vec<[u8; 4]>,
    pub(crate) left_out: Vec<String>,
    is_planned: bool,
}

/// Names of attributes that are colours.
const COLOURS: [&str; 4] = ["rgba", "rgb", "color", "colors"];

impl WholeResult {
    /// Adds a batch. Attributes other than those in `kept` are listed as left out.
    pub(crate) fn add(
        &mut self,
        batch: &QueryResult,
        format: &'static str,
        keeps_colours: bool,
    ) -> Result<(), FileFault> {
        let coordinates = AxisOrder::of(batch, format)?;
        let first = self.positions.len();
        self.positions.extend(coordinates.rows(&batch.positions)?);
        let colours = batch
            .vertex
            .iter()
            .find(|column| COLOURS.contains(&column.name.as_str()));
        let colours = colours.filter(|_| keeps_colours);
        if let Some(bytes) = colours.and_then(colour_bytes) {
            self.colours.extend(bytes);
        }
        if !std::mem::replace(&mut self.is_planned, true) {
            let scopes = [
                ("vertex", &batch.vertex),
                ("fragment", &batch.fragment),
                ("link", &batch.link),
                ("object", &batch.object),
            ];
            let is_kept = |column: &&Column| colours.is_none_or(|kept| kept.name != column.name);
            for (scope, columns) in scopes {
                let out = columns
                    .iter()
                    .filter(|column| scope != "vertex" || is_kept(column));
                let lines =
                    out.map(|column| format!("{scope}.{}: not supported by {format}", column.name));
                self.left_out.extend(lines);
            }
        }
        if batch.parts.is_some() {
            self.has_paths = true;
            let all = paths(batch, format)?.into_iter();
            let all = all.map(|path| {
                (
                    first.saturating_add(path.start),
                    first.saturating_add(path.end),
                )
            });
            self.paths.extend(all);
        }
        if let Some(links) = &batch.links {
            self.width = usize::try_from(links.width).unwrap_or(usize::MAX);
            self.links.extend_from_slice(&links.ends);
        }
        Ok(())
    }

    /// Returns the triangles of the polygons, as fans around their first corner.
    ///
    /// # Errors
    ///
    /// [`FileFault::Broken`] if a link ends in no vertex.
    pub(crate) fn triangles(&self) -> Result<Vec<[usize; 3]>, FileFault> {
        let count = self.positions.len();
        let mut triangles = Vec::new();
        for corners in self.links.chunks_exact(self.width.max(1)) {
            let row = |corner: &u64| usize::try_from(*corner).ok().filter(|row| *row < count);
            let rows: Option<Vec<usize>> = corners.iter().map(row).collect();
            let rows = rows.ok_or(FileFault::Broken(
                "a link refers to a vertex that does not exist",
            ))?;
            let Some((first, rest)) = rows.split_first() else {
                continue;
            };
            for pair in rest.windows(2) {
                let &[second, third] = pair else { continue };
                triangles.push([*first, second, third]);
            }
        }
        Ok(triangles)
    }
}

/// Converts colours to bytes: integers as they are, floats from 0 to 1.
fn colour_bytes(column: &Column) -> Option<Vec<[u8; 4]>> {
    let values = numbers(column)?;
    let width = values.row_len();
    if !matches!(width, 3 | 4) {
        return None;
    }
    let is_float = values.kind.name().starts_with("float");
    let is_wide = values.kind.name().ends_with("16") && !is_float;
    let scale = match (is_float, is_wide) {
        (true, _) => 255.0,
        (false, true) => 1.0 / 257.0,
        (false, false) => 1.0,
    };
    let floats = to_f64(&values)?;
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is clamped to a byte"
    )]
    let byte = |value: f64| (value * scale).round().clamp(0.0, 255.0) as u8;
    let rows = floats.chunks_exact(width).map(|row| {
        let at = |channel: usize, other: u8| row.get(channel).copied().map_or(other, byte);
        [at(0, 0), at(1, 0), at(2, 0), at(3, 255)]
    });
    Some(rows.collect())
}
