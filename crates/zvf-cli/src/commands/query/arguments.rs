//! Arguments of `zvf query`.

use std::path::PathBuf;

use serde_json::{Value, json};
use zvf::{Clip, LevelChoice, LevelId, Mode, Position, Query, Selection, VertexBudget};
use zvf_files::{LengthUnit, OutputFile};

use super::{QueryOutput, columns};
use crate::{
    arguments::{QueryUsageError, SelectionArgs, values},
    outcome::CommandOutcome,
};

/// Query vertices, paths, links and objects by region, object, group and attribute
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints the first rows as a table; -o writes all rows to a file and replaces an existing one.

Examples:
  zvf query tracts.zv --bbox 0,0,0,10,10,10
  zvf query tracts.zv --where \"vertex.fa > 0.3\" --mode clip --bbox 0,0,0,10,10,10 -o near.csv
  zvf query tracts.zv --object 17,4 --select fa,object.length
  zvf query tracts.zv --nearest 1,2,3 --k 5
  zvf query tracts.zv --budget 1000 --count
  zvf query tracts.zv --sphere 0,8,10,5 --explain"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct QueryArgs {
    /// Store: a folder, a .zip file, or an address that this build supports.
    pub(super) store: String,

    /// Level number; the default is 0, the finest.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "Level")]
    level: Option<u32>,
    /// Read the coarsest level whose bins are at most this many times as large as those of level 0.
    #[arg(long, value_name = "FACTOR", group = "of_level", help_heading = "Level", value_parser = values::scale)]
    scale: Option<f64>,
    /// Read the finest level that stores at most this many vertices, or else the coarsest.
    ///
    /// Several paths may share a vertex of a coarse level, which stores it once and which the result
    /// repeats for each; --budget limits the vertices of the result.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "Level",
        value_parser = values::count, allow_negative_numbers = true)]
    pub(super) vertices: Option<u64>,
    /// Return at most this many vertices, as fine as possible.
    ///
    /// Reads one level and, for points, the next finer one in the regions for which the budget
    /// suffices. Fails if the coarsest level has more.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "Level",
        value_parser = values::count, allow_negative_numbers = true,
        conflicts_with_all = ["nearest", "drill", "geometry", "chunks"])]
    budget: Option<u64>,
    /// Position around which a budget is spent first.
    #[arg(long, value_name = "X,Y,Z", help_heading = "Level", requires = "budget",
        value_parser = values::position, allow_hyphen_values = true)]
    focus: Option<Position>,
    /// Return what an additive level itself stores, without the levels that complete it.
    #[arg(long, help_heading = "Level")]
    own_level: bool,
    /// Return the vertices linked to the selected ones this many levels away.
    ///
    /// Positive numbers lead to coarser levels, negative numbers to finer ones.
    #[arg(
        long,
        value_name = "±N",
        help_heading = "Level",
        allow_negative_numbers = true
    )]
    drill: Option<i32>,
    /// Additional geometry of a composite store.
    #[arg(long, value_name = "NAME", help_heading = "Level")]
    pub(super) geometry: Option<String>,

    #[command(flatten)]
    pub(super) selecting: SelectionArgs,
    /// With --mode clip, drop segments and faces that cross the border instead of cutting them.
    #[arg(long, help_heading = "Region")]
    drop_cut: bool,

    /// Value of the attribute by which the level is chunked.
    #[arg(
        long,
        value_name = "VALUE",
        help_heading = "Selection",
        allow_hyphen_values = true
    )]
    chunked_by: Option<String>,
    /// Attributes to read, such as radius,object.length.
    ///
    /// The default is all; an empty value selects none.
    #[arg(long, value_name = "NAME,NAME", help_heading = "Selection", value_parser = columns::parse)]
    select: Option<Selection>,
    /// Omit the object of each vertex, which can be expensive to read.
    #[arg(long, help_heading = "Selection")]
    no_objects: bool,
    /// Return the address of each vertex as `row_id`, for zvf edit and zvf delete --rows.
    ///
    /// Only in .csv, .npz, .arrow and .parquet files. Addresses are of level 0 and of one transaction: each change of the store may give other
    /// vertices the same addresses.
    #[arg(long, help_heading = "Selection", conflicts_with_all = ["count", "of_level", "drill", "geometry"])]
    pub(super) row_ids: bool,
    /// Return at most this many vertices, paths or links.
    #[arg(long, value_name = "N", help_heading = "Selection",
        value_parser = values::count, allow_negative_numbers = true)]
    limit: Option<u64>,

    /// Print counts and no rows.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["explain", "output"])]
    pub(super) count: bool,
    /// Print the query plan without running it.
    #[arg(long, help_heading = "Output", conflicts_with = "output")]
    pub(super) explain: bool,
    /// Run the query, and print the requests, bytes and round trips of each operator.
    #[arg(long, help_heading = "Output", conflicts_with_all = ["explain", "count", "output", "fail_empty"])]
    pub(super) analyze: bool,
    /// Write all rows to a file: .csv, .npz, .arrow, .parquet, .ply, .obj, .trk, .tck, .trx, .swc,
    /// .stl, .las, .laz, .gii, .glb or .geoparquet.
    ///
    /// An existing file is replaced once the new one is complete, with the tables beside it. A file
    /// name with {object} or {name} writes one file for each object: 'neuron_{name}.ply'.
    #[arg(short, long, value_name = "FILE", help_heading = "Output", value_parser = OutputFile::parse)]
    pub(super) output: Option<OutputFile>,
    /// Unit in which coordinates are written, such as micrometer; by default that of the format, or else
    /// that of the store.
    #[arg(long, value_name = "UNIT", help_heading = "Output", requires = "output",
        value_parser = values::length_unit)]
    pub(super) unit: Option<LengthUnit>,
    /// NIfTI image in whose voxel grid a .trk or .trx file is written; by default that of the file that the
    /// store was made of.
    #[arg(
        long,
        value_name = "IMAGE",
        help_heading = "Output",
        requires = "output"
    )]
    pub(super) reference: Option<PathBuf>,
    /// Write no file if its format cannot hold everything.
    #[arg(long, help_heading = "Output", requires = "output")]
    pub(super) strict: bool,
    /// Skip damaged parts and list them instead of failing.
    #[arg(long, help_heading = "Output")]
    keep_going: bool,
    /// Exit with 1 if nothing is found.
    #[arg(long, help_heading = "Output", conflicts_with = "explain")]
    fail_empty: bool,
    /// Print one JSON object, with counts and without rows.
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Show no progress; with -o, print nothing but warnings and errors.
    #[arg(long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// Limit the memory for the result and the data that is read, for example to 2GiB; fail if they
    /// need more.
    ///
    /// The default is 1GiB. With -o, formats that are written in batches hold a part of the result.
    #[arg(long, value_name = "SIZE", help_heading = "Output", value_parser = values::size)]
    pub(crate) memory: Option<u64>,
    /// Send unsigned requests, for public buckets.
    #[arg(long, help_heading = "Access")]
    pub(super) anonymous: bool,
    /// Read every metadata node of a remote store instead of the copy in the root.
    ///
    /// Needed if another program changed the store without updating the copy.
    #[arg(long, help_heading = "Access")]
    pub(super) no_node_copy: bool,
    /// Do not check a sealed store against its inventory.
    ///
    /// Needed to read a store that another program changed after it was sealed.
    #[arg(long, help_heading = "Access")]
    pub(super) no_seal: bool,
}

impl QueryArgs {
    /// Builds the query.
    ///
    /// # Errors
    ///
    /// Returns [`QueryUsageError`] if options contradict each other.
    pub fn query(&self) -> Result<Query, QueryUsageError> {
        let mut query = Query::new();
        query.level = match (self.scale, self.vertices, self.budget) {
            (Some(scale), ..) => LevelChoice::Scale(scale),
            (_, Some(vertices), _) => LevelChoice::Vertices(vertices),
            (.., Some(vertices)) => LevelChoice::Budget(VertexBudget {
                vertices,
                focus: self.focus,
            }),
            (None, None, None) => LevelChoice::Number(LevelId::new(self.level.unwrap_or(0))),
        };
        self.selecting.select(&mut query)?;
        if self.drop_cut {
            if query.mode != Mode::Clip {
                return Err(QueryUsageError::DropCut);
            }
            query.clip = Clip::Drop;
        }
        query.chunked_by = self
            .chunked_by
            .as_deref()
            .map(values::chunked_by)
            .map(Into::into);
        query.columns = self.select.clone().unwrap_or_default();
        query.owners = !self.no_objects;
        query.row_ids = self.row_ids;
        query.limit = self.limit;
        query.own_level = self.own_level;
        query.drill = self.drill;
        query.geometry.clone_from(&self.geometry);
        query.keep_going = self.keep_going;
        Ok(query)
    }

    /// Checks that regions and positions have the axes of the store.
    ///
    /// # Errors
    ///
    /// Returns [`QueryUsageError::Axes`] if the number of axes differs.
    pub fn check_axes(&self, axes: &[&str]) -> Result<(), QueryUsageError> {
        if let Some(found) = self
            .focus
            .map(|place| place.len())
            .filter(|n| *n != axes.len())
        {
            return Err(QueryUsageError::Axes {
                option: "--focus",
                found,
                axes: axes.iter().map(|axis| (*axis).to_owned()).collect(),
            });
        }
        self.selecting.check_axes(axes)
    }

    /// Formats a plan.
    pub(super) fn plan(&self, (text, json): (String, Value)) -> Result<String, serde_json::Error> {
        if self.json {
            return serde_json::to_string_pretty(&json!({ "plan": json }));
        }
        Ok(text)
    }

    /// Formats the result. `why_empty` explains why nothing can be in a box.
    pub(super) fn done(
        &self,
        report: &QueryOutput,
        why_empty: Option<String>,
    ) -> Result<CommandOutcome, serde_json::Error> {
        let mut warnings = Vec::new();
        let is_told = self.selecting.is_in_empty_box() || !self.json && report.is_empty();
        warnings.extend(why_empty.filter(|_| is_told && !self.quiet));
        let is_silent = self.quiet && self.output.is_some();
        let text = if self.json {
            serde_json::to_string_pretty(&report.object())?
        } else if is_silent {
            // Losses are reported in spite of --quiet.
            warnings.extend(report.damage_lines());
            String::new()
        } else {
            report.text()
        };
        Ok(CommandOutcome {
            text,
            warnings,
            is_negative: self.fail_empty && report.is_empty(),
            ..CommandOutcome::default()
        })
    }
}
