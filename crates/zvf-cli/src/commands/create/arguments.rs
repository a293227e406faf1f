//! Arguments of `zvf create`.

use std::{error::Error, path::PathBuf};

use serde_json::Value;
use zvf::{
    AxisSpec, CellChecksums, CellCompression, Design, GeometryKind, ManifestForm, Profile, Purpose,
    ShardingPolicy, StepLinks, WindingOrder, numeric::Kind,
};
use zvf_files::{
    AxisUnitError, FileFormat, FileObjectIds, FileReadOptions, GeometryReadOptions, InputFile,
    replace_grid, settle_units, stated_kind,
};

use super::{
    CreateOutput, CreateSettings,
    declarations::{self, AttributeNames, Declaration, DeclarationError},
    file_axes::{self, AxisOrderError},
    plan_check::PlanCheckOptions,
};
use crate::{
    arguments::{
        GeometryFileArgs, crs, name_of, named,
        values::{self, Axes, BoundsArgument, ExtentsArgument, VerticesArgument},
    },
    dense::reference_grid,
    outcome::CommandOutcome,
};

/// Default memory for geometry that is read as a whole.
const MEMORY: u64 = 1 << 30;
/// Copies of the geometry in memory while a store is planned as a whole.
const COPIES: u64 = 6;

/// Create a store from a file of geometry
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads a file that `zvf query -o` wrote, a table with one row per vertex, a tractogram, neurons,
or precomputed data of Neuroglancer.

Examples:
  zvf create cells.zv --kind points --from cells.csv --axes x:micrometer,y:micrometer,z:micrometer
  zvf create wires.zv --kind graphs --from nodes.csv --links edges.csv --chunk-shape 50,50,50 --shard
  zvf create fibres.zv --from tracts.trk --compression zstd
  zvf create neurons.zv --from neurons/"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct CreateArgs {
    /// Store to create: a folder, or an address that this build supports.
    pub(super) out: String,

    /// Kind of geometry; by default that of the file, if the format determines it, as .trk does, or if
    /// it is the result of a query.
    ///
    /// Skeletons of precomputed data can be read as graphs, or as streamlines if they are paths.
    #[arg(long, value_parser = named(GeometryKind::ALL, GeometryKind::name))]
    pub(super) kind: Option<GeometryKind>,
    #[command(flatten)]
    pub(super) input: GeometryFileArgs,
    /// File that belongs to the file of --from: a .tsf of a .tck, another .swc, a shape, func, label,
    /// curvature or annotation file of a surface, or the table of the nodes of an .edgelist; may be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    pub(super) with: Vec<PathBuf>,
    /// Ids of the objects of .swc files and meshes, where each file becomes one object: `name` takes them
    /// from the names of the files, and `number` counts the files from 0. Or a list with an id for each
    /// file, such as 17,42, or a table of names and ids, such as ids.csv.
    ///
    /// By default the file names, if all of them are different numbers.
    #[arg(long, value_name = "name|number|ID,…|FILE", value_parser = values::object_ids)]
    ids: Option<FileObjectIds>,
    /// Store the order of the points of .las and .laz files as the attribute `source_row`, so that
    /// they can be written in this order again.
    #[arg(long)]
    keep_order: bool,

    /// Format generation and profile of the store.
    ///
    /// 0.10 is a preview: no other program reads it yet, and details may change.
    #[arg(long, help_heading = "Store", default_value = Profile::default().name(),
        value_parser = named(Profile::ALL, Profile::name))]
    profile: Profile,
    /// Extent of a chunk along each axis; chosen automatically by default.
    #[arg(long, value_name = "X,Y,Z", help_heading = "Store", value_parser = values::extents)]
    chunk_shape: Option<ExtentsArgument>,
    /// Extent of a bin along each axis.
    ///
    /// Points without objects are sorted by bin inside a chunk.
    #[arg(long, value_name = "X,Y,Z", help_heading = "Store", value_parser = values::extents)]
    bin_shape: Option<ExtentsArgument>,
    /// Data type of stored coordinates; by default that of the input.
    #[arg(long, help_heading = "Store", value_parser = named(DTYPES, Kind::name))]
    dtype: Option<Kind>,
    #[arg(long, value_name = "CODEC", help_heading = "Store", default_value = "none",
        value_parser = values::compression,
        help = format!("Compression of cells: {}", CellCompression::WORDS),
        long_help = format!("Compression of cells: {}.\n\n{COMPRESSED}", CellCompression::WORDS))]
    compression: CellCompression,
    /// Compression of the tables of objects and groups; by default that of cells, or zstd if cells
    /// are not compressed.
    ///
    /// With none and --no-checksum, a program without decompression, for example on a
    /// microcontroller, can read the store.
    #[arg(long, value_name = "CODEC", help_heading = "Store", value_parser = values::compression)]
    table_compression: Option<CellCompression>,
    /// Encoding of vertices: raw, draco, or draco:BITS with 1 to 30 bits for each coordinate.
    ///
    /// Draco rounds the positions of a chunk to steps of their extent, by default to 11 bits, and
    /// keeps their order. Triangles inside chunks become part of the encoded vertices. Such
    /// stores can be read, validated and exported, but not changed.
    #[arg(long, value_name = "ENCODING", help_heading = "Store", default_value = "raw",
        value_parser = values::encoding)]
    encoding: VerticesArgument,
    /// Form of the object index: manifests, or dense, a draft of the format that other programs may
    /// not read.
    #[arg(long, help_heading = "Store", default_value = "manifests",
        value_parser = named(INDEX_FORMS.map(|(form, _)| form), index_form_name))]
    object_index: ManifestForm,
    /// Combine chunks in shards: a number of chunks along each axis, such as --shard=4,4,4, auto or
    /// none; by default auto in a bucket, and none in a folder.
    ///
    /// Without a value, or with auto, a shard holds about 16 MB.
    #[arg(long, value_name = "auto|none|I,J,K", help_heading = "Store", num_args = 0..=1,
        require_equals = true, default_missing_value = "auto",
        value_parser = values::sharding)]
    shard: Option<ShardingPolicy>,
    /// Access pattern for which chunk sizes are chosen.
    #[arg(long, help_heading = "Store", default_value = "auto",
        value_parser = named(PURPOSES.map(|(purpose, _)| purpose), purpose_name))]
    purpose: Purpose,
    /// Write cells without checksums.
    #[arg(long, help_heading = "Store")]
    no_checksum: bool,
    /// Omit the copy of all metadata nodes in the root.
    ///
    /// The copy saves requests when the store is read over the network.
    #[arg(long, help_heading = "Store")]
    no_node_copy: bool,
    /// Omit the inventory of all files.
    ///
    /// Every read of a store with an inventory is checked against it: damaged, exchanged and missing
    /// files are errors. Omit the inventory if other programs will change the store.
    #[arg(long, help_heading = "Store")]
    no_seal: bool,

    /// Bounds of the store: the lower bound of each axis, then the upper bounds; by default those
    /// of the vertices.
    #[arg(long, value_name = "X0,Y0,Z0,X1,Y1,Z1", help_heading = "Space",
        value_parser = values::bounds, allow_hyphen_values = true)]
    bounds: Option<BoundsArgument>,
    /// Axes in order, with optional units and types; for a table, the columns with these names, and
    /// for a graph the attributes of its nodes.
    ///
    /// Units are those of OME-Zarr, such as micrometer, foot or second, and others of UDUNITS-2, such
    /// as degree. Types are space (the default), time and channel. Without a value, lists the columns
    /// of the table.
    #[arg(long, value_name = "NAME[:UNIT[:TYPE]],…", help_heading = "Space",
        num_args = 0..=1, default_missing_value = "", value_parser = values::axes)]
    axes: Option<Axes>,
    /// Unit of the coordinates of a file that does not state it, such as nanometer for .swc.
    #[arg(long, value_name = "UNIT", help_heading = "Space", value_parser = values::unit)]
    unit: Option<String>,
    /// Coordinate reference system: a code such as EPSG:25832, a name, WKT, PROJJSON, or @FILE.
    ///
    /// By default that of the file, if it has one: .las, .laz, and the .npz, .csv, .arrow and
    /// .parquet files of zvf.
    #[arg(long, value_name = "CRS", help_heading = "Space", value_parser = crs::parse)]
    crs: Option<Value>,
    /// NIfTI image of streamlines, in whose voxel grid .trk and .trx files of the store are written; by
    /// default that of the file, if it has one.
    #[arg(long, value_name = "IMAGE", help_heading = "Space")]
    reference: Option<PathBuf>,
    /// Name of the collection.
    #[arg(long, help_heading = "Space")]
    name: Option<String>,

    /// Unit of an attribute, such as radius=micrometer or object.length=mm; may be repeated.
    #[arg(long, value_name = "NAME=UNIT", help_heading = "Attributes",
        value_parser = declarations::parse)]
    attribute_unit: Vec<Declaration>,
    /// Description of an attribute, such as 'fa=fractional anisotropy'; may be repeated.
    #[arg(long, value_name = "NAME=TEXT", help_heading = "Attributes",
        value_parser = declarations::parse)]
    describe: Vec<Declaration>,

    /// Keep the order of the two ends of each link, as skeletons always do.
    #[arg(long, help_heading = "Links")]
    directed: bool,
    /// Order of the corners of the faces of a mesh, seen from outside: ccw, or cw.
    ///
    /// Faces are stored as they are in the file. Pictures, viewers, and files such as .stl, .ply and .glb
    /// get them counter-clockwise. By default that of the file, if it states one: .npz, .csv, .arrow and
    /// .parquet files of zvf; otherwise ccw.
    #[arg(long, value_name = "ORDER", help_heading = "Links",
        value_parser = named(WindingOrder::ALL, WindingOrder::as_str))]
    winding: Option<WindingOrder>,
    /// Store a copy of each link in every chunk that it touches.
    #[arg(long, help_heading = "Links")]
    duplicate: bool,
    /// Store steps of paths as links as well: those between chunks, or all in the order of the path.
    ///
    /// Manifests already contain them. The Python package zarr-vectors writes those between chunks,
    /// which generations before 0.9 always have.
    #[arg(long, value_name = "STEPS", num_args = 0..=1, require_equals = true,
        default_missing_value = "between", help_heading = "Links",
        value_parser = named([StepLinks::Between, StepLinks::All], step_links_name))]
    step_links: Option<StepLinks>,
    /// Store each attribute of links between chunks as one array with a row for each link, under a
    /// profile before 0.9, instead of a cell for each cell of links.
    #[arg(long, help_heading = "Links")]
    flat_link_attributes: bool,
    /// Store the object of each fragment as the fragment attribute `object_id`, which edits, coarser
    /// levels and migrations keep.
    #[arg(long, help_heading = "Attributes")]
    fragment_owners: bool,

    /// Limit the memory for geometry, for example to 2GiB. Larger input is read in batches.
    ///
    /// Fails if more is needed and the format or kind of the input does not allow batches.
    #[arg(long, value_name = "SIZE", help_heading = "Execution", value_parser = values::size)]
    memory: Option<u64>,
    /// Number of threads; by default one per processor.
    #[arg(long, value_name = "N", help_heading = "Execution",
        value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Share the work among this many processes, as a cluster would.
    ///
    /// Supports points and paths in an uncompressed npz file, tractograms and point clouds.
    #[arg(long, value_name = "N", help_heading = "Execution", conflicts_with = "overwrite",
        value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Replace an existing store.
    #[arg(long, help_heading = "Execution")]
    overwrite: bool,
    /// Write very many small files without confirmation.
    #[arg(long, help_heading = "Execution")]
    yes: bool,
    /// Print one JSON object.
    #[arg(long, help_heading = "Execution")]
    json: bool,
    /// Show no progress, and print nothing but warnings and errors.
    #[arg(long, help_heading = "Execution")]
    pub(super) quiet: bool,
}

const PURPOSES: [(Purpose, &str); 3] = [
    (Purpose::Auto, "auto"),
    (Purpose::Lookup, "lookup"),
    (Purpose::Scan, "scan"),
];
/// Names of the forms of the object index.
const INDEX_FORMS: [(ManifestForm, &str); 2] = [
    (ManifestForm::Manifests, "manifests"),
    (ManifestForm::Dense, "dense"),
];
/// The help of `--compression`, after the words that it takes.
const COMPRESSED: &str = "auto takes less space than zstd and is faster: LZ4 over bit-shuffled \
numbers, and zstd for other data.\n\nParts of a cell can be read separately if it is not compressed, \
and by block with auto and blosc. If it is compressed or has a checksum, the store needs an inventory, \
which has checksums of parts.";

/// Data types of coordinates.
const DTYPES: [Kind; 11] = [
    Kind::Float16,
    Kind::Float32,
    Kind::Float64,
    Kind::Int8,
    Kind::Int16,
    Kind::Int32,
    Kind::Int64,
    Kind::UInt8,
    Kind::UInt16,
    Kind::UInt32,
    Kind::UInt64,
];

fn index_form_name(form: ManifestForm) -> &'static str {
    name_of(&INDEX_FORMS, form)
}

fn step_links_name(steps: StepLinks) -> &'static str {
    steps.word().unwrap_or("none")
}

fn purpose_name(purpose: Purpose) -> &'static str {
    name_of(&PURPOSES, purpose)
}

/// Arguments that form no design.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateUsageError {
    /// The kind is neither given nor in the file.
    #[error(
        "this {0} file does not say what its vertices form; name the kind of geometry, as in --kind points"
    )]
    Kind(FileFormat),
    /// An image for geometry that is no tractogram.
    #[error("--reference is the image of streamlines; leave it out for {}", .0.name())]
    Reference(GeometryKind),
    /// Further files are given for a format without any.
    #[error(
        "--with does not apply to {0} files, only to .tck, .swc, .gii, .edgelist and FreeSurfer surfaces; \
         to join several files, create a store from the first and add the others with zvf append"
    )]
    With(FileFormat),
    /// An option that is for other formats.
    #[error("{option} does not apply to {format} files; leave it out")]
    Field {
        /// The option.
        option: &'static str,
        /// The format.
        format: FileFormat,
    },
    /// An option that is for tables only.
    #[error("{option} applies to tables and npz files only; leave it out for {format} files")]
    Table {
        /// The option.
        option: &'static str,
        /// The format.
        format: FileFormat,
    },
    /// A declaration of no attribute, or of several.
    #[error(transparent)]
    Attribute(#[from] DeclarationError),
    /// An option that a plan of tasks does not have.
    #[error(
        "a plan of tasks supports neither --overwrite nor --workers; delete the old store first, and let \
         a scheduler run the tasks"
    )]
    Planned,
    /// Options with different numbers of axes.
    #[error("{one} has {of_one} axes and {other} has {of_other}; give a value for each axis")]
    Axes {
        /// One option.
        one: &'static str,
        /// Its axes.
        of_one: usize,
        /// Another option.
        other: &'static str,
        /// Its axes.
        of_other: usize,
    },
    /// Axes that have the names of the file's axes in another order.
    #[error(transparent)]
    AxisOrder(#[from] AxisOrderError),
    /// Axes in another unit than the file.
    #[error(transparent)]
    AxisUnit(#[from] AxisUnitError),
}

/// Returns the kind of the geometry of a table: the given one, or the one that the file states.
pub(crate) fn table_kind(
    given: Option<GeometryKind>,
    file: &InputFile,
) -> Result<GeometryKind, Box<dyn Error>> {
    let kind = match given {
        Some(_) => given,
        None => stated_kind(file)?,
    };
    Ok(kind.ok_or(CreateUsageError::Kind(file.format()))?)
}

impl CreateArgs {
    /// Returns the limit of the memory, if one is given.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Completes the declarations of attributes in a design, and drops those of other attributes.
    ///
    /// # Errors
    ///
    /// Returns [`CreateUsageError::Attribute`] if an option names no attribute or several.
    pub(super) fn declare(
        &self,
        design: &mut Design,
        names: &AttributeNames,
    ) -> Result<(), CreateUsageError> {
        names.retain(design);
        names.declare(design, "unit", &self.attribute_unit)?;
        names.declare(design, "description", &self.describe)?;
        Ok(())
    }

    /// Returns the kind of the geometry of a table.
    ///
    /// # Errors
    ///
    /// Returns [`CreateUsageError::Kind`] if `--kind` is absent and the file does not state a kind.
    pub(super) fn table_kind(&self) -> Result<GeometryKind, Box<dyn Error>> {
        let file = &self.input.from;
        if !self.with.is_empty() {
            return Err(CreateUsageError::With(file.format()).into());
        }
        table_kind(self.kind, file)
    }

    /// Builds the design of the store.
    ///
    /// # Errors
    ///
    /// Returns [`CreateUsageError`] if options contradict each other.
    pub fn design(&self, kind: GeometryKind) -> Result<Design, CreateUsageError> {
        self.check_axes()?;
        let mut design = Design::new(kind);
        design.profile = self.profile;
        design.chunk_shape = self.chunk_shape.clone().map(|shape| shape.0);
        design.bin_shape = self.bin_shape.clone().map(|shape| shape.0);
        design.dtype = self.dtype;
        design.compression = self.compression;
        design.table_compression = self.table_compression;
        if self.no_checksum {
            design.checksums = CellChecksums::Off;
        }
        design.draco = self.encoding.0;
        design.object_index = self.object_index;
        design.sharding = match &self.shard {
            Some(policy) => policy.clone(),
            None if !self.profile.is_current() => ShardingPolicy::None,
            None => ShardingPolicy::for_address(&self.out),
        };
        design.directed = self.directed;
        design.winding = self.winding;
        design.duplicate = self.duplicate;
        design.step_links = self.step_links.unwrap_or_default();
        design.flat_link_attributes = self.flat_link_attributes;
        design.fragment_owners = self.fragment_owners;
        let bounds = self.bounds.clone();
        design.bounds = bounds.map(|bounds| (bounds.lower, bounds.upper));
        design.out_of_bounds = self.input.options.out_of_bounds;
        design.purpose = self.purpose;
        design.axes = self.axes.clone().map(|axes| axes.0);
        design.crs = self.crs.clone().map(Into::into);
        design.name.clone_from(&self.name);
        Ok(design)
    }

    /// Returns the options for reading the file.
    pub fn reading(&self, kind: GeometryKind) -> GeometryReadOptions {
        let mut options = self.input.options.reading(kind, self.axis_names());
        options.memory = self.memory;
        options
    }

    /// Returns the options for reading a file of `zvf-files`.
    pub(super) fn field_reading(&self) -> FileReadOptions {
        let mut options = self.input.options.field_reading();
        options.kind = self.kind;
        options.with.clone_from(&self.with);
        options.axes = self.axis_names().unwrap_or_default();
        options.ids.clone_from(&self.ids);
        options.keep_order = self.keep_order;
        options.in_memory = self.whole_size();
        options
    }

    /// Returns whether cells are dense arrays of one size.
    pub(super) fn is_padded(&self) -> bool {
        self.profile == Profile::Padded
    }

    /// Returns the size in bytes up to which geometry is read as a whole.
    pub(super) fn whole_size(&self) -> u64 {
        self.memory.unwrap_or(MEMORY) / COPIES
    }

    /// Returns the name of an option that is given and applies to files of `zvf-files` only.
    pub(super) fn field_option(&self) -> Option<&'static str> {
        let ids = self.ids.is_some().then_some("--ids");
        ids.or(self.keep_order.then_some("--keep-order"))
    }

    /// Compares the axes of the command line with those of the file, as [`file_axes::compare`]
    /// does, completes the units of those of the design, and sets the voxel grid.
    pub(super) fn settle_axes(
        &self,
        design: &mut Design,
        names: Option<&[String]>,
        own: &[AxisSpec],
    ) -> Result<(), Box<dyn Error>> {
        let given = self.axes.as_ref().map(|axes| axes.0.as_slice());
        file_axes::compare(given, names, own)?;
        let (format, unit) = (self.input.from.format(), self.unit.as_deref());
        settle_units(design, names, own, Some(format), unit)?;
        if let Some(image) = &self.reference {
            if !design.kind.is_paths() {
                return Err(CreateUsageError::Reference(design.kind).into());
            }
            let mut headers = design.headers.as_ref().clone();
            replace_grid(&mut headers, &reference_grid(image)?);
            design.headers = headers.into();
        }
        Ok(())
    }

    /// Returns the names of the axes, if they are given.
    pub(super) fn axis_names(&self) -> Option<Vec<String>> {
        let axes = self.axes.as_ref()?.0.iter();
        Some(axes.map(|axis| axis.name.clone()).collect())
    }

    /// Returns the settings for writing the store.
    pub fn options(&self) -> CreateSettings {
        CreateSettings {
            memory: self.memory,
            threads: self.threads.map(usize::from),
            workers: self.workers.map(usize::from),
            overwrite: self.overwrite,
            no_node_copy: self.no_node_copy,
            no_seal: self.no_seal,
        }
    }

    /// Returns the settings for checking the plan.
    pub(super) fn plan_check(&self) -> PlanCheckOptions {
        PlanCheckOptions {
            yes: self.yes,
            quiet: self.quiet || self.json,
        }
    }

    /// Formats the result.
    pub(super) fn done(&self, report: &CreateOutput) -> Result<CommandOutcome, serde_json::Error> {
        let mut done = CommandOutcome::default();
        done.warnings.extend_from_slice(report.warnings());
        if self.json {
            done.text = serde_json::to_string_pretty(&report.object())?;
        } else if self.quiet {
            done.warnings.extend_from_slice(report.notes());
        } else {
            done.text = report.text();
            let is_whole = self.shard.is_none();
            done.hints.extend(report.of_files().filter(|_| is_whole));
        }
        Ok(done)
    }

    /// Checks that options agree on the number of axes, before the file is read.
    fn check_axes(&self) -> Result<(), CreateUsageError> {
        let shard = match &self.shard {
            Some(ShardingPolicy::Shape(chunks)) => Some(chunks.len()),
            _ => None,
        };
        let options = [
            (
                "--axes",
                self.axes
                    .as_ref()
                    .map(|axes| axes.0.len())
                    .filter(|axes| *axes > 0),
            ),
            (
                "--chunk-shape",
                self.chunk_shape.as_ref().map(|shape| shape.0.len()),
            ),
            (
                "--bin-shape",
                self.bin_shape.as_ref().map(|shape| shape.0.len()),
            ),
            (
                "--bounds",
                self.bounds.as_ref().map(|bounds| bounds.lower.len()),
            ),
            ("--shard", shard),
        ];
        let mut given = options
            .into_iter()
            .filter_map(|(option, axes)| Some((option, axes?)));
        let Some((one, of_one)) = given.next() else {
            return Ok(());
        };
        match given.find(|(_, axes)| *axes != of_one) {
            None => Ok(()),
            Some((other, of_other)) => Err(CreateUsageError::Axes {
                one,
                of_one,
                other,
                of_other,
            }),
        }
    }
}
