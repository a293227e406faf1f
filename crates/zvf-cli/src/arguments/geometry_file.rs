//! Arguments of commands that read a file of geometry.

use std::path::PathBuf;

use zvf::{GeometryKind, OutOfBounds};
use zvf_files::{
    AttributeRename, FileReadOptions, GeometryReadOptions, InputFile, InputFileError, MissingPolicy,
};

use super::{name_of, named};

/// The file to read, and how to read it.
#[derive(Clone, Debug, clap::Args)]
pub struct GeometryFileArgs {
    /// File of geometry: .npz, .csv, .parquet, .arrow, .trk, .tck, .trx, .swc, .ply, .obj, .stl, .glb,
    /// .las, .laz, .gii, .pial, .graphml, .edgelist or .geoparquet, a folder of .swc files or of meshes
    /// (.obj, .ply, .stl, .glb), a folder of a geff graph, or a folder of precomputed skeletons, annotations or meshes of Neuroglancer.
    ///
    /// Tables hold vertices; links, objects and groups are read from NAME.links.csv,
    /// NAME.objects.csv and NAME.groups.csv beside NAME.csv.
    #[arg(long, value_name = "FILE", value_parser = InputFile::parse)]
    pub(crate) from: InputFile,
    /// Additional .swc files or meshes, to which a shell expands a pattern: --from neurons/*.swc.
    #[arg(value_name = "FILE")]
    further: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) options: GeometryReadingArgs,
}

impl GeometryFileArgs {
    /// Returns the file with further ones.
    ///
    /// # Errors
    ///
    /// Returns [`InputFileError`] if the files cannot be read together.
    pub(crate) fn file(&self) -> Result<InputFile, InputFileError> {
        self.from.clone().and(&self.further)
    }

    /// Returns whether `zvf-files` reads the input. Only its formats take several files.
    pub(crate) fn is_field(&self) -> bool {
        !self.from.format().is_interchange() || !self.further.is_empty()
    }
}

/// Arguments for reading a file of geometry.
#[derive(Clone, Debug, clap::Args)]
pub struct GeometryReadingArgs {
    /// Table of links, if it is not beside the file.
    #[arg(long, value_name = "FILE", value_parser = InputFile::parse)]
    links: Option<InputFile>,
    /// New name for an attribute, such as 'Curvature (mm)=curvature'; may be repeated.
    ///
    /// Needed for an attribute of vertices with the name of an axis. In tables, also names the
    /// columns `object_id` and `part`: `--rename track=object_id`.
    #[arg(long, value_name = "OLD=NEW", value_parser = rename)]
    pub(crate) rename: Vec<AttributeRename>,
    /// Treatment of missing numbers of tables and npz files: refuse the file, or store NaN, which turns
    /// integers into floats.
    #[arg(long, default_value = "refuse", value_parser = named(GAPS.map(|(gaps, _)| gaps), gaps_name))]
    pub(crate) missing: MissingPolicy,
    /// Store columns `fragment.NAME` that differ within an object as a value for each fragment, the part of
    /// an object in a chunk, which all of its vertices must have.
    ///
    /// By default they become attributes of vertices.
    #[arg(long)]
    fragment_rows: bool,
    /// Treatment of vertices outside the bounds: fail, drop them with the paths and links that use
    /// them, or extend the bounds.
    #[arg(long, help_heading = "Space", default_value = "raise",
        value_parser = named(OUT_OF_BOUNDS.map(|(what, _)| what), out_of_bounds_name))]
    pub(crate) out_of_bounds: OutOfBounds,
}

impl GeometryReadingArgs {
    /// Returns the name of an option that is given and applies to tables only.
    pub(crate) fn table_option(&self) -> Option<&'static str> {
        let links = self.links.is_some().then_some("--links");
        links.or(self.fragment_rows.then_some("--fragment-rows"))
    }

    /// Returns the options for reading a file of `zvf-files`.
    pub(crate) fn field_reading(&self) -> FileReadOptions {
        let mut options = FileReadOptions::default();
        options.renames.clone_from(&self.rename);
        options.nan_for_missing = self.missing == MissingPolicy::Nan;
        options
    }

    /// Returns the options for reading a file with this kind of geometry and these axes.
    pub fn reading(&self, kind: GeometryKind, axes: Option<Vec<String>>) -> GeometryReadOptions {
        let mut options = GeometryReadOptions::new(kind);
        options.axes = axes;
        options.links.clone_from(&self.links);
        options.missing = self.missing;
        options.fragment_rows = self.fragment_rows;
        options.renames.clone_from(&self.rename);
        options
    }
}

/// Words of the treatment of missing numbers.
pub(crate) const GAPS: [(MissingPolicy, &str); 2] = [
    (MissingPolicy::Reject, "refuse"),
    (MissingPolicy::Nan, "nan"),
];
const OUT_OF_BOUNDS: [(OutOfBounds, &str); 3] = [
    (OutOfBounds::Reject, "raise"),
    (OutOfBounds::Drop, "ignore"),
    (OutOfBounds::Expand, "expand"),
];
/// Parses `OLD=NEW`; a name in a file may have `=`.
pub(crate) fn rename(text: &str) -> Result<AttributeRename, String> {
    let split = text
        .rsplit_once('=')
        .filter(|(old, new)| !old.is_empty() && !new.is_empty());
    let (old, new) = split.ok_or("write OLD=NEW, as 'mean FA=mean_fa'")?;
    Ok(AttributeRename::new(old, new))
}

pub(crate) fn gaps_name(gaps: MissingPolicy) -> &'static str {
    name_of(&GAPS, gaps)
}

fn out_of_bounds_name(what: OutOfBounds) -> &'static str {
    name_of(&OUT_OF_BOUNDS, what)
}
