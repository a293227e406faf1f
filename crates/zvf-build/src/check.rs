//! Validation of geometry against a design, before planning.

use std::collections::HashSet;

use crate::{
    GeometryKind,
    design::{Design, ManifestForm, Profile},
    error::BuildError,
    geometry::{Geometry, LinkNumbering},
};
use zvf_format::numeric::Kind;
use zvf_model::{
    column::{Column, ColumnValues},
    layout::FRAGMENT_OWNERS,
    scope::Scope,
    zarr::MAX_RANK,
};

/// Checks that the profile has the form of the object index, and that Draco can encode the positions.
fn check_forms(geometry: &Geometry, design: &Design) -> Result<(), BuildError> {
    if design.object_index == ManifestForm::Dense && design.profile != Profile::V09 {
        return Err(BuildError::DenseIndex);
    }
    if design.draco.is_none() {
        return Ok(());
    }
    let dtype = design.dtype.unwrap_or(geometry.positions.kind);
    Err(BuildError::NoDraco(match () {
        () if design.profile != Profile::V09 => "only stores of 0.9 have the encoding",
        () if geometry.axes() != 3 => "positions must have three coordinates",
        () if dtype != Kind::Float32 => "coordinates must be of type float32",
        () => return Ok(()),
    }))
}

/// Limit of readers on the number of objects.
const MAX_OBJECTS: i64 = 1 << 26;

/// Checks that columns of the geometry agree and that the design supports them.
pub(crate) fn check(geometry: &Geometry, design: &Design) -> Result<(), BuildError> {
    if geometry.positions.bytes.is_empty() {
        return Err(BuildError::Empty);
    }
    check_columns(geometry, design, || {
        check_links(geometry, design)?;
        check_ends(geometry)
    })
}

/// Checks a batch. Batches of points and paths may have no vertices: the latter hold empty paths. If
/// links number the vertices of the input, they may refer to vertices of other batches, and the batch
/// may have no vertices.
pub(crate) fn check_batch(
    batch: &Geometry,
    design: &Design,
    numbering: LinkNumbering,
) -> Result<(), BuildError> {
    let links = || match (batch.links.is_empty(), numbering) {
        (true, _) => Ok(()),
        (false, LinkNumbering::Input) => check_links(batch, design),
        (false, LinkNumbering::Batch) => {
            check_links(batch, design)?;
            check_ends(batch)
        }
    };
    if numbering == LinkNumbering::Input && batch.vertices() == 0 && !batch.links.is_empty() {
        links()?;
        return attributes("link attribute", &batch.link, batch.link_count());
    }
    if design.kind.is_linked() && batch.positions.bytes.is_empty() {
        return Err(BuildError::Empty);
    }
    check_columns(batch, design, links)
}

fn check_columns(
    geometry: &Geometry,
    design: &Design,
    check_links: impl FnOnce() -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let kind = design.kind.plural();
    let positions = &geometry.positions;
    let size = positions.row_size();
    if !positions.bytes.len().is_multiple_of(size) {
        return Err(BuildError::PartialPositions {
            bytes: positions.bytes.len(),
            axes: positions.row_len(),
            kind: positions.kind,
        });
    }
    let vertices = geometry.vertices();
    if geometry.axes() > MAX_RANK {
        return Err(BuildError::PositionAxes {
            vertices,
            axes: geometry.axes(),
        });
    }
    if u32::try_from(vertices).is_err() {
        return Err(BuildError::TooManyVertices(vertices));
    }
    check_forms(geometry, design)?;
    if design.winding.is_some() && !design.kind.has_faces() {
        return Err(BuildError::NoWinding(kind));
    }
    let paths = design.kind.is_paths();
    match (&geometry.part_offsets, paths) {
        (None, true) => return Err(needs(kind, "part_offsets")),
        (Some(_), false) => return Err(no_place(kind, "part_offsets")),
        (Some(offsets), true) => check_offsets(offsets, vertices, design.kind)?,
        (None, false) => {}
    }
    let parts = geometry
        .part_offsets
        .as_ref()
        .map_or(0, |all| all.len() - 1);
    match (&geometry.part_objects, paths) {
        (Some(_), false) => return Err(no_place(kind, "part_objects")),
        (Some(ids), true) => {
            length("column", "part_objects", parts, ids.len())?;
            distinct(ids)?;
        }
        (None, _) => {}
    }
    match (&geometry.object_ids, paths) {
        (Some(_), true) => {
            return Err(no_place(
                kind,
                "object_ids: the object of a path is in part_objects",
            ));
        }
        (Some(ids), false) => length("column", "object_ids", vertices, ids.len())?,
        (None, _) => {}
    }
    check_links()?;
    attributes("vertex attribute", &geometry.vertex, vertices)?;
    attributes("link attribute", &geometry.link, geometry.link_count())?;
    if let Some(objects) = &geometry.objects {
        distinct(objects)?;
    }
    let what = "fragment attribute";
    attributes(what, &geometry.fragment_rows, vertices)?;
    for attribute in geometry.fragment.iter().chain(&geometry.fragment_rows) {
        let name = attribute.name.clone();
        if name == FRAGMENT_OWNERS {
            return Err(BuildError::ReservedName { what, name });
        }
        let is_given = |columns: &[Column]| columns.iter().any(|column| column.name == name);
        if is_given(&geometry.fragment) && is_given(&geometry.fragment_rows) {
            return Err(BuildError::DuplicateName { what, name });
        }
    }
    let ids = geometry
        .part_objects
        .iter()
        .chain(&geometry.object_ids)
        .chain(&geometry.objects)
        .flatten();
    for &id in ids {
        check_id(id, design.profile)?;
    }
    if let Some(parametric) = &design.parametric {
        parametric.check()?;
    }
    if design.profile != Profile::V09 && (design.directed || design.duplicate) {
        return Err(BuildError::LinkPolicy(design.profile.name()));
    }
    if design
        .crs
        .as_ref()
        .is_some_and(|crs| !crs.as_ref().is_object())
    {
        return Err(BuildError::Crs);
    }
    let mut scopes = design.attribute_specs.keys();
    if let Some(scope) = scopes.find(|scope| Scope::parse(scope).is_none()) {
        return Err(BuildError::AttributeScope(scope.clone()));
    }
    check_axes(geometry, design)
}

fn check_axes(geometry: &Geometry, design: &Design) -> Result<(), BuildError> {
    if let Some(axes) = &design.axes {
        let (expected, found) = (geometry.axes(), axes.len());
        if expected != found {
            let what = "the list of axes";
            return Err(BuildError::AxisCount {
                what,
                expected,
                found,
            });
        }
        let names: HashSet<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        if names.len() != axes.len() || names.contains("") {
            return Err(BuildError::AxisNames);
        }
    }
    Ok(())
}

fn needs(kind: &'static str, what: &'static str) -> BuildError {
    BuildError::MissingInput { kind, what }
}

fn no_place(kind: &'static str, what: &'static str) -> BuildError {
    BuildError::Unsupported { kind, what }
}

fn length(what: &'static str, name: &str, expected: usize, found: usize) -> Result<(), BuildError> {
    if expected == found {
        Ok(())
    } else {
        Err(BuildError::RowCount {
            what,
            name: name.to_owned(),
            expected,
            found,
        })
    }
}

fn check_offsets(offsets: &[u64], vertices: usize, kind: GeometryKind) -> Result<(), BuildError> {
    let refused = |at: usize, found: u64| {
        Err(BuildError::PartOffsets {
            vertices,
            at,
            found,
        })
    };
    let end = vertices as u64;
    match (offsets.first(), offsets.last()) {
        (Some(0), Some(last)) if *last == end => {}
        (Some(0), Some(&last)) => return refused(offsets.len() - 1, last),
        (first, _) => return refused(0, first.copied().unwrap_or(end)),
    }
    for (at, pair) in offsets.windows(2).enumerate() {
        if pair[1] < pair[0] {
            return refused(at + 1, pair[1]);
        }
        if kind == GeometryKind::Lines && pair[1] - pair[0] != 2 {
            let vertices = usize::try_from(pair[1] - pair[0]).unwrap_or(usize::MAX);
            return Err(BuildError::LineVertices { line: at, vertices });
        }
    }
    Ok(())
}

/// Checks the width of links, and that the kind of geometry has links and their attributes.
fn check_links(geometry: &Geometry, design: &Design) -> Result<(), BuildError> {
    let kind = design.kind.plural();
    let width = geometry.link_width;
    if !design.kind.is_linked() {
        if !geometry.links.is_empty() {
            return Err(no_place(kind, "links"));
        }
        return if geometry.link.is_empty() {
            Ok(())
        } else {
            Err(no_place(kind, "link attributes"))
        };
    }
    let expected = match design.kind {
        GeometryKind::Mesh if (3..=8).contains(&width) => None,
        GeometryKind::Mesh => Some("3 to 8"),
        _ if width == 2 => None,
        _ => Some("2"),
    };
    if let Some(expected) = expected {
        // Faces have no default number of corners, so that input without faces has none.
        if design.kind == GeometryKind::Mesh && geometry.links.is_empty() {
            return Err(needs(kind, "links"));
        }
        return Err(BuildError::LinkWidth {
            kind,
            expected,
            found: width,
        });
    }
    let ends = geometry.links.len();
    if !ends.is_multiple_of(width) {
        return Err(BuildError::PartialLink { ends, width });
    }
    if design.kind == GeometryKind::Skeletons && !geometry.link.is_empty() {
        // Links implied by the order of rows have no cell that could hold a value.
        return Err(no_place(
            kind,
            "link attributes; keep them with the child vertex",
        ));
    }
    Ok(())
}

/// Checks that links refer to vertices of the geometry.
fn check_ends(geometry: &Geometry) -> Result<(), BuildError> {
    let vertices = geometry.vertices();
    let inside = |end: &i64| usize::try_from(*end).is_ok_and(|end| end < vertices);
    match geometry.links.iter().position(|end| !inside(end)) {
        None => Ok(()),
        Some(at) => Err(BuildError::LinkEndOutOfRange {
            link: at / geometry.link_width.max(1),
            vertex: geometry.links[at],
            vertices,
        }),
    }
}

/// Checks that names are distinct identifiers and that columns have `rows` rows.
pub(crate) fn attributes(
    what: &'static str,
    attributes: &[Column],
    rows: usize,
) -> Result<(), BuildError> {
    let mut names = HashSet::new();
    for column in attributes {
        let name = &column.name;
        identifier(what, name)?;
        if !names.insert(name) {
            let name = name.clone();
            return Err(BuildError::DuplicateName { what, name });
        }
        if let ColumnValues::Numeric(numbers) = &column.values
            && !numbers.bytes.len().is_multiple_of(numbers.row_size())
        {
            let name = name.clone();
            return Err(BuildError::PartialRow { what, name });
        }
        length(what, name, rows, column.len())?;
        if let Some(nulls) = &column.nulls {
            length(what, name, rows, nulls.len())?;
        }
    }
    Ok(())
}

/// Checks that a name is an ASCII identifier of at most 200 bytes.
fn identifier(what: &'static str, name: &str) -> Result<(), BuildError> {
    let mut letters = name.bytes();
    let first = letters.next();
    let starts = first.is_some_and(|letter| letter.is_ascii_alphabetic() || letter == b'_');
    let goes_on = letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
    if starts && goes_on && name.len() <= 200 {
        Ok(())
    } else {
        Err(BuildError::InvalidName {
            what,
            name: name.to_owned(),
        })
    }
}

fn distinct(ids: &[i64]) -> Result<(), BuildError> {
    if ids.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(ids.len());
    match ids.iter().find(|id| !seen.insert(**id)) {
        None => Ok(()),
        Some(&id) => Err(BuildError::DuplicateObject(id)),
    }
}

/// Rejects reserved ids, and before 0.9 ids that are not rows of the object index.
pub(crate) fn check_id(id: i64, profile: Profile) -> Result<(), BuildError> {
    let why = match id {
        -1 => "-1 is reserved for vertices without an object",
        -2 => "-2 is reserved for vertices of several objects",
        _ if profile == Profile::V09 => return Ok(()),
        0..MAX_OBJECTS => return Ok(()),
        _ => "before 0.9 ids are rows of the index, from 0 to 67108863",
    };
    Err(BuildError::ObjectId { id, why })
}
