//! `zvf edit`: objects in a file, in the place of those of a store.

use std::error::Error;

use zvf::build::Geometry;

use crate::{
    editing::{AdditionArgs, EditOutput, EditTargetArgs},
    hint::Operation,
    outcome::CommandOutcome,
};

/// Puts the objects in a file in the place of those of the same ids
#[derive(Debug, clap::Args)]
#[command(
    after_help = "They stay in their groups, and keep attributes of objects that the file does not give.

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
    /// The objects that go for those in the file, which may have other ids: so they
    /// are split, merged and renamed. No others go then.
    #[arg(
        long,
        value_name = "ID",
        help_heading = "What",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    remove: Vec<i64>,
}

/// Reads a file, and puts what is in it in the place of what is there.
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

/// The objects that parts and vertices are of.
fn objects(geometry: &Geometry) -> impl Iterator<Item = i64> {
    let ids = [&geometry.part_objects, &geometry.object_ids];
    ids.into_iter().flatten().flatten().copied()
}
