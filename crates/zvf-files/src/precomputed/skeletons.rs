//! Skeletons: one object for each segment.

use zvf::{Column, Geometry, GeometryKind, NumericColumn, VertexOwners, numeric::Kind};
use zvf_precomputed::{AttributeType, Skeleton, SkeletonInfo, VertexAttribute};

use super::{
    coordinates::ModelSpace,
    forest::Forest,
    keyed::{KeyedValues, object_of},
    segments,
    source::PrecomputedSource,
};
use crate::{
    FileDescription, FileError, FileFault, FileReadOptions, library, names::AttributeNames,
    values::narrow, whole::WholeReader,
};

/// Reads all skeletons of a source by ascending id.
pub(super) fn open(
    source: &PrecomputedSource,
    options: &FileReadOptions,
) -> Result<WholeReader, FileError> {
    let in_info = |fault: FileFault| fault.of(&source.info_path());
    let info = SkeletonInfo::parse(&source.info).map_err(|error| in_info(library::info(error)))?;
    let space = ModelSpace::of(info.transform).map_err(in_info)?;
    let folder = source.folder.clone();
    let mut values = KeyedValues::open(folder, info.sharding, "", options.unpacked)?;
    let mut description = source.description(GeometryKind::Skeletons);
    description = description.axes_xyz(Some("nanometer"));
    let mut names = AttributeNames::default();
    let mut columns: Vec<(String, NumericColumn)> = Vec::new();
    for attribute in &info.vertex_attributes {
        let name = attribute.data_type.name();
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let column = NumericColumn::new(kind.unwrap_or(Kind::Float32), attribute.components);
        columns.push((names.add(&attribute.id), column));
    }
    let mut positions = space.column();
    let (mut objects, mut owners) = (Vec::new(), Vec::new());
    let mut edges: Vec<[u32; 2]> = Vec::new();
    // The numbers of vertices and edges of each skeleton.
    let mut sizes: Vec<SkeletonSize> = Vec::new();
    for at in 0..values.len() {
        let Some((segment, value)) = values.get(at)? else {
            break;
        };
        let skeleton = Skeleton::decode(&value, &info.vertex_attributes)
            .map_err(|error| values.error(at, library::precomputed(error)))?;
        let object = object_of(segment).map_err(|fault| values.error(at, fault))?;
        objects.push(object);
        owners.resize(
            owners.len().saturating_add(skeleton.positions.len()),
            object,
        );
        for position in &skeleton.positions {
            let pushed = space.push(position.map(f64::from), &mut positions);
            pushed.map_err(|fault| values.error(at, fault))?;
        }
        for ((_, column), bytes) in columns.iter_mut().zip(&skeleton.attributes) {
            column.bytes.extend_from_slice(bytes);
        }
        edges.extend_from_slice(&skeleton.edges);
        sizes.push(SkeletonSize {
            vertices: skeleton.positions.len(),
            edges: skeleton.edges.len(),
        });
    }
    if positions.is_empty() {
        return Err(FileFault::Empty.of(&source.folder));
    }
    scale_radius(&info, &space, &mut columns, &mut description);
    let mut geometry = Geometry::builder(positions);
    if let Some(kind) = options.kind.filter(|kind| kind.is_paths()) {
        description.kind = kind;
        let offsets = path_offsets(&sizes, &edges);
        geometry.owners = VertexOwners::Paths {
            offsets: offsets.map_err(|(at, fault)| values.error(at, fault))?,
            objects: Some(objects.clone()),
        };
    } else {
        let trees = match options.kind {
            Some(GeometryKind::Graphs) => None,
            _ => trees(&sizes, &edges, &mut description),
        };
        if trees.is_none() {
            description.kind = GeometryKind::Graphs;
            if options.kind.is_none() {
                let note = "edges form cycles, so the store has graphs instead of skeletons";
                description.notes.push(note.to_owned());
            }
        }
        geometry.links.ends = trees.unwrap_or_else(|| links_of(&sizes, &edges));
        geometry.owners = VertexOwners::Vertices(owners);
    }
    let columns = columns.into_iter();
    geometry.vertex = columns
        .map(|(name, column)| Column::new(name, column))
        .collect();
    names.record(&mut description.header, "names");
    let mut names = AttributeNames::default();
    let own = info.segment_properties.as_deref();
    geometry.object = segments::columns(source, own, &objects, &mut names, &mut description)?;
    geometry.objects = Some(objects);
    Ok(WholeReader::new(geometry, description))
}

/// Takes the attribute `radius`, which is in the units of stored positions, to nanometres.
fn scale_radius(
    info: &SkeletonInfo,
    space: &ModelSpace,
    columns: &mut [(String, NumericColumn)],
    description: &mut FileDescription,
) {
    let mut attributes = columns.iter_mut().zip(&info.vertex_attributes);
    let is_radius = |(_, attribute): &(_, &VertexAttribute)| {
        let is_float = attribute.data_type == AttributeType::Float32;
        attribute.id == "radius" && is_float && attribute.components == 1
    };
    let Some(((name, column), _)) = attributes.find(is_radius) else {
        return;
    };
    match space.scale() {
        None => description.notes.push(format!(
            "vertex.{name} is in stored units, because the scale of the transform depends on the \
             direction"
        )),
        Some(1.0) => {}
        Some(scale) => {
            let (words, _) = column.bytes.as_chunks_mut::<4>();
            for word in words {
                let radius = f64::from(f32::from_le_bytes(*word)) * scale;
                *word = narrow(radius).to_le_bytes();
            }
        }
    }
}

/// The size of a skeleton.
#[derive(Clone, Copy, Debug)]
struct SkeletonSize {
    vertices: usize,
    edges: usize,
}

/// Returns the links (child, parent) of all skeletons; `None` if one of them has a circle.
fn trees(
    sizes: &[SkeletonSize],
    edges: &[[u32; 2]],
    description: &mut FileDescription,
) -> Option<Vec<i64>> {
    let mut links = Vec::with_capacity(edges.len().saturating_mul(2));
    let (mut first, mut rest, mut left_out) = (0_i64, edges, 0_usize);
    for size in sizes {
        let (own, after) = rest.split_at_checked(size.edges)?;
        let forest = Forest::of(size.vertices, own)?;
        left_out = left_out.saturating_add(forest.left_out);
        push_links(first, &forest.links, &mut links);
        first = first.saturating_add(i64::try_from(size.vertices).unwrap_or(i64::MAX));
        rest = after;
    }
    if left_out > 0 {
        description.notes.push(format!(
            "{left_out} edges that repeat, or that join a vertex with itself, are left out"
        ));
    }
    Some(links)
}

/// Returns the offsets of skeletons whose edges join consecutive vertices, or the number of the first
/// other skeleton.
fn path_offsets(
    sizes: &[SkeletonSize],
    edges: &[[u32; 2]],
) -> Result<Vec<u64>, (usize, FileFault)> {
    let mut offsets = vec![0_u64];
    let mut rest = edges;
    for (at, size) in sizes.iter().enumerate() {
        let (own, after) = rest.split_at_checked(size.edges).unwrap_or((rest, &[]));
        let mut first: Vec<u32> = own.iter().map(|[a, b]| *a.min(b)).collect();
        first.sort_unstable();
        let is_path = own.iter().all(|[a, b]| a.abs_diff(*b) == 1)
            && first.len() == size.vertices.saturating_sub(1)
            && first.iter().is_sorted_by(|a, b| a < b);
        if !is_path {
            let why = "a skeleton that branches, or whose edges do not join consecutive vertices, is \
                       no path; leave out the kind";
            return Err((at, FileFault::Unsupported(why)));
        }
        let before = offsets.last().copied().unwrap_or(0);
        let vertices = u64::try_from(size.vertices).unwrap_or(u64::MAX);
        offsets.push(before.saturating_add(vertices));
        rest = after;
    }
    Ok(offsets)
}

/// Returns all edges as links.
fn links_of(sizes: &[SkeletonSize], edges: &[[u32; 2]]) -> Vec<i64> {
    let mut links = Vec::with_capacity(edges.len().saturating_mul(2));
    let (mut first, mut rest) = (0_i64, edges);
    for size in sizes {
        let (own, after) = rest.split_at_checked(size.edges).unwrap_or((rest, &[]));
        push_links(first, own, &mut links);
        first = first.saturating_add(i64::try_from(size.vertices).unwrap_or(i64::MAX));
        rest = after;
    }
    links
}

fn push_links(first: i64, edges: &[[u32; 2]], to: &mut Vec<i64>) {
    let ends = edges.as_flattened().iter();
    to.extend(ends.map(|end| first.saturating_add(i64::from(*end))));
}
