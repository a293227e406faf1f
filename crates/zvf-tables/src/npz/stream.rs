//! Reads points, paths, graphs and meshes of an npz file in batches, if its arrays are not
//! compressed, as `numpy.savez` writes them.

use std::{
    collections::HashSet,
    error::Error,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use zvf::{
    Column, ColumnValues, Geometry, GeometryKind, GeometrySource, LinkNumbering, VertexOwners,
};
use zvf_model::attribute_name;

use super::{ends, ids, member_spans, read_tables};
use crate::{FileError, FileFault, FilePlace};
use crate::{
    FileFormat, StoreDescription,
    display::len_u64,
    npy::ColumnHeader,
    table::{GeometryReadOptions, InputFile, arrays, rename::Renaming},
};

/// An npz file that is read in batches.
#[derive(Debug)]
pub struct NpzStream {
    path: PathBuf,
    positions: NpzMember,
    objects: Option<NpzMember>,
    vertex: Vec<(String, NpzMember)>,
    /// Offsets of paths, for paths.
    offsets: Option<Vec<u64>>,
    paths: Option<Vec<i64>>,
    links: Option<NpzMember>,
    link: Vec<(String, NpzMember)>,
    tables: Geometry,
    description: StoreDescription,
    /// Next vertex or path.
    next: usize,
    next_link: usize,
}

/// An array with a row for each vertex or link.
#[derive(Debug)]
struct NpzMember {
    /// Offset of its rows in the file.
    start: u64,
    header: ColumnHeader,
    /// Size of a row in bytes.
    row: usize,
}

/// The reason why a file cannot be read in batches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WholeFile {
    /// The file is neither a table nor an npz file.
    #[error("the file is neither a table nor an npz file")]
    Format,
    /// The file is so small that it is read as a whole.
    #[error("the file is small")]
    Small,
    /// The rows of a path may be anywhere in a table.
    #[error(
        "the rows of paths are found in the whole table; give an npz file of numpy.savez instead"
    )]
    TablePaths,
    /// Integers become floats in all rows if one of them has no value.
    #[error("missing numbers that become NaN are found in the whole table")]
    Missing,
    /// The kind of geometry has links.
    #[error("links of {0} connect vertices of all batches")]
    Kind(&'static str),
    /// An array is compressed.
    #[error("the array {0} is compressed; save the file with numpy.savez")]
    Compressed(String),
    /// An array is in Fortran order.
    #[error("the array {0} is in Fortran order; save numpy.ascontiguousarray of it")]
    Fortran(String),
    /// An array is needed whole.
    #[error("the array {0} has to be read whole; leave it out")]
    Array(String),
    /// Paths are given as runs of object ids.
    #[error("paths are runs of object_ids; give part_offsets and part_objects instead")]
    Paths,
    /// Arrays contradict each other; reading the file whole names the error.
    #[error("its arrays do not fit together")]
    Inconsistent,
}

/// Returns whether an array has a row for each vertex.
fn is_of_vertices(label: &str) -> bool {
    label == "positions" || label == "object_ids" || label.starts_with("vertex.")
}

impl NpzStream {
    /// Opens a file to be read in batches, or returns the reason why it has to be read whole.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the file is damaged.
    pub fn open(
        input: &InputFile,
        options: &GeometryReadOptions,
    ) -> Result<Result<Self, WholeFile>, FileError> {
        let kind = options.kind;
        if input.format() != FileFormat::Npz {
            return Ok(Err(WholeFile::Format));
        }
        // Trees have to be whole in a batch, which takes all links to find out.
        if kind == GeometryKind::Skeletons {
            return Ok(Err(WholeFile::Kind(kind.name())));
        }
        let is_large =
            |label: &str| is_of_vertices(label) || (kind.is_linked() && is_of_links(label));
        let path = input.path();
        let places = member_spans(path)?;
        let labels: Vec<&str> = places.iter().map(|(label, _)| label.as_str()).collect();
        if let Some(reason) = whole_arrays(kind, &labels, is_large) {
            return Ok(Err(reason));
        }
        let mut members = Vec::new();
        for (label, place) in places.iter().filter(|(label, _)| is_large(label)) {
            let Some((start, size)) = place else {
                return Ok(Err(WholeFile::Compressed(label.clone())));
            };
            match NpzMember::at(path, label, *start, *size)? {
                Ok(member) => members.push((label.clone(), member)),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        let mut positions = None;
        let mut objects = None;
        let (mut vertex, mut links, mut link) = (Vec::new(), None, Vec::new());
        for (label, member) in members {
            match label.split_once('.') {
                Some(("link", _)) if !member.is_numeric() => {
                    return Ok(Err(WholeFile::Array(label)));
                }
                Some(("link", name)) => link.push((name_of(name), member)),
                None if label == "links" => links = Some(member),
                Some((_, name)) => vertex.push((name_of(name), member)),
                None if label == "positions" => positions = Some(member),
                None => objects = Some(member),
            }
        }
        let Some(positions) = positions.filter(|member| member.header.shape.len() == 2) else {
            return Ok(Err(WholeFile::Inconsistent));
        };
        let rows = positions.rows();
        let count = links.as_ref().map_or(0, NpzMember::rows);
        let has_ends = |links: &NpzMember| links.header.shape.len() == 2 && links.is_numeric();
        if !links.as_ref().is_none_or(has_ends)
            || link.iter().any(|(_, member)| member.rows() != count)
        {
            return Ok(Err(WholeFile::Inconsistent));
        }
        if vertex.iter().any(|(_, member)| member.rows() != rows) {
            return Ok(Err(WholeFile::Inconsistent));
        }
        // All other arrays are small and are read at once.
        let columns = positions.header.shape.get(1).copied().unwrap_or(1);
        let columns = u32::try_from(columns).unwrap_or(u32::MAX);
        let mut small = read_tables(input, options, is_large, columns)?;
        let mut renaming = Renaming::new(&options.renames);
        renaming.apply(&mut small);
        for (scope, members) in [("vertex", &mut vertex), ("link", &mut link)] {
            for (name, _) in members {
                let new = renaming.name(scope, name);
                small.description.rename_attribute(scope, name, &new);
                *name = new;
            }
        }
        renaming.finish(path)?;
        let mut small = arrays::assemble(small, options)?;
        let Ok(tables) = small.geometry.take_tables().build() else {
            return Ok(Err(WholeFile::Inconsistent));
        };
        let (offsets, paths) = match small.geometry.owners {
            VertexOwners::Paths { offsets, objects } => (Some(offsets), objects),
            VertexOwners::Unnamed | VertexOwners::Vertices(_) => (None, None),
        };
        if let Some(offsets) = &offsets {
            let ascends = offsets.is_sorted();
            let ends = (offsets.first(), offsets.last()) == (Some(&0), Some(&len_u64(rows)));
            if !ascends || !ends {
                // Reading the whole file reports the reason.
                return Ok(Err(WholeFile::Inconsistent));
            }
        }
        let mut seen = HashSet::new();
        if paths.iter().flatten().any(|id| !seen.insert(*id)) {
            // Parts of one object are separated in the whole.
            return Ok(Err(WholeFile::Array("part_objects".to_owned())));
        }
        Ok(Ok(Self {
            path: path.to_path_buf(),
            positions,
            objects,
            vertex,
            offsets,
            paths,
            links,
            link,
            tables,
            description: small.description,
            next: 0,
            next_link: 0,
        }))
    }

    /// Returns the description of the store that the file comes from.
    pub fn description(&self) -> &StoreDescription {
        &self.description
    }

    /// Returns the size of all arrays of vertices in bytes.
    pub fn bytes(&self) -> u64 {
        let members = self
            .vertex
            .iter()
            .map(|(_, member)| member)
            .chain(&self.objects)
            .chain([&self.positions]);
        let rows: usize = members.map(|member| member.row).sum();
        let vertices = len_u64(rows).saturating_mul(len_u64(self.positions.rows()));
        let members = self
            .link
            .iter()
            .map(|(_, member)| member)
            .chain(&self.links);
        let links =
            members.map(|member| len_u64(member.rows()).saturating_mul(len_u64(member.row)));
        links.fold(vertices, u64::saturating_add)
    }

    /// Reads a batch of links, after all vertices.
    fn next_links(
        &mut self,
        links: usize,
    ) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let Some(member) = &self.links else {
            return Ok(None);
        };
        let first = self.next_link;
        let end = first.saturating_add(links.max(1)).min(member.rows());
        if first >= end {
            return Ok(None);
        }
        let rows = end.saturating_sub(first);
        let none = self.tables.positions();
        let width = member.header.shape.get(1).copied().unwrap_or(0);
        let ends = ends(&self.path, self.read(member, first, rows)?)?;
        let mut geometry = Geometry::builder(none.clone()).links(width, ends);
        for (name, member) in &self.link {
            let values = self.read(member, first, rows)?;
            geometry.link.push(Column::new(name.clone(), values));
        }
        self.next_link = end;
        Ok(Some(geometry.build()?))
    }

    fn read(
        &self,
        member: &NpzMember,
        first: usize,
        rows: usize,
    ) -> Result<ColumnValues, Box<dyn Error + Send + Sync>> {
        let mut file = File::open(&self.path)?;
        let skip = len_u64(first).saturating_mul(len_u64(member.row));
        file.seek(SeekFrom::Start(member.start.saturating_add(skip)))?;
        let mut bytes = vec![0; rows.saturating_mul(member.row)];
        file.read_exact(&mut bytes)?;
        Ok(member.header.rows(rows, bytes)?)
    }
}

impl NpzMember {
    /// Opens the array at an offset, or returns the reason why its rows are not contiguous.
    fn at(
        path: &Path,
        label: &str,
        start: u64,
        size: u64,
    ) -> Result<Result<Self, WholeFile>, FileError> {
        let in_file = |error| FileError::unreadable(path, error);
        let mut file = File::open(path).map_err(in_file)?;
        file.seek(SeekFrom::Start(start)).map_err(in_file)?;
        let header = ColumnHeader::read(&mut file.take(size));
        let (header, length) = header.map_err(|source| {
            FileFault::Npy(Box::new(source)).at(path, FilePlace::Array(label.to_owned()))
        })?;
        let Some(row) = header.row() else {
            return Ok(Err(if header.is_fortran {
                WholeFile::Fortran(label.to_owned())
            } else {
                WholeFile::Inconsistent
            }));
        };
        let rows = header.shape.first().copied().unwrap_or(0);
        let needed = len_u64(rows).checked_mul(len_u64(row));
        if needed != size.checked_sub(length) {
            return Ok(Err(WholeFile::Inconsistent));
        }
        let start = start.saturating_add(length);
        Ok(Ok(Self { start, header, row }))
    }

    fn is_numeric(&self) -> bool {
        let none = self.header.rows(0, Vec::new());
        matches!(none, Ok(ColumnValues::Numeric(_)))
    }

    fn rows(&self) -> usize {
        self.header.shape.first().copied().unwrap_or(0)
    }
}

impl GeometrySource for NpzStream {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let (first, end, parts) = match &self.offsets {
            None => {
                let end = self
                    .next
                    .saturating_add(vertices)
                    .min(self.positions.rows());
                (self.next, end, None)
            }
            Some(offsets) => {
                let at = |part: usize| offsets.get(part).copied().unwrap_or(u64::MAX);
                let max = at(self.next).saturating_add(len_u64(vertices));
                let after = offsets.partition_point(|offset| *offset <= max);
                let last = offsets.len().saturating_sub(1);
                // At least one path; empty paths go with those before them.
                let mut part = after
                    .saturating_sub(1)
                    .max(self.next.saturating_add(1))
                    .min(last);
                while part < last
                    && (at(part) == at(self.next) || at(part.saturating_add(1)) == at(part))
                {
                    part = part.saturating_add(1);
                }
                let range = self.next.min(part)..part;
                let row = |part: usize| usize::try_from(at(part)).unwrap_or(usize::MAX);
                (row(range.start), row(range.end), Some(range))
            }
        };
        if first >= end {
            return self.next_links(vertices);
        }
        let rows = end.saturating_sub(first);
        let ColumnValues::Numeric(positions) = self.read(&self.positions, first, rows)? else {
            return Err("positions are text".into());
        };
        let mut geometry = Geometry::builder(positions);
        for (name, member) in &self.vertex {
            let values = match self.read(member, first, rows)? {
                // Empty text is a missing value.
                texts @ ColumnValues::Dictionary { .. } => {
                    let texts = texts.texts();
                    ColumnValues::text(texts.map(|text| text.filter(|text| !text.is_empty())))
                }
                numbers @ ColumnValues::Numeric(_) => numbers,
            };
            let name = name.clone();
            geometry.vertex.push(Column::new(name, values));
        }
        for (name, member) in &self.link {
            // Links come after all vertices, but the first batch already has the names of their
            // attributes.
            let values = member.header.rows(0, Vec::new())?;
            geometry.link.push(Column::new(name.clone(), values));
        }
        if let Some(member) = &self.objects {
            let values = self.read(member, first, rows)?;
            geometry.owners = VertexOwners::Vertices(ids(&self.path, "object_ids", values)?);
        }
        match parts {
            None => self.next = end,
            Some(parts) => {
                let own = self
                    .offsets
                    .iter()
                    .flatten()
                    .skip(parts.start)
                    .take(parts.len().saturating_add(1));
                let start = len_u64(first);
                let ids = self.paths.as_ref().and_then(|ids| ids.get(parts.clone()));
                geometry.owners = VertexOwners::Paths {
                    offsets: own.map(|at| at.saturating_sub(start)).collect(),
                    objects: ids.map(<[i64]>::to_vec),
                };
                self.next = parts.end;
            }
        }
        Ok(Some(geometry.build()?))
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.next = 0;
        self.next_link = 0;
        Ok(())
    }

    fn link_numbering(&self) -> LinkNumbering {
        LinkNumbering::Input
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(self.tables.clone())
    }
}

/// Returns the name of an attribute from that of its array.
fn name_of(array: &str) -> String {
    attribute_name::label(array).into_owned()
}

fn is_of_links(label: &str) -> bool {
    label == "links" || label.starts_with("link.")
}

/// Returns the reason to read a file with these arrays as a whole.
fn whole_arrays(
    kind: GeometryKind,
    labels: &[&str],
    is_large: impl Fn(&str) -> bool,
) -> Option<WholeFile> {
    let needs_all = labels.iter().find(|label| {
        let masked = label.ends_with(".missing") && is_large(label);
        masked || label.starts_with("fragment.") || (**label == "links" && !kind.is_linked())
    });
    if let Some(label) = needs_all {
        return Some(WholeFile::Array((*label).to_owned()));
    }
    let has_parts = labels.contains(&"part_offsets");
    match kind.is_paths() {
        // Runs of ids that form paths are found in the whole array.
        true if !has_parts || labels.contains(&"object_ids") => Some(WholeFile::Paths),
        false if has_parts => Some(WholeFile::Array("part_offsets".to_owned())),
        _ => None,
    }
}
