//! The formats by name.

use std::{fmt, fs, path::Path};

use crate::{
    folder_array::is_group_with,
    length::{LengthUnit, MICROMETER, MILLIMETER},
};

/// Endings of the names of surfaces of `FreeSurfer`.
const SURFACES: [&str; 8] = [
    "pial",
    "white",
    "inflated",
    "smoothwm",
    "orig",
    "sphere",
    "graymid",
    "midthickness",
];

/// Endings of the names of edge lists.
const EDGE_LISTS: [&str; 2] = ["edgelist", "edges"];

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileFormat {
    /// TrackVis.
    Trk,
    /// MRtrix tracks.
    Tck,
    /// Tractography exchange: a zip file or a folder of arrays.
    Trx,
    /// Skeletons of neurons: a file, or a folder of files.
    Swc,
    /// The polygon format of Stanford.
    Ply,
    /// The text format of Wavefront.
    Obj,
    /// Triangles.
    Stl,
    /// Points of laser scanners.
    Las,
    /// Compressed points of laser scanners.
    Laz,
    /// Surfaces as XML, with values of their vertices.
    Gii,
    /// Surfaces of `FreeSurfer`, which are read only.
    FreeSurfer,
    /// The binary form of glTF, which is written only.
    Glb,
    /// Graphs as XML.
    GraphMl,
    /// Edges as text, beside a table of nodes.
    EdgeList,
    /// Graphs of tracked cells: a folder of Zarr.
    Geff,
    /// Tables with a column of geometry.
    GeoParquet,
    /// Folders of Neuroglancer, which are read only. No extension names them.
    Precomputed,
}

impl FileFormat {
    /// All formats.
    pub const ALL: [Self; 17] = [
        Self::Trk,
        Self::Tck,
        Self::Trx,
        Self::Swc,
        Self::Ply,
        Self::Obj,
        Self::Stl,
        Self::Las,
        Self::Laz,
        Self::Gii,
        Self::FreeSurfer,
        Self::Glb,
        Self::GraphMl,
        Self::EdgeList,
        Self::Geff,
        Self::GeoParquet,
        Self::Precomputed,
    ];

    /// Returns the format that the extension of `path` names. An extension `.gz` is skipped.
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        if extension.eq_ignore_ascii_case("gz") {
            return Self::of_path(Path::new(path.file_stem()?));
        }
        if SURFACES.iter().any(|surface| extension == *surface) {
            return Some(Self::FreeSurfer);
        }
        if EDGE_LISTS
            .iter()
            .any(|end| extension.eq_ignore_ascii_case(end))
        {
            return Some(Self::EdgeList);
        }
        let mut formats = Self::ALL.into_iter();
        formats.find(|format| {
            *format != Self::Precomputed && extension.eq_ignore_ascii_case(format.extension())
        })
    }

    /// Returns the format of an existing file, as [`of_path`](Self::of_path) does. A folder without
    /// such an extension has the format of the files in it that are read together.
    pub fn of_input(path: &Path) -> Option<Self> {
        let found = Self::of_path(path);
        if found.is_some() || !path.is_dir() {
            return found;
        }
        let mut entries = fs::read_dir(path).ok()?.flatten();
        let is_swc = |entry: fs::DirEntry| Self::of_path(&entry.path()) == Some(Self::Swc);
        if entries.any(is_swc) {
            return Some(Self::Swc);
        }
        if is_group_with(path, "geff") {
            return Some(Self::Geff);
        }
        is_precomputed(path).then_some(Self::Precomputed)
    }

    /// Returns the extension of file names, and for folders the name of the format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Trk => "trk",
            Self::Tck => "tck",
            Self::Trx => "trx",
            Self::Swc => "swc",
            Self::Ply => "ply",
            Self::Obj => "obj",
            Self::Stl => "stl",
            Self::Las => "las",
            Self::Laz => "laz",
            Self::Gii => "gii",
            Self::FreeSurfer => "pial",
            Self::Glb => "glb",
            Self::GraphMl => "graphml",
            Self::EdgeList => "edgelist",
            Self::Geff => "geff",
            Self::GeoParquet => "geoparquet",
            Self::Precomputed => "precomputed",
        }
    }

    /// Returns whether files of the format are read.
    pub fn is_readable(self) -> bool {
        self != Self::Glb
    }

    /// Returns whether further files belong to a file of the format.
    pub fn takes_further_files(self) -> bool {
        matches!(
            self,
            Self::Tck | Self::Swc | Self::Gii | Self::FreeSurfer | Self::EdgeList
        )
    }

    /// Returns whether this build has the format.
    pub fn is_built(self) -> bool {
        self != Self::GeoParquet || cfg!(feature = "geoparquet")
    }

    /// Returns the unit of coordinates that the format implies; `None` for formats of any unit.
    pub(crate) fn length_unit(self) -> Option<LengthUnit> {
        match self {
            Self::Trk | Self::Tck | Self::Trx | Self::Gii => Some(MILLIMETER),
            Self::Swc => Some(MICROMETER),
            _ => None,
        }
    }

    /// Returns the name of the unit of coordinates that the format implies.
    pub fn implied_unit(self) -> Option<&'static str> {
        self.length_unit().map(|unit| unit.name)
    }

    /// Returns the name of the header in a store.
    pub fn header_name(self) -> &'static str {
        match self {
            Self::Laz => "las",
            Self::Gii => "gifti",
            Self::FreeSurfer => "freesurfer",
            other => other.extension(),
        }
    }
}

/// Returns whether a folder has an `info` document, or a folder that has one.
fn is_precomputed(path: &Path) -> bool {
    let has_info = |folder: &Path| folder.join("info").is_file();
    has_info(path)
        || fs::read_dir(path).is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| has_info(&entry.path())))
        })
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}
