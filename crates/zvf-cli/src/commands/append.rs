//! `zvf append`: adds the geometry of a file to a store.

use std::error::Error;

use zvf_files::{InputFile, RowIdPolicy};

use crate::{
    editing::{AdditionArgs, EditOutput, EditTargetArgs},
    hint::Operation,
    outcome::CommandOutcome,
};

/// Add the geometry of a file to a store
#[derive(Debug, clap::Args)]
#[command(after_help = "Objects without ids get new ones above the existing ids.
If the file has ids of objects, its groups may also list stored objects.

Examples:
  zvf append tracts.zv --from more.csv
  zvf append tracts.zv --from more.csv --out-of-bounds expand")]
pub(crate) struct AppendArgs {
    #[command(flatten)]
    work: EditTargetArgs,
    /// File of geometry: .npz, .csv, .parquet, .arrow, .trk, .tck, .trx, .swc, .ply, .obj, .stl, .las,
    /// .laz, .gii, .pial, .graphml or .geoparquet, or a folder of .swc files, of a geff graph or of
    /// precomputed data.
    #[arg(long, value_name = "FILE", value_parser = InputFile::parse)]
    from: InputFile,
    #[command(flatten)]
    addition: AdditionArgs,
}

/// Reads the file and appends its geometry.
pub(crate) async fn run(arguments: &AppendArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let AppendArgs {
        work,
        from,
        addition,
    } = arguments;
    let mut opened = work.open(Operation::Append).await?;
    opened.editor = opened.editor.check(addition.check());
    let mut input = addition
        .read(from, work, &opened, RowIdPolicy::LeaveOut)
        .await?;
    let geometry = std::mem::take(&mut input.geometry);
    let added = async {
        let (geometry, bounds) = (geometry.build()?, addition.options.out_of_bounds);
        opened.editor.append(&geometry, bounds).await
    };
    let changed = opened.change(added).await?;
    let ids = changed.objects.clone();
    let report = EditOutput::new(&work.store, Ok(changed))
        .objects(ids)
        .read(&input)
        .noted(opened.notes());
    Ok(work.done(&report)?)
}
