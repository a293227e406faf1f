//! Validation of geometry against a design, before planning.

use std::collections::HashSet;

use crate::{
    GeometryKind,
    design::{Design, ManifestForm, Profile},
    error::BuildError,
    geometry::{Geometry, LinkNumbering, VertexOwners},
    metadata,
};
use zvf_format::numeric::Kind;
use zvf_model::{object_ids::Owner, scope::Scope, zarr::MAX_RANK};

/// Checks that the profile has the form of the object index, and that Draco can encode the positions.
fn check_forms(geometry: &Geometry, design: &Design) -> Result<(), BuildError> {
    if design.object_index == ManifestForm::Dense && !design.profile.is_current() {
        return Err(BuildError::DenseIndex);
    }
    if design.draco.is_none() {
        return Ok(());
    }
    let dtype = design.dtype.unwrap_or(geometry.positions().kind);
    Err(BuildError::NoDraco(match () {
        () if !design.profile.is_current() => "only stores of 0.9 have the encoding",
        () if geometry.axes() != 3 => "positions must have three coordinates",
        () if dtype != Kind::Float32 => "coordinates must be of type float32",
        () => return Ok(()),
    }))
}

/// Limit of readers on the number of objects.
const MAX_OBJECTS: i64 = 1 << 26;

/// Checks that the design supports the geometry, and that links end in its vertices.
pub(crate) fn check(geometry: &Geometry, design: &Design) -> Result<(), BuildError> {
    if geometry.positions().bytes.is_empty() {
        return Err(BuildError::Empty);
    }
    check_support(geometry, design, Some(LinkNumbering::Batch))
}

/// Checks a batch. Batches of points and paths may have no vertices: the latter hold empty paths. If
/// links number the vertices of the input, they may refer to vertices of other batches, and the batch
/// may have no vertices.
pub(crate) fn check_batch(
    batch: &Geometry,
    design: &Design,
    numbering: LinkNumbering,
) -> Result<(), BuildError> {
    if numbering == LinkNumbering::Input && batch.vertices() == 0 && !batch.links().is_empty() {
        return check_links(batch, design, numbering);
    }
    if design.kind.is_linked() && batch.positions().bytes.is_empty() {
        return Err(BuildError::Empty);
    }
    // Batches of vertices may come before those of links.
    let links = (!batch.links().is_empty()).then_some(numbering);
    check_axes_of_conditions(batch, design)?;
    check_support(batch, design, links)
}

/// Checks that no attribute of vertices of a new store has the name of an axis: conditions could not
/// tell them apart.
pub(crate) fn check_axes_of_conditions(
    geometry: &Geometry,
    design: &Design,
) -> Result<(), BuildError> {
    let own = design.axes.clone();
    let axes = own.unwrap_or_else(|| metadata::default_axes(geometry.axes()));
    let mut attributes = geometry.columns(Scope::Vertex).iter();
    match attributes.find(|column| axes.iter().any(|axis| axis.name == column.name)) {
        Some(column) => Err(BuildError::AttributeIsAxis(column.name.clone())),
        None => Ok(()),
    }
}

fn check_support(
    geometry: &Geometry,
    design: &Design,
    links: Option<LinkNumbering>,
) -> Result<(), BuildError> {
    let kind = design.kind.plural();
    let positions = geometry.positions();
    if !positions.bytes.len().is_multiple_of(positions.row_size()) {
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
    match (geometry.owners(), design.kind.is_paths()) {
        (VertexOwners::Paths { offsets, .. }, true) => check_lines(offsets, design.kind)?,
        (VertexOwners::Paths { .. }, false) => return Err(no_place(kind, "part_offsets")),
        (VertexOwners::Unnamed | VertexOwners::Vertices(_), true) => {
            return Err(needs(kind, "part_offsets"));
        }
        (VertexOwners::Unnamed | VertexOwners::Vertices(_), false) => {}
    }
    if let Some(numbering) = links {
        check_links(geometry, design, numbering)?;
    }
    let has_ends = design.kind.is_paths() || design.kind.is_linked();
    let named = geometry.owners().ids().into_iter().flatten();
    let owners = named.filter(|id| has_ends || **id != Owner::NONE);
    for &id in owners.chain(geometry.objects().into_iter().flatten()) {
        check_id(id, design.profile)?;
    }
    if let Some(parametric) = &design.parametric {
        parametric.check()?;
    }
    if !design.profile.is_current() && (design.directed || design.duplicate) {
        return Err(BuildError::LinkPolicy(design.profile.name()));
    }
    if design.profile.is_current() && design.flat_link_attributes {
        return Err(BuildError::UnsupportedOption {
            profile: design.profile.name(),
            what: "one array for the attributes of links between chunks; use profile 0.8",
        });
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

/// Checks that lines have two vertices each.
fn check_lines(offsets: &[u64], kind: GeometryKind) -> Result<(), BuildError> {
    if kind != GeometryKind::Lines {
        return Ok(());
    }
    let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
    match lengths.enumerate().find(|(_, vertices)| *vertices != 2) {
        None => Ok(()),
        Some((line, vertices)) => {
            let vertices = usize::try_from(vertices).unwrap_or(usize::MAX);
            Err(BuildError::LineVertices { line, vertices })
        }
    }
}

/// Checks the width of links, that the kind of geometry has links and their attributes, and that links
/// which do not number the vertices of the whole input end in the geometry.
fn check_links(
    geometry: &Geometry,
    design: &Design,
    numbering: LinkNumbering,
) -> Result<(), BuildError> {
    let kind = design.kind.plural();
    let links = geometry.links();
    let has_attributes = !geometry.columns(Scope::Link).is_empty();
    if !design.kind.is_linked() {
        return match (links.is_empty(), has_attributes) {
            (false, _) => Err(no_place(kind, "links")),
            (true, true) => Err(no_place(kind, "link attributes")),
            (true, false) => Ok(()),
        };
    }
    let found = links.width;
    let expected = match design.kind {
        GeometryKind::Mesh if (3..=8).contains(&found) => None,
        GeometryKind::Mesh => Some("3 to 8"),
        _ if found == 2 => None,
        _ => Some("2"),
    };
    if let Some(expected) = expected {
        // Faces have no default number of corners, so that input without faces has none.
        if design.kind == GeometryKind::Mesh && links.is_empty() {
            return Err(needs(kind, "links"));
        }
        return Err(BuildError::LinkWidth {
            kind,
            expected,
            found,
        });
    }
    if design.kind == GeometryKind::Skeletons && has_attributes {
        // Links implied by the order of rows have no cell that could hold a value.
        return Err(no_place(
            kind,
            "link attributes; keep them with the child vertex",
        ));
    }
    match numbering {
        LinkNumbering::Input => Ok(()),
        LinkNumbering::Batch => check_ends(geometry),
    }
}

/// Checks that links refer to vertices of the geometry.
fn check_ends(geometry: &Geometry) -> Result<(), BuildError> {
    let vertices = geometry.vertices();
    let links = geometry.links();
    let inside = |end: &i64| usize::try_from(*end).is_ok_and(|end| end < vertices);
    match links.ends.iter().position(|end| !inside(end)) {
        None => Ok(()),
        Some(at) => Err(BuildError::LinkEndOutOfRange {
            link: at / links.width.max(1),
            vertex: links.ends[at],
            vertices,
        }),
    }
}

/// Rejects reserved ids, and before 0.9 ids that are not rows of the object index.
pub(crate) fn check_id(id: i64, profile: Profile) -> Result<(), BuildError> {
    let why = match id {
        Owner::NONE => "-1 is reserved for points without an object",
        -2 => "-2 is reserved for vertices of several objects",
        _ if profile.is_current() => return Ok(()),
        0..MAX_OBJECTS => return Ok(()),
        _ => "before 0.9 ids are rows of the index, from 0 to 67108863",
    };
    Err(BuildError::ObjectId { id, why })
}
