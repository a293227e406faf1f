//! `zvf edit`: replaces objects of a store by those of a file.

use std::error::Error;

use zvf::Geometry;

use crate::{
    editing::{AdditionArgs, EditOutput, EditTargetArgs},
    hint::Operation,
    outcome::CommandOutcome,
};

/// Replace objects of a store by those of a file with equal ids
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Replaced objects stay in their groups and keep object attributes that the file lacks.

Examples:
  zvf query tracts.zv --object 7 -o seven.csv
  zvf edit tracts.zv --from seven.csv
  zvf edit tracts.zv --from seven.csv --remove 7,8"
)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    work: EditTargetArgs,
    #[command(flatten)]
    addition: AdditionArgs,
    /// Replace these objects instead; the file may have other ids.
    ///
    /// This splits, merges and renames objects. Objects with the ids of the file are then not
    /// replaced.
    #[arg(
        long,
        value_name = "ID",
        help_heading = "Selection",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    remove: Vec<i64>,
}

/// Reads the file and replaces objects.
pub(crate) async fn run(arguments: &EditArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let EditArgs {
        work,
        addition,
        remove,
    } = arguments;
    let is_exchange = !remove.is_empty();
    let verb = if is_exchange {
        Operation::ReplaceNamed
    } else {
        Operation::Edit
    };
    let opened = work.open(verb).await?;
    let input = addition.read(work, &opened).await?;
    let (geometry, bounds) = (&input.geometry, addition.input.out_of_bounds);
    let changed = if is_exchange {
        let change = opened.editor.replace_objects(remove, geometry, bounds);
        opened.change(change).await?
    } else {
        let change = opened.editor.replace(geometry, bounds);
        opened.change(change).await?
    };
    let ids = objects(geometry).chain(changed.objects.clone());
    let ids: Vec<i64> = ids.collect();
    let report = EditOutput::new(&work.store, Ok(changed));
    let report = report.objects(ids).read(&input).noted(opened.notes());
    Ok(work.done(&report)?)
}

/// Returns the ids of the objects of parts and vertices.
fn objects(geometry: &Geometry) -> impl Iterator<Item = i64> {
    let ids = [&geometry.part_objects, &geometry.object_ids];
    ids.into_iter().flatten().flatten().copied()
}
