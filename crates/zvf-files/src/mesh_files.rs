//! Meshes of one object each, in files whose names are ids: a file, a folder, or several files.
//!
//! Each file becomes an object. Its id is the name of its file, if all names are different numbers, as
//! those of segments are; otherwise objects are numbered in the order of the names, which become
//! `object.name`. A single file with another name, or with objects of its own, is read as it is.
//!
//! All files have links of one width. Attributes that some file lacks are left out, with a note, and
//! coordinates are float64 if those of some file are.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt, fs, mem,
    path::{Path, PathBuf},
};

use zvf::{
    Column, ColumnValues, Geometry, GeometryBuilder, GeometryKind, GeometrySource, LinkNumbering,
    NumericColumn, VertexOwners, numeric::Kind,
};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, GeometryReader,
    object_ids::{NO_IDS, numeric_names, stem},
    reader::{append, built, ids_of, read_whole},
};

/// Opens one file of a format.
pub(crate) type OpenMesh =
    fn(&Path, &FileReadOptions) -> Result<Box<dyn GeometryReader>, FileError>;

/// Lists the meshes in a folder by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let in_folder = |source| FileFault::Io(source).of(folder);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(in_folder)? {
        let path = entry.map_err(in_folder)?.path();
        if path.is_file() && FileFormat::of_path(&path).is_some_and(FileFormat::is_mesh) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Opens a file, the files of a folder, or several files, each with `open`.
///
/// # Errors
///
/// [`FileError`] for the first file that is damaged, or that does not fit the others.
pub(crate) fn open(
    path: &Path,
    options: &FileReadOptions,
    open: OpenMesh,
) -> Result<Box<dyn GeometryReader>, FileError> {
    let is_folder = path.is_dir();
    let mut paths = if is_folder {
        files_of(path)?
    } else {
        vec![path.to_path_buf()]
    };
    paths.extend(options.with.iter().cloned());
    let names: Vec<String> = paths.iter().map(|path| name_of(path)).collect();
    let own = FileReadOptions {
        with: Vec::new(),
        ids: None,
        ..options.clone()
    };
    if !is_folder && paths.len() == 1 {
        let reader = open(path, &own)?;
        let ids = match &options.ids {
            Some(ids) => Some(ids.of(&names, path, options.unpacked)?),
            None => numeric_names(&names),
        };
        let is_given = options.ids.is_some();
        if is_given && reader.description().kind != GeometryKind::Mesh {
            return Err(FileFault::Unsupported(NO_IDS).of(path));
        }
        return match ids.as_deref() {
            Some([id]) => ObjectReader::wrap(reader, *id, is_given),
            _ => Ok(reader),
        };
    }
    let reader = MeshFilesReader::open(path, paths, names, options, own, open)?;
    Ok(Box::new(reader))
}

/// Returns the name of a file without the extension of its format.
fn name_of(path: &Path) -> String {
    stem(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// A file that is one object.
struct ObjectReader {
    inner: Box<dyn GeometryReader>,
    id: i64,
    description: FileDescription,
}

impl ObjectReader {
    /// Gives the content of a file an id. Objects of the file stay, unless the id `is_given`.
    fn wrap(
        inner: Box<dyn GeometryReader>,
        id: i64,
        is_given: bool,
    ) -> Result<Box<dyn GeometryReader>, FileError> {
        let mut inner = inner;
        let mut description = inner.description().clone();
        let first = inner.next(1).map_err(FileError::of_batch)?;
        inner.rewind().map_err(FileError::of_batch)?;
        let has_objects = first.is_some_and(|first| first.owners().ids().is_some());
        if description.kind != GeometryKind::Mesh || has_objects && !is_given {
            return Ok(inner);
        }
        description.numbers_objects = false;
        Ok(Box::new(Self {
            inner,
            id,
            description,
        }))
    }
}

impl fmt::Debug for ObjectReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectReader")
            .field("id", &self.id)
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

impl GeometrySource for ObjectReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        let batch = self.inner.next(vertices)?.map(Geometry::into_builder);
        built(batch.map(|batch| {
            let ids = vec![self.id; batch.vertices()];
            owned(batch, ids)
        }))
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.inner.rewind()
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        let positions = self.inner.tables()?.into_builder().positions;
        let tables = Geometry::builder(NumericColumn::new(positions.kind, positions.width));
        Ok(tables.objects(vec![self.id]).build()?)
    }

    fn link_numbering(&self) -> LinkNumbering {
        self.inner.link_numbering()
    }
}

impl GeometryReader for ObjectReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }

    fn is_whole(&self) -> bool {
        self.inner.is_whole()
    }
}

/// Replaces the objects of geometry.
fn owned(mut geometry: GeometryBuilder, ids: Vec<i64>) -> GeometryBuilder {
    geometry.owners = VertexOwners::Vertices(ids);
    (geometry.objects, geometry.object) = (None, Vec::new());
    (geometry.groups, geometry.group) = (BTreeMap::new(), Vec::new());
    geometry
}

/// Type and number of channels of an attribute, if it is numeric.
type ColumnForm = (String, Option<(Kind, u32)>);

/// The form that all files have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MeshForm {
    positions: Kind,
    width: usize,
    vertex: Vec<ColumnForm>,
    link: Vec<ColumnForm>,
}

impl MeshForm {
    fn of(geometry: &GeometryBuilder) -> Self {
        let form = |column: &Column| {
            let numbers = match &column.values {
                ColumnValues::Numeric(numbers) => Some((numbers.kind, numbers.width)),
                ColumnValues::Dictionary { .. } => None,
            };
            (column.name.clone(), numbers)
        };
        Self {
            positions: geometry.positions.kind,
            width: geometry.links.width,
            vertex: geometry.vertex.iter().map(form).collect(),
            link: geometry.link.iter().map(form).collect(),
        }
    }

    /// Reduces the form to what another file has, too. Adds attributes that it lacks to a list.
    fn meet(&mut self, other: &Self, left_out: &mut BTreeSet<String>) {
        if other.positions == Kind::Float64 {
            self.positions = Kind::Float64;
        }
        for (own, others) in [
            (&mut self.vertex, &other.vertex),
            (&mut self.link, &other.link),
        ] {
            let lacking = others.iter().filter(|form| !own.contains(form));
            left_out.extend(lacking.map(|(name, _)| name.clone()));
            own.retain(|form| {
                let is_common = others.contains(form);
                if !is_common {
                    left_out.insert(form.0.clone());
                }
                is_common
            });
        }
    }

    /// Brings the geometry of a file into this form.
    fn apply(&self, mut geometry: GeometryBuilder) -> GeometryBuilder {
        if self.positions == Kind::Float64 && geometry.positions.kind == Kind::Float32 {
            let (numbers, _) = geometry.positions.bytes.as_chunks::<4>();
            let numbers = numbers
                .iter()
                .map(|bytes| f64::from(f32::from_le_bytes(*bytes)));
            geometry.positions = NumericColumn::float64(geometry.positions.width, numbers);
        }
        for (columns, forms) in [
            (&mut geometry.vertex, &self.vertex),
            (&mut geometry.link, &self.link),
        ] {
            let mut all = mem::take(columns);
            let named = forms.iter().filter_map(|(name, _)| {
                let place = all.iter().position(|column| column.name == *name)?;
                Some(all.swap_remove(place))
            });
            columns.extend(named);
        }
        geometry
    }
}

/// Files that are read in batches of whole files.
#[derive(Debug)]
struct MeshFilesReader {
    paths: Vec<PathBuf>,
    ids: Vec<i64>,
    /// Names of the objects, if these are not their ids.
    names: Option<Vec<String>>,
    form: MeshForm,
    options: FileReadOptions,
    open: OpenMesh,
    description: FileDescription,
    /// The next file.
    next: usize,
}

impl MeshFilesReader {
    /// Reads all files once.
    fn open(
        path: &Path,
        paths: Vec<PathBuf>,
        names: Vec<String>,
        options: &FileReadOptions,
        own: FileReadOptions,
        open: OpenMesh,
    ) -> Result<Self, FileError> {
        let mut form: Option<MeshForm> = None;
        let (mut notes, mut left_out) = (BTreeSet::new(), BTreeSet::new());
        let mut bytes = 0_u64;
        let mut description = FileDescription::new(
            FileFormat::of_input(path).unwrap_or(FileFormat::Obj),
            GeometryKind::Mesh,
        )
        .axes_xyz(None);
        for path in &paths {
            let (geometry, of_file) = read_file(path, &own, open)?;
            let other = MeshForm::of(&geometry);
            let form = form.get_or_insert_with(|| other.clone());
            if form.width != other.width {
                let found = format!("{} in this file, and {} in others", other.width, form.width);
                let expected = "the faces of all files have one number; triangulate them";
                let fault = FileFault::field("the number of corners of a face", found, expected);
                return Err(fault.of(path));
            }
            form.meet(&other, &mut left_out);
            bytes = bytes.saturating_add(of_file.bytes);
            let name = name_of(path);
            notes.extend(
                of_file
                    .notes
                    .into_iter()
                    .map(|note| format!("{name}: {note}")),
            );
        }
        let Some(form) = form else {
            return Err(FileFault::Empty.of(path));
        };
        let numbers = match &options.ids {
            Some(ids) => Some(ids.of(&names, path, options.unpacked)?),
            None => numeric_names(&names),
        };
        description.numbers_objects = numbers.is_none();
        description.bytes = bytes;
        // A folder may hold thousands of files with one note each.
        let more = notes.len().saturating_sub(3);
        description.notes.extend(notes.into_iter().take(3));
        if more > 0 {
            description
                .notes
                .push(format!("{more} more notes of files"));
        }
        if !left_out.is_empty() {
            let list: Vec<String> = left_out.into_iter().take(16).collect();
            let list = list.join(", ");
            description
                .notes
                .push(format!("left out: attributes that some files lack: {list}"));
        }
        let (ids, names) = match numbers {
            Some(ids) => (ids, None),
            None => (ids_of(&names), Some(names)),
        };
        Ok(Self {
            paths,
            ids,
            names,
            form,
            options: own,
            open,
            description,
            next: 0,
        })
    }

    fn batch(
        &mut self,
        vertices: usize,
    ) -> Result<Option<GeometryBuilder>, Box<dyn Error + Send + Sync>> {
        let mut all: Option<GeometryBuilder> = None;
        while let (Some(path), Some(id)) = (self.paths.get(self.next), self.ids.get(self.next)) {
            if all.as_ref().is_some_and(|all| all.vertices() >= vertices) {
                break;
            }
            let (geometry, _) = read_file(path, &self.options, self.open)?;
            let other = MeshForm::of(&geometry);
            let mut common = self.form.clone();
            common.meet(&other, &mut BTreeSet::new());
            if common != self.form || other.width != self.form.width {
                let why = "the file changed while it was read; read it again";
                return Err(FileFault::Unsupported(why).of(path).into());
            }
            let ids = vec![*id; geometry.vertices()];
            let geometry = owned(self.form.apply(geometry), ids);
            match &mut all {
                None => all = Some(geometry),
                Some(all) => append(all, geometry, LinkNumbering::Batch)?,
            }
            self.next = self.next.saturating_add(1);
        }
        Ok(all)
    }
}

/// Reads a file as a whole.
fn read_file(
    path: &Path,
    options: &FileReadOptions,
    open: OpenMesh,
) -> Result<(GeometryBuilder, FileDescription), FileError> {
    let mut reader = open(path, options)?;
    let description = reader.description().clone();
    if description.kind != GeometryKind::Mesh {
        return Err(FileFault::Kind {
            format: description.format.extension(),
            holds: description.kind.name(),
            requested: GeometryKind::Mesh.name(),
        }
        .of(path));
    }
    let whole = read_whole(reader.as_mut()).map_err(FileError::of_batch)?;
    Ok((whole.into_builder(), description))
}

impl GeometrySource for MeshFilesReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        built(self.batch(vertices)?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.next = 0;
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        let mut tables =
            Geometry::builder(NumericColumn::new(self.form.positions, 3)).objects(self.ids.clone());
        if let Some(names) = &self.names {
            let names = names.iter().map(|name| Some(name.clone()));
            tables = tables.object(vec![Column::text("name", names)]);
        }
        Ok(tables.build()?)
    }
}

impl GeometryReader for MeshFilesReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}
