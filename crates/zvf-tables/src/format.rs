//! The formats by name.

use std::{
    fmt,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::length::{LengthUnit, MILLIMETER};

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

/// The facts of a format.
#[derive(Clone, Copy)]
struct FormatFacts {
    /// Endings of file names in any case; the first one names the format.
    extensions: &'static [&'static str],
    /// Further endings, in this case only.
    exact_extensions: &'static [&'static str],
    content: FormatContent,
    /// Name of the header in a store, if it differs from the first extension.
    header: Option<&'static str>,
    /// The unit of coordinates that the format implies.
    unit: Option<LengthUnit>,
    holds_crs: bool,
    takes_further_files: bool,
    is_built: bool,
}

/// The part of a query result that a format holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FormatContent {
    /// All of it, for other programs and for a new store.
    Everything,
    /// The geometry and attributes that rendering programs read, without groups.
    Picture,
    /// The geometry and attributes that programs of one field exchange.
    Field,
}

impl FormatFacts {
    /// Returns the facts of a format of a field.
    const fn field(extensions: &'static [&'static str]) -> Self {
        Self {
            extensions,
            exact_extensions: &[],
            content: FormatContent::Field,
            header: None,
            unit: None,
            holds_crs: false,
            takes_further_files: false,
            is_built: true,
        }
    }

    /// Returns the facts of a format that holds everything.
    const fn interchange(extensions: &'static [&'static str], is_built: bool) -> Self {
        Self {
            content: FormatContent::Everything,
            is_built,
            ..Self::field(extensions)
        }
    }

    /// Returns the facts of a format of rendering programs.
    const fn picture(extensions: &'static [&'static str]) -> Self {
        Self {
            content: FormatContent::Picture,
            ..Self::field(extensions)
        }
    }
}

/// Declares the formats: a variant and the facts of each.
macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident = $facts:expr;)*) => {
        /// A format of files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FileFormat {
            $($(#[$doc])* $name,)*
        }

        impl FileFormat {
            /// All formats.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            const fn facts(self) -> FormatFacts {
                match self {
                    $(Self::$name => $facts,)*
                }
            }
        }
    };
}

formats! {
    /// Comma-separated text, one line per row.
    Csv = FormatFacts::interchange(&["csv"], true);
    /// A zip file of NumPy arrays.
    Npz = FormatFacts::interchange(&["npz"], true);
    /// Arrow's IPC file format.
    Arrow = FormatFacts::interchange(&["arrow"], cfg!(feature = "arrow"));
    /// Parquet.
    Parquet = FormatFacts::interchange(&["parquet"], cfg!(feature = "parquet"));
    /// TrackVis.
    Trk = FormatFacts { unit: Some(MILLIMETER), ..FormatFacts::field(&["trk"]) };
    /// MRtrix tracks.
    Tck = FormatFacts {
        unit: Some(MILLIMETER),
        takes_further_files: true,
        ..FormatFacts::field(&["tck"])
    };
    /// Tractography exchange: a zip file or a folder of arrays.
    Trx = FormatFacts { unit: Some(MILLIMETER), ..FormatFacts::field(&["trx"]) };
    /// Skeletons of neurons: a file, or a folder of files.
    Swc = FormatFacts {
        takes_further_files: true,
        ..FormatFacts::field(&["swc"])
    };
    /// The polygon format of Stanford.
    Ply = FormatFacts::picture(&["ply"]);
    /// The text format of Wavefront.
    Obj = FormatFacts::picture(&["obj"]);
    /// Triangles.
    Stl = FormatFacts::field(&["stl"]);
    /// Points of laser scanners.
    Las = FormatFacts { holds_crs: true, ..FormatFacts::field(&["las"]) };
    /// Compressed points of laser scanners.
    Laz = FormatFacts { holds_crs: true, header: Some("las"), ..FormatFacts::field(&["laz"]) };
    /// Surfaces as XML, with values of their vertices.
    Gii = FormatFacts {
        header: Some("gifti"),
        unit: Some(MILLIMETER),
        takes_further_files: true,
        ..FormatFacts::field(&["gii"])
    };
    /// Surfaces of `FreeSurfer`, which are read only.
    FreeSurfer = FormatFacts {
        exact_extensions: &SURFACES,
        header: Some("freesurfer"),
        takes_further_files: true,
        ..FormatFacts::field(&["pial"])
    };
    /// The binary form of glTF.
    Glb = FormatFacts::picture(&["glb"]);
    /// Graphs as XML.
    GraphMl = FormatFacts::field(&["graphml"]);
    /// Edges as text, beside a table of nodes.
    EdgeList = FormatFacts { takes_further_files: true, ..FormatFacts::field(&["edgelist", "edges"]) };
    /// Graphs of tracked cells: a folder of Zarr.
    Geff = FormatFacts::field(&["geff"]);
    /// Tables with a column of geometry.
    GeoParquet = FormatFacts {
        holds_crs: true,
        is_built: cfg!(feature = "geoparquet"),
        ..FormatFacts::field(&["geoparquet"])
    };
    /// Folders of Neuroglancer, which are read only. No extension names them.
    Precomputed = FormatFacts { header: Some("precomputed"), ..FormatFacts::field(&[]) };
}

impl FileFormat {
    /// Returns the format that the extension of `path` names. An extension `.gz` is skipped, but not
    /// after that of a table.
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        if extension.eq_ignore_ascii_case("gz") {
            let unpacked = Self::of_path(Path::new(path.file_stem()?));
            return unpacked.filter(|format| !format.is_interchange());
        }
        let mut formats = Self::ALL.into_iter();
        formats.find(|format| {
            let facts = format.facts();
            let mut extensions = facts.extensions.iter();
            extensions.any(|end| extension.eq_ignore_ascii_case(end))
                || facts.exact_extensions.iter().any(|end| extension == *end)
        })
    }

    /// Returns the format of an existing file, as [`of_path`](Self::of_path) does. Tables of text may
    /// also be compressed with gzip, or separated by tabs. A folder without
    /// such an extension has the format of the files in it that are read together.
    pub fn of_input(path: &Path) -> Option<Self> {
        let named = Self::of_path(path).or_else(|| of_text_table(path));
        if named.is_some() || !path.is_dir() {
            return named;
        }
        let mut entries = fs::read_dir(path).ok()?.flatten();
        let is_swc = |entry: fs::DirEntry| Self::of_path(&entry.path()) == Some(Self::Swc);
        if entries.any(is_swc) {
            return Some(Self::Swc);
        }
        if is_geff(path) {
            return Some(Self::Geff);
        }
        if is_precomputed(path) {
            return Some(Self::Precomputed);
        }
        let mut names: Vec<PathBuf> = fs::read_dir(path)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        names.sort_unstable();
        let mut formats = names.iter().filter_map(|path| Self::of_path(path));
        formats.find(|format| format.is_mesh())
    }

    /// Returns the extension of file names, and for folders the name of the format.
    pub fn extension(self) -> &'static str {
        match self.facts().extensions {
            [first, ..] => first,
            [] => self.header_name(),
        }
    }

    /// Returns whether the format holds everything that a query returns.
    pub fn is_interchange(self) -> bool {
        self.facts().content == FormatContent::Everything
    }

    /// Returns whether the format has a file for each table of a result: of vertices, links, objects and
    /// groups.
    pub fn is_table(self) -> bool {
        self.is_interchange() && self != Self::Npz
    }

    /// Returns whether files of the format are written in batches.
    pub fn is_in_batches(self) -> bool {
        !self.is_interchange() && self != Self::Obj
    }

    /// Returns whether a file holds groups of objects and their attributes, or a note of what the
    /// format lacks of them.
    pub fn has_groups(self) -> bool {
        self.facts().content != FormatContent::Picture
    }

    /// Returns whether the format holds a header of the store.
    pub fn has_header(self) -> bool {
        self == Self::Ply || self.has_groups()
    }

    /// Returns the line that reports that the format does not hold a coordinate reference system.
    /// Frames that formats imply, as that of tractograms, are no loss.
    pub fn crs_left_out(self, crs: Option<&Value>) -> Option<String> {
        let crs = crs.filter(|crs| crs.get("frame").is_none() && !crs.is_null());
        let is_lost = !self.is_interchange() && !self.facts().holds_crs && crs.is_some();
        is_lost.then(|| format!("coordinate reference system: not supported by {self}"))
    }

    /// Returns whether further files belong to a file of the format.
    pub fn takes_further_files(self) -> bool {
        self.facts().takes_further_files || self.is_mesh()
    }

    /// Returns whether files of the format are meshes, which may be an object each.
    pub fn is_mesh(self) -> bool {
        matches!(self, Self::Obj | Self::Ply | Self::Stl | Self::Glb)
    }

    /// Returns whether several files of the format are read together, each as an object.
    pub fn is_object(self) -> bool {
        self == Self::Swc || self.is_mesh()
    }

    /// Returns whether this build has the format.
    pub fn is_built(self) -> bool {
        self.facts().is_built
    }

    /// Returns the unit of coordinates that the format implies; `None` for formats of any unit.
    pub fn length_unit(self) -> Option<LengthUnit> {
        self.facts().unit
    }

    /// Returns the name of the unit of coordinates that the format implies.
    pub fn implied_unit(self) -> Option<&'static str> {
        self.length_unit().map(|unit| unit.name)
    }

    /// Returns the name of the header in a store.
    pub fn header_name(self) -> &'static str {
        self.facts().header.unwrap_or_else(|| self.extension())
    }
}

/// Returns the format of a table that is read only: of a `.tsv` file, and of a compressed `.csv` or
/// `.tsv` file.
fn of_text_table(path: &Path) -> Option<FileFormat> {
    let extension = path.extension()?.to_ascii_lowercase();
    if extension == "tsv" {
        return Some(FileFormat::Csv);
    }
    let inner = Path::new(path.file_stem()?).extension()?;
    let is_table = ["csv", "tsv"]
        .iter()
        .any(|name| inner.eq_ignore_ascii_case(name));
    (extension == "gz" && is_table).then_some(FileFormat::Csv)
}

/// Upper bound on the size in bytes of the document of a group.
const DOCUMENT: u64 = 16 << 20;

/// Returns whether a folder is a group of Zarr with the attribute `geff`.
fn is_geff(folder: &Path) -> bool {
    let documents = [("zarr.json", "/attributes/geff"), (".zattrs", "/geff")];
    let mut documents = documents
        .map(|(name, key)| (folder.join(name), key))
        .into_iter();
    let Some((path, key)) = documents.find(|(path, _)| path.is_file()) else {
        return false;
    };
    let read = || {
        let mut bytes = Vec::new();
        let file = File::open(path).ok()?;
        file.take(DOCUMENT).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()
    };
    read().is_some_and(|document| document.pointer(key).is_some())
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

/// Lists extensions, with `or` before the last one.
pub fn extensions(formats: impl Fn(FileFormat) -> bool) -> String {
    let names: Vec<String> = FileFormat::ALL
        .into_iter()
        .filter(|format| formats(*format))
        .filter(|format| !format.facts().extensions.is_empty())
        .map(|format| format!(".{format}"))
        .collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
