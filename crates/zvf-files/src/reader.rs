//! Reading: the trait of all readers, and what they share.

use std::path::PathBuf;

use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, GeometrySource, LinkNumbering, NumericColumn,
    VertexOwners,
};

use crate::{AttributeRename, FileDescription, FileObjectIds, input::length_of};

/// A file of geometry that is read in batches.
///
/// Points and paths come in batches of about the requested number of vertices; each path is whole.
/// Geometry with links comes in one batch, in batches of whole objects, or as all vertices followed by
/// all links, depending on the format and on [`FileReadOptions::in_memory`].
pub trait GeometryReader: GeometrySource {
    /// Returns the description of the file.
    fn description(&self) -> &FileDescription;

    /// Returns whether the geometry was read as a whole, and comes in one batch.
    fn is_whole(&self) -> bool {
        false
    }
}

/// Options for reading.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileReadOptions {
    /// Kind of the geometry; `None` takes the kind that the file has.
    pub kind: Option<GeometryKind>,
    /// Files that belong to the geometry: TSF files of a TCK file, further SWC files and meshes, the
    /// table of the nodes of an edge list.
    pub with: Vec<PathBuf>,
    /// Names of the attributes of nodes that are coordinates, for formats of graphs whose nodes have
    /// attributes only; empty for `x`, `y` and `z`.
    pub axes: Vec<String>,
    /// New names for attributes.
    pub renames: Vec<AttributeRename>,
    /// Ids of the objects of files that are one object each; `None` takes those of the names.
    pub ids: Option<FileObjectIds>,
    /// Keep the order of the points of LAS and LAZ files, as the vertex attribute `source_row`. The
    /// writers of these formats restore it.
    pub keep_order: bool,
    /// Turn integers and booleans of `GeoParquet` files into float64 with NaN for rows without a value.
    /// Such rows cannot be stored otherwise.
    pub nan_for_missing: bool,
    /// Upper bound on the size of an unpacked file in bytes.
    pub unpacked: u64,
    /// Size in bytes up to which files are held in memory whose batches need an additional pass:
    /// meshes of PLY files, and SWC files.
    pub in_memory: u64,
}

impl Default for FileReadOptions {
    fn default() -> Self {
        Self {
            kind: None,
            with: Vec::new(),
            axes: Vec::new(),
            renames: Vec::new(),
            ids: None,
            keep_order: false,
            nan_for_missing: false,
            unpacked: 256 << 30,
            in_memory: 64 << 20,
        }
    }
}

/// Number of vertices of the batches that are joined to a whole.
const WHOLE_BATCH: usize = 1 << 20;

/// Reads the whole geometry of a file.
///
/// # Errors
///
/// The error of the first batch that cannot be read.
pub fn read_whole(
    reader: &mut dyn GeometryReader,
) -> Result<Geometry, Box<dyn std::error::Error + Send + Sync>> {
    let mut whole: Option<GeometryBuilder> = None;
    let numbering = reader.link_numbering();
    while let Some(batch) = reader.next(WHOLE_BATCH)? {
        let batch = batch.into_builder();
        match &mut whole {
            None => whole = Some(batch),
            Some(whole) => append(whole, batch, numbering)?,
        }
    }
    let tables = reader.tables()?.into_builder();
    let mut whole =
        whole.unwrap_or_else(|| Geometry::builder(NumericColumn::new(tables.positions.kind, 3)));
    if let (VertexOwners::Paths { objects, .. }, false) = (&whole.owners, whole.object.is_empty()) {
        whole.objects.clone_from(objects);
    }
    whole.objects = whole.objects.or(tables.objects);
    whole.object.extend(tables.object);
    whole.groups.extend(tables.groups);
    whole.group.extend(tables.group);
    Ok(whole.build()?)
}

/// Appends a batch.
pub(crate) fn append(
    whole: &mut GeometryBuilder,
    batch: GeometryBuilder,
    numbering: LinkNumbering,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let before = u64::try_from(whole.vertices())?;
    whole.positions.append(batch.positions)?;
    let families = [
        (&mut whole.vertex, batch.vertex),
        (&mut whole.link, batch.link),
        (&mut whole.object, batch.object),
    ];
    for (attributes, more) in families {
        for (attribute, more) in attributes.iter_mut().zip(more) {
            attribute.append(more)?;
        }
    }
    if let (Some(all), Some(more)) = (whole.owners.ids_mut(), batch.owners.ids()) {
        all.extend(more);
    }
    if let (VertexOwners::Paths { offsets, .. }, VertexOwners::Paths { offsets: more, .. }) =
        (&mut whole.owners, batch.owners)
    {
        let more = more.into_iter().skip(1);
        offsets.extend(more.map(|offset| offset.saturating_add(before)));
    }
    let first = match numbering {
        LinkNumbering::Batch => i64::try_from(before)?,
        LinkNumbering::Input => 0,
    };
    let links = batch.links.ends.into_iter();
    whole
        .links
        .ends
        .extend(links.map(|end| end.saturating_add(first)));
    Ok(())
}

/// Builds the geometry of a batch.
pub(crate) fn built(
    batch: Option<GeometryBuilder>,
) -> Result<Option<Geometry>, Box<dyn std::error::Error + Send + Sync>> {
    Ok(batch.map(GeometryBuilder::build).transpose()?)
}

/// Paths that are collected for a batch.
#[derive(Debug, Default)]
pub(crate) struct PathBatch {
    offsets: Vec<u64>,
    objects: Vec<i64>,
}

impl PathBatch {
    pub(crate) fn new() -> Self {
        Self {
            offsets: vec![0],
            objects: Vec::new(),
        }
    }

    /// Adds a path of `vertices` vertices.
    pub(crate) fn push(&mut self, object: i64, vertices: u64) {
        let end = self.vertices().saturating_add(vertices);
        self.offsets.push(end);
        self.objects.push(object);
    }

    pub(crate) fn vertices(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Returns whether the batch has about `vertices` vertices.
    pub(crate) fn is_full(&self, vertices: usize) -> bool {
        self.vertices() >= u64::try_from(vertices.max(1)).unwrap_or(u64::MAX)
    }

    /// Builds the geometry; `None` without paths.
    pub(crate) fn geometry(
        self,
        positions: NumericColumn,
        vertex: Vec<Column>,
    ) -> Option<GeometryBuilder> {
        if self.objects.is_empty() {
            return None;
        }
        let geometry = Geometry::builder(positions).vertex(vertex);
        Some(geometry.paths(self.offsets, self.objects))
    }
}

/// Adds the note about streamlines without points, once.
pub(crate) fn note_empty(notes: &mut Vec<String>, empty: u64) {
    let text =
        "streamlines without points become objects without vertices, which queries do not return";
    if empty > 0 && !notes.iter().any(|note| note.ends_with(text)) {
        notes.push(format!("{empty} {text}"));
    }
}

/// Returns the number of rows of a table as an object id.
pub(crate) fn object_id(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns ids 0, 1, … for as many objects as `rows` has.
pub(crate) fn ids_of<T>(rows: &[T]) -> Vec<i64> {
    (0..object_id(length_of(rows))).collect()
}
