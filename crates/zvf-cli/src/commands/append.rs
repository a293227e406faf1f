//! `zvf append`: adds the geometry of a file or of another store to a store.

use std::{error::Error, path::Path};

use zvf::{Dataset, GeometryKind, OpenOptions, Query};
use zvf_files::{GeometryInput, InputFile, InputFileError, RowIdPolicy};

use crate::{
    commands::query::ResultDescription,
    display::{dropped_note, len_u64},
    editing::{AdditionArgs, EditOutput, EditTargetArgs},
    hint::Operation,
    outcome::CommandOutcome,
};

/// Add the geometry of a file or of another store to a store
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Objects without ids get new ones above the existing ids. Groups with a name join those of this name.
If the file has ids of objects, its groups may also list stored objects.

Examples:
  zvf append tracts.zv --from right.zv --ids new
  zvf append tracts.zv --from more.csv --out-of-bounds expand"
)]
pub(crate) struct AppendArgs {
    #[command(flatten)]
    work: EditTargetArgs,
    /// Another store of the same kind, or a file of geometry: .npz, .csv, .parquet, .arrow, .trk, .tck,
    /// .trx, .swc, .ply, .obj, .stl, .glb, .las, .laz, .gii, .pial, .graphml or .geoparquet, or a
    /// folder of .swc files, of meshes, of a geff graph or of precomputed data.
    #[arg(long, value_name = "FILE", value_parser = AdditionSource::parse)]
    from: AdditionSource,
    #[command(flatten)]
    addition: AdditionArgs,
}

/// The geometry to add.
#[derive(Clone, Debug)]
enum AdditionSource {
    /// A file.
    File(InputFile),
    /// The address of a store.
    Store(String),
}

impl AdditionSource {
    /// Parses the path of a file, or the address of a store.
    fn parse(text: &str) -> Result<Self, InputFileError> {
        match InputFile::parse(text) {
            Ok(file) => Ok(Self::File(file)),
            Err(_) if text.contains("://") || Path::new(text).join("zarr.json").is_file() => {
                Ok(Self::Store(text.to_owned()))
            }
            Err(error) => Err(error),
        }
    }
}

/// A store that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} holds {}, and the store {}", .other.plural(), .kind.plural())]
struct OtherKindError {
    address: String,
    other: GeometryKind,
    kind: GeometryKind,
}

/// Reads the geometry and appends it.
pub(crate) async fn run(arguments: &AppendArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let AppendArgs {
        work,
        from,
        addition,
    } = arguments;
    let mut opened = work.open(Operation::Append).await?;
    let mut input = match from {
        AdditionSource::File(file) => {
            let reading = addition.read(file, work, &opened, RowIdPolicy::LeaveOut);
            reading.await?
        }
        AdditionSource::Store(address) => {
            let mut input = whole_store(address, opened.kind()?).await?;
            addition.fit(&opened, None, &mut input)?;
            input
        }
    };
    let editor = opened.editor.check(addition.check());
    opened.editor = editor.renumber(addition.renumbers(&input));
    let geometry = std::mem::take(&mut input.geometry);
    let vertices = len_u64(geometry.vertices());
    let added = async {
        let (geometry, bounds) = (geometry.build()?, addition.options.out_of_bounds);
        opened.editor.append(&geometry, bounds).await
    };
    let changed = opened.change(added).await?;
    let mut notes = opened.notes();
    notes.extend(dropped_note(vertices, changed.added));
    let ids = changed.objects.clone();
    let report = EditOutput::new(&work.store, Ok(changed))
        .objects(ids)
        .read(&input)
        .noted(notes);
    Ok(work.done(&report)?)
}

/// Reads level 0 of a store with everything that a file of it would hold.
async fn whole_store(address: &str, kind: GeometryKind) -> Result<GeometryInput, Box<dyn Error>> {
    let options = OpenOptions::default().cache(0);
    let dataset = Dataset::open_with(address, &options).await?;
    if let Some(other) = dataset.root().first_kind().filter(|other| *other != kind) {
        let address = address.to_owned();
        return Err(OtherKindError {
            address,
            other,
            kind,
        }
        .into());
    }
    let query = Query::new();
    let mut result = dataset.query(&query).await?;
    let described = ResultDescription::read(&dataset, &query, &mut result).await?;
    let mut input = GeometryInput::of_result(kind, result, described.description)?;
    input.notes.extend(described.notes);
    let left_out = described.left_out.iter();
    input
        .notes
        .extend(left_out.map(|line| format!("left out: {line}")));
    Ok(input)
}
