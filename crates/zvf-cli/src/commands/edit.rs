//! `zvf edit`: replaces objects or points of a store by those of a file, or writes attributes of a
//! table.

use std::error::Error;

use zvf::{Query, Scope, TableOptions};
use zvf_files::{FileFormat, InputFile, RowIdPolicy, TableKey, read_keyed};

use crate::{
    arguments::named,
    display::{dropped_note, len_u64},
    editing::{AdditionArgs, EditOutput, EditTargetArgs, match_types, row_ids},
    hint::{Operation, with_hint},
    outcome::CommandOutcome,
};

/// Replace objects or points of a store by those of a file, or write attributes of a table
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Objects of the file replace those with equal ids. They stay in their groups and keep object attributes that the file
lacks. Objects of files without ids, such as .trk, replace those that --remove names, and get new ids. In a store of
points without objects, the points of the file replace those with the addresses in its column row_id, as written by
zvf query --row-ids.

A table of --attributes has either a column row_id, as written by zvf query --row-ids, and attributes of vertices, or a
column object_id and attributes of objects. Vertices and objects that the table does not name keep their values. In new
attributes they have no value, which requires floats or text for vertices. Columns of axes, parts, objects and
attributes of other items are left out.

Examples:
  zvf query tracts.zv --object 7 -o seven.csv
  zvf edit tracts.zv --from seven.csv
  zvf edit tracts.zv --from seven.csv --remove 7,8
  zvf query cloud.zv --row-ids -o cloud.parquet
  zvf edit cloud.zv --attributes classified.parquet
  zvf query cloud.zv --where \"class = 7\" --row-ids -o points.csv
  zvf edit cloud.zv --from points.csv
  zvf edit cells.zv --drop-attribute radius"
)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    work: EditTargetArgs,
    /// File of geometry: .npz, .csv, .parquet, .arrow, .trk, .tck, .trx, .swc, .ply, .obj, .stl, .glb,
    /// .las, .laz, .gii, .pial, .graphml or .geoparquet, or a folder of .swc files, of meshes, of a geff
    /// graph or of precomputed data.
    #[arg(long, value_name = "FILE", value_parser = InputFile::parse,
        required_unless_present_any = ["attributes", "drop_attribute"])]
    from: Option<InputFile>,
    /// Table of attributes to add or change: .csv, .npz, .arrow or .parquet.
    #[arg(long, value_name = "FILE", help_heading = "Attributes", value_parser = InputFile::parse,
        conflicts_with_all = ["from", "remove", "links", "axes", "out_of_bounds", "yes"])]
    attributes: Option<InputFile>,
    /// Remove attributes from all levels, such as fa or object.length; repeat the option or separate
    /// names by commas.
    #[arg(long, value_name = "NAME", help_heading = "Attributes", value_delimiter = ',',
        value_parser = attribute, conflicts_with_all = ["from", "attributes", "remove", "links", "axes",
        "out_of_bounds", "yes"])]
    drop_attribute: Vec<(Option<Scope>, String)>,
    /// Column that names the vertex or object of each row; by default `row_id` if the table has it,
    /// or else `object_id`.
    ///
    /// With `fragment`, row ids name vertices, and the columns `fragment.NAME` are attributes of the
    /// fragments that contain them. The vertices of a fragment have the same values.
    #[arg(long, value_name = "COLUMN", help_heading = "Attributes", requires = "attributes",
        value_parser = named(TableKey::ALL, TableKey::name))]
    key: Option<TableKey>,
    /// Replace existing attributes of another type. Rows that are not in the table lose their value.
    #[arg(long, help_heading = "Attributes", requires = "attributes")]
    replace: bool,
    /// Transaction to which the row ids belong, if the file does not name it; fails if the store is
    /// at another one.
    ///
    /// Not for files with objects, which are found by their ids.
    #[arg(
        long,
        value_name = "N",
        help_heading = "Selection",
        conflicts_with = "remove"
    )]
    at_transaction: Option<u64>,
    #[command(flatten)]
    addition: AdditionArgs,
    /// Replace these objects instead of those with the ids of the file, which may have other ids.
    ///
    /// This splits, merges and renumbers objects.
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
        from,
        addition,
        remove,
        ..
    } = arguments;
    if !arguments.drop_attribute.is_empty() {
        return drop_attributes(work, &arguments.drop_attribute).await;
    }
    if let Some(file) = &arguments.attributes {
        return write_attributes(arguments, file).await;
    }
    let from = from.as_ref().ok_or(EditError::NoFile)?;
    let is_exchange = !remove.is_empty();
    let verb = if is_exchange {
        Operation::ReplaceNamed
    } else {
        Operation::Edit
    };
    let mut opened = work.open(verb).await?;
    let mut input = addition
        .read(from, work, &opened, RowIdPolicy::Read)
        .await?;
    let mut notes = opened.notes();
    let has_objects = input.geometry.owners.ids().is_some();
    if has_objects && arguments.at_transaction.is_some() {
        return Err(EditError::ObjectsAt(from.path().display().to_string()).into());
    }
    let renumbers = has_objects && addition.renumbers(&input);
    if renumbers && !is_exchange {
        let error = if input.numbers_objects {
            EditError::NoIds(from.path().display().to_string())
        } else {
            EditError::NewIds
        };
        return Err(error.into());
    }
    opened.editor = opened.editor.check(addition.check()).renumber(renumbers);
    let built = std::mem::take(&mut input.geometry).build();
    let geometry = &built.map_err(|error| with_hint(verb, error.into()))?;
    let bounds = addition.options.out_of_bounds;
    let changed = if is_exchange {
        let change = opened.editor.replace_objects(remove, geometry, bounds);
        opened.change(change).await?
    } else if let Some(rows) = input.row_ids.as_ref().filter(|_| !has_objects) {
        let transaction = arguments.at_transaction.or(input.description.transaction);
        notes.extend(opened.unchecked_rows(transaction));
        let editor = &opened.editor;
        let change = editor.replace_rows(transaction, rows, geometry, bounds);
        opened.change(change).await?
    } else {
        let change = opened.editor.replace(geometry, bounds);
        opened.change(change).await?
    };
    notes.extend(dropped_note(len_u64(geometry.vertices()), changed.added));
    if input.row_ids.is_some() && (has_objects || is_exchange) {
        notes.push("row ids left out: objects are replaced by their ids".to_owned());
    }
    let ids = changed.objects.clone();
    let report = EditOutput::new(&work.store, Ok(changed))
        .objects(ids)
        .read(&input)
        .noted(notes);
    Ok(work.done(&report)?)
}

/// Parses the name of an attribute, which may have a scope.
fn attribute(text: &str) -> Result<(Option<Scope>, String), &'static str> {
    let scoped = Scope::ALL.into_iter().find_map(|scope| {
        let rest = text.strip_prefix(scope.name())?.strip_prefix('.')?;
        Some((Some(scope), rest.to_owned()))
    });
    let found = scoped.unwrap_or_else(|| (None, text.to_owned()));
    Some(found)
        .filter(|(_, name)| !name.is_empty())
        .ok_or("write the name of an attribute, such as fa or object.length")
}

/// Removes attributes.
async fn drop_attributes(
    work: &EditTargetArgs,
    names: &[(Option<Scope>, String)],
) -> Result<CommandOutcome, Box<dyn Error>> {
    let opened = work.open(Operation::Attributes).await?;
    let written = opened
        .change(opened.editor.remove_attributes(names))
        .await?;
    let names: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
    Ok(work.attributes_dropped(&names, &written)?)
}

/// Writes attributes of a table.
async fn write_attributes(
    arguments: &EditArgs,
    file: &InputFile,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let work = &arguments.work;
    let reading = &arguments.addition.options;
    let mut table = read_keyed(file, arguments.key, reading.missing, &reading.rename)?;
    if table.columns.is_empty() {
        return Err(EditError::NoAttributes(file.path().display().to_string()).into());
    }
    let opened = work.open(Operation::Attributes).await?;
    if file.format() == FileFormat::Csv && !arguments.replace {
        let like = opened.dataset.query(&Query::new().limit(1)).await?;
        let like = match table.key {
            TableKey::Row => &like.vertex,
            TableKey::Object => &like.object,
            TableKey::Fragment => &like.fragment,
        };
        match_types::columns(like, &mut table.columns);
    }
    let mut options = TableOptions::default();
    options.replace = arguments.replace;
    options.transaction = arguments.at_transaction;
    let names: Vec<String> = table
        .columns
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let written = match table.key {
        TableKey::Row => {
            options.transaction = options.transaction.or(table.transaction);
            let rows = row_ids(&table, file)?;
            let editor = &opened.editor;
            let writing = editor.write_vertex_attributes(&rows, &table.columns, &options);
            opened.change(writing).await?
        }
        TableKey::Fragment => {
            options.transaction = options.transaction.or(table.transaction);
            let rows = row_ids(&table, file)?;
            let editor = &opened.editor;
            let writing = editor.write_fragment_attributes(&rows, &table.columns, &options);
            opened.change(writing).await?
        }
        TableKey::Object => {
            let editor = &opened.editor;
            let writing = editor.write_object_attributes(&table.ids, &table.columns, &options);
            opened.change(writing).await?
        }
    };
    let mut notes = Vec::new();
    // Attributes of objects are written to all levels.
    if table.key != TableKey::Object {
        notes.extend(opened.notes());
        notes.extend(opened.unchecked_rows(options.transaction));
    }
    if !table.left_out.is_empty() {
        let scope = table.key.scope();
        let columns = table.left_out.join(", ");
        notes.push(format!(
            "left out, because they are not attributes of a {scope}: {columns}"
        ));
    }
    Ok(work.attributes_done(&names, table.key, len_u64(table.ids.len()), &written, notes)?)
}

/// Arguments, or a file, that change nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum EditError {
    #[error("no change; give --from, --attributes or --drop-attribute")]
    NoFile,
    #[error("{0} has no attributes to write, only keys and columns that are not attributes")]
    NoAttributes(String),
    #[error(
        "{0} has no ids of objects; name the objects to replace with --remove, name .swc files by their \
         ids, such as 7.swc, or add the file with zvf append"
    )]
    NoIds(String),
    #[error(
        "objects with new ids replace none; name the objects to replace with --remove, or leave out --ids"
    )]
    NewIds,
    #[error(
        "--at-transaction is about row ids, but {0} has objects, which are replaced by their ids; leave it out"
    )]
    ObjectsAt(String),
}
