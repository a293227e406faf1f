//! What `zvf create` takes.

use serde_json::Value;
use zvf::{
    build::{CellCompression, Design, GeometryKind, Profile, Purpose, ShardingPolicy},
    format::numeric::Kind,
};

use super::{CreateOutput, CreateSettings};
use crate::{
    arguments::{
        GeometryFileArgs, name_of, named,
        values::{self, Axes, Bounds, Extents},
    },
    formats::GeometryReadOptions,
    outcome::CommandOutcome,
};

/// Writes a store of the geometry in a file
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The file is one that `zvf query -o` wrote, or a table with a row a vertex.

Examples:
  zvf create cells.zv --kind points --from cells.csv --axes x:micrometer,y:micrometer,z:micrometer
  zvf create wires.zv --kind graphs --from nodes.csv --links edges.csv --chunk-shape 50,50,50 --shard
  zvf create fibres.zv --kind streamlines --from tracts.csv --compression zstd"
)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub struct CreateArgs {
    /// Where the store is to be: a folder, or an address of a kind this build knows.
    pub(super) out: String,

    /// What the geometry is.
    #[arg(long, value_parser = named(GeometryKind::ALL, GeometryKind::name))]
    kind: GeometryKind,
    #[command(flatten)]
    pub(super) input: GeometryFileArgs,

    /// The generation and form of the store.
    #[arg(long, help_heading = "Store", default_value = Profile::default().name(),
        value_parser = named(Profile::ALL, Profile::name))]
    profile: Profile,
    /// Extent of a chunk along each axis; chosen when not said.
    #[arg(long, value_name = "a,b,c", help_heading = "Store", value_parser = values::extents)]
    chunk_shape: Option<Extents>,
    /// Extent of a bin along each axis: how points without objects are sorted inside
    /// a chunk.
    #[arg(long, value_name = "a,b,c", help_heading = "Store", value_parser = values::extents)]
    bin_shape: Option<Extents>,
    /// What coordinates are stored as; as they come when not said.
    #[arg(long, help_heading = "Store", value_parser = named(DTYPES, Kind::name))]
    dtype: Option<Kind>,
    /// How cells are compressed: none, zstd, zstd:LEVEL, blosc, gzip or gzip:LEVEL.
    /// Parts of cells can be read alone where they have no checksums either.
    #[arg(long, value_name = "CODEC", help_heading = "Store", default_value = "none",
        value_parser = values::compression)]
    compression: CellCompression,
    /// Puts many chunks in one object: so many along each axis, as --shard=4,4,4, or
    /// as many as make some 16 MB.
    #[arg(long, value_name = "auto|a,b,c", help_heading = "Store", num_args = 0..=1,
        require_equals = true, default_missing_value = "auto",
        value_parser = values::sharding)]
    shard: Option<ShardingPolicy>,
    /// What the store is read for, which decides how large chunks are.
    #[arg(long, help_heading = "Store", default_value = "auto",
        value_parser = named(PURPOSES.map(|(purpose, _)| purpose), purpose_name))]
    purpose: Purpose,
    /// Leaves out checksums of cells.
    #[arg(long, help_heading = "Store")]
    no_checksum: bool,
    /// Leaves the copy of the nodes out of the root, which saves requests where the
    /// store is read over the network.
    #[arg(long, help_heading = "Store")]
    no_node_copy: bool,

    /// The least of each axis, then the greatest; those of the vertices when not
    /// said.
    #[arg(long, value_name = "x0,y0,z0,x1,y1,z1", help_heading = "Space",
        value_parser = values::bounds, allow_hyphen_values = true)]
    bounds: Option<Bounds>,
    /// The axes, in order, with a unit and a type where they have one; in a table, the
    /// columns of these names.
    #[arg(long, value_name = "x:micrometer,y,t:second:time", help_heading = "Space",
        value_parser = values::axes)]
    axes: Option<Axes>,
    /// The coordinate reference system: JSON, a name, or @FILE with JSON.
    #[arg(long, value_name = "JSON", help_heading = "Space", value_parser = values::crs)]
    crs: Option<Value>,
    /// What the collection is called.
    #[arg(long, help_heading = "Space")]
    name: Option<String>,

    /// The order of a link's ends is data: none is swapped.
    #[arg(long, help_heading = "Links")]
    directed: bool,
    /// Every chunk that a link touches gets a copy of it.
    #[arg(long, help_heading = "Links")]
    duplicate: bool,
    /// Steps of paths from chunk to chunk are stored as links too, as zarr-vectors does and
    /// generations before 0.9 always do. Objects say them already.
    #[arg(long, help_heading = "Links")]
    step_links: bool,

    /// Refuses geometry that takes more memory than this, as 2GiB.
    #[arg(long, value_name = "SIZE", help_heading = "Work", value_parser = values::size)]
    memory: Option<u64>,
    /// How many threads work; as many as there are processors when not said.
    #[arg(long, value_name = "N", help_heading = "Work",
        value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Shares the work among so many processes, as a cluster would: points and paths
    /// in an npz file that is not packed.
    #[arg(long, value_name = "N", help_heading = "Work", conflicts_with = "overwrite",
        value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Replaces a store that is there.
    #[arg(long, help_heading = "Work")]
    overwrite: bool,
    /// Prints one JSON object.
    #[arg(long, help_heading = "Work")]
    json: bool,
    /// Shows no progress, and prints nothing but what is wrong.
    #[arg(long, help_heading = "Work")]
    pub(super) quiet: bool,
}

const PURPOSES: [(Purpose, &str); 3] = [
    (Purpose::Auto, "auto"),
    (Purpose::Lookup, "lookup"),
    (Purpose::Scan, "scan"),
];
/// What coordinates can be.
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

fn purpose_name(purpose: Purpose) -> &'static str {
    name_of(&PURPOSES, purpose)
}

/// Why arguments make no design.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateUsageError {
    /// Options with different numbers of axes.
    #[error("{one} has {of_one} axes and {other} has {of_other}; give a value for each axis")]
    Axes {
        /// An option.
        one: &'static str,
        /// Its axes.
        of_one: usize,
        /// Another.
        other: &'static str,
        /// Its axes.
        of_other: usize,
    },
}

impl CreateArgs {
    /// How the store is to be made.
    ///
    /// # Errors
    ///
    /// [`CreateUsageError`] when options do not go together.
    pub fn design(&self) -> Result<Design, CreateUsageError> {
        self.check_axes()?;
        let mut design = Design::new(self.kind);
        design.profile = self.profile;
        design.chunk_shape = self.chunk_shape.clone().map(|shape| shape.0);
        design.bin_shape = self.bin_shape.clone().map(|shape| shape.0);
        design.dtype = self.dtype;
        design.compression = self.compression;
        design.checksum = self.no_checksum.then_some(false);
        design.sharding = self.shard.clone().unwrap_or_default();
        design.directed = self.directed;
        design.duplicate = self.duplicate;
        design.step_links = self.step_links;
        let bounds = self.bounds.clone();
        design.bounds = bounds.map(|bounds| (bounds.lower, bounds.upper));
        design.out_of_bounds = self.input.out_of_bounds;
        design.purpose = self.purpose;
        design.axes = self.axes.clone().map(|axes| axes.0);
        design.crs.clone_from(&self.crs);
        design.name.clone_from(&self.name);
        Ok(design)
    }

    /// How the file is to be read.
    pub fn reading(&self) -> GeometryReadOptions {
        let axes = self.axes.as_ref();
        let axes = axes.map(|axes| axes.0.iter().map(|axis| axis.name.clone()).collect());
        self.input.reading(self.kind, axes)
    }

    /// How it is written.
    pub fn options(&self) -> CreateSettings {
        CreateSettings {
            memory: self.memory,
            threads: self.threads.map(usize::from),
            workers: self.workers.map(usize::from),
            overwrite: self.overwrite,
            no_node_copy: self.no_node_copy,
        }
    }

    /// What is to be printed.
    pub(super) fn done(&self, report: &CreateOutput) -> Result<CommandOutcome, serde_json::Error> {
        let mut done = CommandOutcome::default();
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

    /// Before a file is read for nothing.
    fn check_axes(&self) -> Result<(), CreateUsageError> {
        let shard = match &self.shard {
            Some(ShardingPolicy::Shape(chunks)) => Some(chunks.len()),
            _ => None,
        };
        let options = [
            ("--axes", self.axes.as_ref().map(|axes| axes.0.len())),
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
