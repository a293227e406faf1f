//! The choice of a reader and of a writer by the name of a file.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use zvf_tables::extensions;

use crate::{
    AttributeRename, FileDescription, FileError, FileFault, FileFormat, FileReadOptions,
    GeometryReader, ResultWriter, StoreDescription, edge_list, freesurfer, geff,
    gifti::{self, GiftiWriter},
    glb::{self, GlbWriter},
    graphml,
    las::{LasReader, LasWriter},
    mesh_files, obj,
    object_ids::NO_IDS,
    overlay::SurfaceValues,
    ply, precomputed,
    renamed::RenamedReader,
    stl::{self, StlWriter},
    swc::{SwcReader, SwcWriter},
    tck::{TckReader, TckWriter},
    trk::{TrkReader, TrkWriter},
    trx::{TrxReader, TrxWriter},
    unit_writer::UnitWriter,
    whole::WholeReader,
};

type OpenFile = fn(&Path, &FileReadOptions) -> Result<Box<dyn GeometryReader>, FileError>;
type CreateFile = fn(&Path, &StoreDescription) -> Result<Box<dyn ResultWriter>, FileError>;

/// The functions that open and create files of a format, where they are read and written in batches
/// or as geometry. Tables and `obj` are written, and tables read, by [`read`](crate::read()) and
/// [`write`](crate::write()).
#[derive(Clone, Copy, Default)]
struct FormatHandlers {
    open: Option<OpenFile>,
    create: Option<CreateFile>,
}

/// Handlers of a format that is read by one function, and written by another.
macro_rules! handlers {
    ($open:expr) => {
        FormatHandlers {
            open: Some(|path, options| Ok(Box::new($open(path, options)?))),
            create: None,
        }
    };
    ($open:expr, $create:expr) => {
        FormatHandlers {
            create: Some(|path, description| Ok(Box::new($create(path, description)?))),
            ..handlers!($open)
        }
    };
}

impl FormatHandlers {
    fn of(format: FileFormat) -> Self {
        match format {
            FileFormat::Trk => handlers!(TrkReader::open, TrkWriter::create),
            FileFormat::Tck => handlers!(TckReader::open, TckWriter::create),
            FileFormat::Trx => handlers!(TrxReader::open, TrxWriter::create),
            FileFormat::Swc => handlers!(SwcReader::open, SwcWriter::create),
            FileFormat::Ply => Self {
                open: Some(ply::open),
                create: None,
            },
            FileFormat::Obj => handlers!(obj::open),
            FileFormat::Stl => Self {
                create: Some(|path, _| Ok(Box::new(StlWriter::new(path)))),
                ..handlers!(stl::open)
            },
            FileFormat::Las => Self {
                create: Some(|path, of| Ok(Box::new(LasWriter::create(path, of, false)?))),
                ..handlers!(LasReader::open)
            },
            FileFormat::Laz => Self {
                create: Some(|path, of| Ok(Box::new(LasWriter::create(path, of, true)?))),
                ..handlers!(LasReader::open)
            },
            FileFormat::Gii => Self {
                open: Some(|path, options| surface(path, options, gifti::open)),
                create: Some(|path, description| Ok(Box::new(GiftiWriter::new(path, description)))),
            },
            FileFormat::FreeSurfer => Self {
                open: Some(|path, options| surface(path, options, freesurfer::open)),
                create: None,
            },
            FileFormat::Glb => Self {
                create: Some(|path, _| Ok(Box::new(GlbWriter::new(path)))),
                ..handlers!(glb::open)
            },
            FileFormat::GraphMl => handlers!(graphml::open),
            FileFormat::EdgeList => handlers!(edge_list::open),
            FileFormat::Geff => handlers!(geff::open),
            #[cfg(feature = "geoparquet")]
            FileFormat::GeoParquet => {
                use crate::geoparquet::{GeoParquetWriter, open};
                handlers!(open, GeoParquetWriter::create)
            }
            #[cfg(not(feature = "geoparquet"))]
            FileFormat::GeoParquet => Self {
                open: Some(|path, _| Err(FileFault::NotBuilt("geoparquet").of(path))),
                create: Some(|path, _| Err(FileFault::NotBuilt("geoparquet").of(path))),
            },
            FileFormat::Precomputed => Self {
                open: Some(precomputed::open),
                create: None,
            },
            // Tables.
            _ => Self::default(),
        }
    }
}

impl FileReadOptions {
    /// Checks that the kind of a format is the requested one, or one of the same structure.
    fn check(&self, path: &Path, description: &FileDescription) -> Result<(), FileError> {
        let Some(requested) = self.kind else {
            return Ok(());
        };
        let kind = description.kind;
        let is_alike = requested == kind || requested.is_paths() && kind.is_paths();
        if is_alike {
            return Ok(());
        }
        Err(FileFault::Kind {
            format: description.format.extension(),
            holds: kind.name(),
            requested: requested.name(),
        }
        .of(path))
    }
}

/// Opens a file of geometry. The extension names the format; files that end in `.gz` are unpacked.
///
/// # Errors
///
/// [`FileError`] if the format is not known, or the header is damaged. Damage after the header is
/// an error of the batch that contains it.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<Box<dyn GeometryReader>, FileError> {
    let format = FileFormat::of_input(path).filter(|format| !format.is_interchange());
    // Most writers name tables with geometry like other tables.
    #[cfg(feature = "geoparquet")]
    let format = format.or_else(|| {
        let is_table = zvf_tables::is_geoparquet(path);
        is_table.then_some(FileFormat::GeoParquet)
    });
    let Some(format) = format else {
        return Err(unreadable().of(path));
    };
    check_distinct(path, &options.with)?;
    let Some(open) = FormatHandlers::of(format).open else {
        return Err(unreadable().of(path));
    };
    let reader = if format.is_mesh() {
        mesh_files::open(path, options, open_mesh)?
    } else {
        open(path, options)?
    };
    options.check(path, reader.description())?;
    if options.ids.is_some() && !format.is_object() {
        return Err(FileFault::Unsupported(NO_IDS).of(path));
    }
    if options.keep_order && !matches!(format, FileFormat::Las | FileFormat::Laz) {
        let why = "the order is kept for .las and .laz files; leave out the option for this format";
        return Err(FileFault::Unsupported(why).of(path));
    }
    if options.nan_for_missing && format != FileFormat::GeoParquet {
        let why =
            "NaN for rows without a value is an option for tables; leave it out for this format";
        return Err(FileFault::Unsupported(why).of(path));
    }
    if !options.with.is_empty() && !format.takes_further_files() {
        let why = "no further files belong to this format; read each file by itself";
        return Err(FileFault::Unsupported(why).of(path));
    }
    // Those of coordinates are renamed in the header.
    let is_axis = |rename: &AttributeRename| ["x", "y", "z"].contains(&rename.new.as_str());
    let mut renames = options.renames.clone();
    renames.retain(|rename| format != FileFormat::Ply || !is_axis(rename));
    if renames.is_empty() {
        return Ok(reader);
    }
    let renamed = RenamedReader::new(reader, &renames, path)?;
    Ok(Box::new(renamed))
}

/// Opens a mesh by itself.
fn open_mesh(path: &Path, options: &FileReadOptions) -> Result<Box<dyn GeometryReader>, FileError> {
    let format = FileFormat::of_path(path).filter(|format| format.is_mesh());
    match format.and_then(|format| FormatHandlers::of(format).open) {
        Some(open) => open(path, options),
        None => {
            let why = "only meshes are read together with meshes: .obj, .ply, .stl and .glb files";
            Err(FileFault::Unsupported(why).of(path))
        }
    }
}

/// Checks that no file is given twice: its values would be there under two names.
fn check_distinct(path: &Path, with: &[PathBuf]) -> Result<(), FileError> {
    // A file that does not exist is an error of the reader.
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut seen = BTreeSet::from([place(path)]);
    for file in with {
        let full = place(file);
        let is_in_folder = full.parent().is_some_and(|folder| seen.contains(folder));
        if is_in_folder || !seen.insert(full) {
            let why = "the file is given twice; give each file once";
            return Err(FileFault::Unsupported(why).of(file));
        }
    }
    Ok(())
}

/// Reads the surface of a format.
type OpenSurface =
    fn(&Path, &FileReadOptions, Vec<SurfaceValues>) -> Result<WholeReader, FileError>;

/// Opens a surface with the files of values of its vertices.
fn surface(
    path: &Path,
    options: &FileReadOptions,
    open: OpenSurface,
) -> Result<Box<dyn GeometryReader>, FileError> {
    let (again, reading) = (path.to_path_buf(), options.clone());
    let reader = open(path, options, overlays(options)?)?;
    Ok(Box::new(reader.reread(move || {
        open(&again, &reading, overlays(&reading)?)
    })))
}

/// Reads the files with values of vertices: GIFTI by the extension, else those of `FreeSurfer`.
fn overlays(options: &FileReadOptions) -> Result<Vec<SurfaceValues>, FileError> {
    let read = |path: &PathBuf| match FileFormat::of_path(path) {
        Some(FileFormat::Gii) => gifti::read_overlay(path, options.unpacked),
        _ if is_table(path) => {
            let why = "a table cannot be added to a surface; create the store without it, and add \
                       its columns by row_id: zvf query --row-ids, zvf edit --attributes";
            Err(FileFault::Unsupported(why).of(path))
        }
        _ => freesurfer::read_overlay(path, options.unpacked),
    };
    options.with.iter().map(read).collect()
}

/// Returns whether a file is a table. Files with values of `FreeSurfer` have any other extension.
fn is_table(path: &Path) -> bool {
    const TABLES: [&str; 8] = [
        "csv", "tsv", "txt", "npy", "npz", "arrow", "parquet", "feather",
    ];
    path.extension()
        .is_some_and(|end| TABLES.iter().any(|table| end.eq_ignore_ascii_case(table)))
}

/// Returns the fault of a file whose extension no reader has.
fn unreadable() -> FileFault {
    let names = extensions(|format| !format.is_interchange());
    FileFault::Extension(format!(
        "{names}, also with .gz, a folder of .swc files or meshes, or a folder of precomputed data"
    ))
}

/// Creates the writer of a file. The extension names the format.
///
/// TRK, TCK, TRX and GIFTI files hold millimetres, to which coordinates along an axis with another
/// decimal unit of length are converted. Any other unit is listed in
/// [`WrittenResult::left_out`](crate::WrittenResult::left_out), and its numbers are written as they
/// are, as numbers without a unit are. SWC files name the unit of the axes in a comment.
///
/// # Errors
///
/// [`FileError`] if the format is not known, or the file cannot be created.
pub fn create(
    path: &Path,
    description: &StoreDescription,
) -> Result<Box<dyn ResultWriter>, FileError> {
    let Some(format) = FileFormat::of_path(path).filter(|format| !format.is_interchange()) else {
        return Err(FileFault::Extension(WRITTEN.to_owned()).of(path));
    };
    if path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gz"))
    {
        let why = "files are not written as .gz; leave out .gz, and compress the file afterwards";
        return Err(FileFault::Unsupported(why).of(path));
    }
    let Some(create) = FormatHandlers::of(format).create else {
        return Err(FileFault::Extension(WRITTEN.to_owned()).of(path));
    };
    let writer = create(path, description)?;
    Ok(UnitWriter::wrap(writer, path, format, description))
}

const WRITTEN: &str = ".trk, .tck, .trx, .swc, .stl, .las, .laz, .gii, .geoparquet or .glb";

#[cfg(test)]
mod tests {
    use zvf_tables::OutputFile;

    use super::*;

    #[test]
    fn formats_of_a_field_have_a_function_for_each_direction() {
        for format in FileFormat::ALL {
            let handlers = FormatHandlers::of(format);
            let is_opened = !format.is_interchange();
            assert_eq!(handlers.open.is_some(), is_opened, "{format}");
        }
    }

    /// Two messages list the formats that are written.
    #[test]
    fn formats_that_are_listed_as_written_have_a_function() {
        let folder = tempfile::tempdir().unwrap();
        let refused = OutputFile::new(folder.path().join("a.none")).unwrap_err();
        let extensions = |text: &str| {
            let words = text.split([' ', ',']).map(str::to_owned);
            words.collect::<BTreeSet<String>>()
        };
        let (accepted, created) = (extensions(&refused.to_string()), extensions(WRITTEN));
        for format in FileFormat::ALL {
            let extension = format!(".{format}");
            let is_created = FormatHandlers::of(format).create.is_some();
            assert_eq!(is_created, created.contains(&extension), "{format}");
            let has_another =
                format.is_interchange() || matches!(format, FileFormat::Ply | FileFormat::Obj);
            assert_eq!(
                is_created || has_another,
                accepted.contains(&extension),
                "{format}"
            );
            assert!(!is_created || !has_another, "{format}");
        }
    }
}
