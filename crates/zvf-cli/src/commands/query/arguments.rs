//! What `zvf query` takes.

use serde_json::{Value, json};
use zvf::{
    model::level::LevelId,
    query::{
        Budget, Clip, LevelChoice, Query, Selection,
        geometry::{Mode, Position},
    },
};

use super::{QueryOutput, columns};
use crate::{
    arguments::{QueryUsageError, SelectionArgs, values},
    formats::OutputFile,
    outcome::CommandOutcome,
};

/// Finds vertices, paths, links and objects by place, object, group and attribute
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is found is shown as a table, or written to a file with -o.

Examples:
  zvf query tracts.zv --bbox 0,0,0,10,10,10
  zvf query tracts.zv --where \"vertex.fa > 0.3\" --mode clip --bbox 0,0,0,10,10,10 -o near.csv
  zvf query tracts.zv --object 17,4 --select fa,object.length
  zvf query tracts.zv --nearest 1,2,3 --k 5
  zvf query tracts.zv --budget 1000 --count
  zvf query tracts.zv --sphere 0,8,10,5 --explain"
)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub struct QueryArgs {
    /// A folder, a .zip file, or an address of a kind this build knows.
    pub(super) store: String,

    /// The level of this number; 0, the finest, unless said otherwise.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "Level")]
    level: Option<u32>,
    /// The coarsest level whose bins are at most so many times those of level 0.
    #[arg(long, value_name = "S", group = "of_level", help_heading = "Level", value_parser = values::scale)]
    scale: Option<f64>,
    /// The finest level of at most so many vertices.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "Level")]
    vertices: Option<u64>,
    /// As fine as so many vertices of what is found can be: a level, and where there is
    /// room for it the next finer.
    #[arg(long, value_name = "N", group = "of_level", help_heading = "Level",
        conflicts_with_all = ["nearest", "drill", "geometry", "chunks"])]
    budget: Option<u64>,
    /// Where a budget has to be finest.
    #[arg(long, value_name = "x,y,z", help_heading = "Level", requires = "budget",
        value_parser = values::position, allow_hyphen_values = true)]
    focus: Option<Position>,
    /// Instead of what is found, what it is linked to so many levels on:
    /// up to the coarser for positive numbers.
    #[arg(
        long,
        value_name = "±N",
        help_heading = "Level",
        allow_negative_numbers = true
    )]
    drill: Option<i32>,
    /// A further geometry of a composite store.
    #[arg(long, value_name = "NAME", help_heading = "Level")]
    pub(super) geometry: Option<String>,

    #[command(flatten)]
    pub(super) selecting: SelectionArgs,
    /// With --mode clip: drops segments and faces that cross the border, rather
    /// than cutting them.
    #[arg(long, help_heading = "Place")]
    drop_cut: bool,

    /// The value of the attribute that the level is chunked by.
    #[arg(
        long,
        value_name = "VALUE",
        help_heading = "What",
        allow_hyphen_values = true
    )]
    chunked_by: Option<String>,
    /// The attributes to read, as radius,object.length; none when empty, all
    /// without.
    #[arg(long, value_name = "a,b", help_heading = "What", value_parser = columns::parse)]
    select: Option<Selection>,
    /// Leaves out which object a vertex belongs to, which can take much reading.
    #[arg(long, help_heading = "What")]
    no_objects: bool,
    /// The first so many vertices, paths or links.
    #[arg(long, value_name = "N", help_heading = "What")]
    limit: Option<u64>,

    /// Prints how much there is, and no rows.
    #[arg(long, help_heading = "Result", conflicts_with_all = ["explain", "output"])]
    pub(super) count: bool,
    /// Prints what would be read, and reads nothing of it.
    #[arg(long, help_heading = "Result", conflicts_with = "output")]
    pub(super) explain: bool,
    /// Runs the query and prints its operators with what each of them read.
    #[arg(long, help_heading = "Result", conflicts_with_all = ["explain", "count", "output", "fail_empty"])]
    pub(super) analyze: bool,
    /// Writes all rows to a file that ends in .csv, .npz, .arrow, .parquet, .ply
    /// or .obj.
    #[arg(short, long, value_name = "FILE", help_heading = "Result", value_parser = OutputFile::parse)]
    pub(super) output: Option<OutputFile>,
    /// Leaves out what is damaged and lists it, rather than to fail.
    #[arg(long, help_heading = "Result")]
    keep_going: bool,
    /// Exits with 1 when nothing is found.
    #[arg(long, help_heading = "Result", conflicts_with = "explain")]
    fail_empty: bool,
    /// Prints one JSON object, with counts and without rows.
    #[arg(long, help_heading = "Result")]
    pub(super) json: bool,
    /// Shows no progress; with -o, prints nothing but what is wrong.
    #[arg(long, help_heading = "Result")]
    pub(super) quiet: bool,
    /// Sign no request: for public buckets.
    #[arg(long)]
    pub(super) anonymous: bool,
    /// Reads every node of a store over the network, not their copy in the root: for
    /// stores that another program changed.
    #[arg(long)]
    pub(super) no_node_copy: bool,
}

impl QueryArgs {
    /// The query they ask.
    ///
    /// # Errors
    ///
    /// [`QueryUsageError`] when options do not go together.
    pub fn query(&self) -> Result<Query, QueryUsageError> {
        let mut query = Query::new();
        query.level = match (self.scale, self.vertices, self.budget) {
            (Some(scale), ..) => LevelChoice::Scale(scale),
            (_, Some(vertices), _) => LevelChoice::Vertices(vertices),
            (.., Some(vertices)) => LevelChoice::Budget(Budget {
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
        query.chunked_by = self.chunked_by.as_deref().map(values::chunked_by);
        query.columns = self.select.clone().unwrap_or_default();
        query.owners = !self.no_objects;
        query.limit = self.limit;
        query.drill = self.drill;
        query.geometry.clone_from(&self.geometry);
        query.keep_going = self.keep_going;
        Ok(query)
    }

    /// Whether what is in space has the axes of the store.
    ///
    /// # Errors
    ///
    /// [`QueryUsageError::Axes`] when it has others.
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

    /// A plan as it is to be printed.
    pub(super) fn plan(&self, (text, json): (String, Value)) -> Result<String, serde_json::Error> {
        if self.json {
            return serde_json::to_string_pretty(&json!({ "plan": json }));
        }
        Ok(text)
    }

    /// What is to be printed, and how to exit; `outside` is why a box has nothing in it.
    pub(super) fn done(
        &self,
        report: &QueryOutput,
        outside: Option<String>,
    ) -> Result<CommandOutcome, serde_json::Error> {
        let mut warnings = Vec::new();
        if !self.quiet && self.selecting.is_in_empty_box() {
            let why = "a lower bound of --bbox is above the upper one: nothing can be in it";
            warnings.push(why.to_owned());
        } else if !self.quiet && !self.json && report.is_empty() {
            warnings.extend(outside);
        }
        let is_silent = self.quiet && self.output.is_some();
        let text = if self.json {
            serde_json::to_string_pretty(&report.object())?
        } else if is_silent {
            // What is lost is said all the same.
            warnings.extend(report.losses());
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
