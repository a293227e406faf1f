//! `zvf delete`: deletes objects, selected by id or by a query.

use std::{collections::BTreeMap, error::Error};

use zvf::{
    ChangeSummary, GeometryKind, Mode, ObjectIds, Owner, Query, QueryResult, Selection, Shape,
    StateError,
};
use zvf_catalog::CatalogError;
use zvf_files::{InputFile, TableKey, read_keys};
use zvf_query::QueryError;

use crate::{
    arguments::{SelectionArgs, axis_names},
    display::{count_noun, len_u64},
    editing::{EditOutput, EditSession, EditTargetArgs, NoChange, RowIdError, row_ids},
    hint::Operation,
    outcome::CommandOutcome,
    progress::ProgressLine,
};

/// Delete objects or vertices, and the links to them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Deletes whole objects: the objects with the given ids, or every object of which the query finds a part, with
--mode within every object that it finds whole. In a store without objects, and with --vertices, deletes the selected
vertices: those inside the region for which --where is true. Vertices of paths and skeletons cannot be deleted one by
one.

Examples:
  zvf delete tracts.zv --where \"object.length < 5\" --dry-run
  zvf delete tracts.zv --object 3,4
  zvf delete tracts.zv --bbox 0,0,0,9,9,9 --mode within
  zvf delete cloud.zv --where \"class = 7\"
  zvf query cloud.zv --where \"class = 18\" --row-ids -o noise.parquet
  zvf delete cloud.zv --rows noise.parquet"
)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    work: EditTargetArgs,
    #[command(flatten)]
    selecting: SelectionArgs,
    /// Delete the selected vertices instead of objects.
    #[arg(long, help_heading = "Selection")]
    vertices: bool,
    /// Delete the vertices with the addresses in the column `row_id` of a table: .csv, .npz, .arrow
    /// or .parquet, as written by zvf query --row-ids.
    #[arg(long, value_name = "FILE", help_heading = "Selection", value_parser = InputFile::parse)]
    rows: Option<InputFile>,
    /// Transaction to which the addresses belong, if the table does not name it; fails if the store
    /// is at another one.
    #[arg(long, value_name = "N", help_heading = "Selection", requires = "rows")]
    at_transaction: Option<u64>,
    /// Print what would be deleted, and change nothing.
    #[arg(long, help_heading = "Execution")]
    dry_run: bool,
    /// Exit with 1 if there is nothing to delete.
    #[arg(long, help_heading = "Execution")]
    fail_empty: bool,
}

/// A selection that cannot be deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum DeleteError {
    #[error("no selection; give --object, --group, --where, --bbox or another selecting option")]
    All,
    #[error("--rows names the vertices to delete; leave out other selecting options")]
    RowsAndQuery,
    #[error(transparent)]
    Key(#[from] RowIdError),
    #[error(
        "--mode clip cuts objects, which can only be deleted whole; use --mode touch or --mode within"
    )]
    Clip,
    #[error("there is no object {0}")]
    NoObject(i64),
    #[error("there is no group {0}")]
    NoGroup(u64),
    #[error("{0} has no objects; select vertices with --where, --bbox, --sphere or --rows")]
    NoObjects(String),
    #[error("vertices of {0} cannot be removed one by one; remove whole objects")]
    PathVertices(&'static str),
}

/// Finds the objects and deletes them.
pub(crate) async fn run(arguments: &DeleteArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let DeleteArgs {
        work, selecting, ..
    } = arguments;
    match &arguments.rows {
        Some(_) if !selecting.is_all() => return Err(DeleteError::RowsAndQuery.into()),
        Some(rows) => return delete_rows(arguments, rows).await,
        None if selecting.is_all() => return Err(DeleteError::All.into()),
        None => {}
    }
    if arguments.vertices {
        let opened = work.open(Operation::Delete).await?;
        return delete_selected(arguments, &opened).await;
    }
    if selecting.mode() == Mode::Clip {
        return Err(DeleteError::Clip.into());
    }
    let mut query = Query::new();
    selecting.select(&mut query)?;
    let mut opened = work.open(Operation::Delete).await?;
    selecting.check_axes(&axis_names(&opened.dataset))?;
    let dataset = &opened.dataset;
    selecting.search(dataset, &mut query).await?;
    let mut left = work.retries;
    let (ids, mut notes, changed) = loop {
        let mut notes = opened.notes();
        let ids = if selecting.is_by_id() {
            selecting.objects().to_vec()
        } else {
            let progress = ProgressLine::for_dataset(&opened.dataset, work.quiet);
            let found = found(work, &opened, query.clone()).await?;
            drop(progress);
            let Some((ids, loose)) = found else {
                return delete_selected(arguments, &opened).await;
            };
            if loose > 0 {
                let vertices =
                    count_noun(loose, "selected vertex belongs", "selected vertices belong");
                let advice = match opened.dataset.root().first_kind() {
                    Some(GeometryKind::Points) => {
                        "add --vertices to delete vertices instead of objects"
                    }
                    _ => "vertices cannot be deleted one by one",
                };
                notes.push(format!("{vertices} to no object; {advice}"));
            }
            ids
        };
        if ids.is_empty() {
            break (ids, notes, Err(NoChange::Nothing));
        }
        if arguments.dry_run {
            let whole = result(work, &opened, &whole(&ids)).await?;
            let count = len_u64(whole.positions.len());
            break (ids, notes, Err(NoChange::DryRun(count)));
        }
        if selecting.is_by_id() {
            let changed = opened.change(opened.editor.remove(&ids)).await?;
            break (ids, notes, Ok(changed));
        }
        if let Some(changed) = remove_found(&opened, &ids, left).await? {
            break (ids, notes, Ok(changed));
        }
        left = left.saturating_sub(1);
        opened.dataset = opened.editor.dataset().await?;
    };
    if changed.is_err() {
        notes.retain(|note| !opened.notes().contains(note));
    }
    let is_negative = arguments.fail_empty && ids.is_empty();
    let report = EditOutput::new(&work.store, changed)
        .objects(ids)
        .noted(notes);
    let mut done = work.done(&report)?;
    done.is_negative = is_negative;
    Ok(done)
}

/// Deletes objects that a query found. Returns `None` if the store has changed since and `left`
/// retries remain: objects may have been replaced by others that the query does not find.
async fn remove_found(
    opened: &EditSession,
    ids: &[i64],
    left: usize,
) -> Result<Option<ChangeSummary>, Box<dyn Error>> {
    let removal = opened
        .editor
        .remove_objects(opened.dataset.transaction(), ids);
    let removal = async {
        match removal.await {
            Err(error)
                if left > 0 && matches!(error.cause(), Some(StateError::OutdatedRows { .. })) =>
            {
                Ok(None)
            }
            removed => removed.map(Some),
        }
    };
    opened.change(removal).await
}

/// Deletes the vertices with the addresses in a table.
async fn delete_rows(
    arguments: &DeleteArgs,
    file: &InputFile,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let work = &arguments.work;
    let table = read_keys(file, TableKey::Row)?;
    let rows = row_ids(&table, file)?;
    let transaction = arguments.at_transaction.or(table.transaction);
    let opened = work.open(Operation::Delete).await?;
    check_vertices(&opened)?;
    let mut notes = opened.notes();
    let changed = if rows.is_empty() {
        Err(NoChange::Nothing)
    } else if arguments.dry_run {
        Err(NoChange::DryRun(len_u64(rows.len())))
    } else {
        let change = opened.editor.remove_rows(transaction, &rows);
        Ok(opened.change(change).await?)
    };
    if changed.is_err() {
        notes.clear();
    }
    notes.extend(opened.unchecked_rows(transaction));
    let mut done = work.done(&EditOutput::new(&work.store, changed).noted(notes))?;
    done.is_negative = arguments.fail_empty && rows.is_empty();
    Ok(done)
}

/// Deletes the vertices that the query selects.
async fn delete_selected(
    arguments: &DeleteArgs,
    opened: &EditSession,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let DeleteArgs {
        work, selecting, ..
    } = arguments;
    check_vertices(opened)?;
    let mut query = Query::new();
    selecting.select(&mut query)?;
    selecting.check_axes(&axis_names(&opened.dataset))?;
    let dataset = &opened.dataset;
    selecting.search(dataset, &mut query).await?;
    let mut notes = opened.notes();
    let changed = if arguments.dry_run {
        let query = query
            .shape(Shape::Points)
            .columns(Selection::none())
            .owners(false);
        let count = opened.dataset.query(&query).await?.positions.len();
        Err(NoChange::DryRun(len_u64(count)))
    } else {
        let change = opened.editor.remove_selected(&query);
        let changed = opened.change(change).await?;
        match changed.removed {
            0 => Err(NoChange::Nothing),
            _ => Ok(changed),
        }
    };
    if changed.is_err() {
        notes.clear();
    }
    let is_empty = matches!(changed, Err(NoChange::Nothing | NoChange::DryRun(0)));
    let mut done = work.done(&EditOutput::new(&work.store, changed).noted(notes))?;
    done.is_negative = arguments.fail_empty && is_empty;
    Ok(done)
}

/// Checks that the store has vertices that can be deleted one by one.
fn check_vertices(opened: &EditSession) -> Result<(), DeleteError> {
    match opened.dataset.root().first_kind() {
        Some(kind) if kind.is_paths() || kind == GeometryKind::Skeletons => {
            Err(DeleteError::PathVertices(kind.name()))
        }
        _ => Ok(()),
    }
}

/// Returns the objects that a query finds, and the number of vertices it finds that belong to none;
/// `None` if the store has no objects.
async fn found(
    work: &EditTargetArgs,
    opened: &EditSession,
    mut query: Query,
) -> Result<Option<(Vec<i64>, u64)>, Box<dyn Error>> {
    query.columns = Selection::none();
    let is_within = query.mode == Mode::Within;
    let part = result(work, opened, &query).await?;
    if part.object_ids.is_none() && part.parts.is_none() {
        return Ok(None);
    }
    let vertices = vertices_of(&part);
    let loose = vertices.get(&Owner::None).copied().unwrap_or(0);
    let mut ids = part.objects;
    if is_within && !ids.is_empty() {
        // The query found parts and links that lie within the region and satisfy the predicate; only
        // objects that it found whole are deleted.
        let whole = result(work, opened, &whole(&ids)).await?;
        let all = vertices_of(&whole);
        ids.retain(|id| {
            let owner = Owner::Object(*id);
            vertices.get(&owner) == all.get(&owner)
        });
    }
    Ok(Some((ids, loose)))
}

/// Returns a query for all of these objects, without attributes.
fn whole(ids: &[i64]) -> Query {
    let mut query = Query::new().objects(ids);
    query.columns = Selection::none();
    query
}

async fn result(
    work: &EditTargetArgs,
    opened: &EditSession,
    query: &Query,
) -> Result<QueryResult, Box<dyn Error>> {
    let result = opened.dataset.query(query).await;
    result.map_err(|error| match (error.cause(), error.cause()) {
        (Some(QueryError::NoObject { id, .. }), _) => DeleteError::NoObject(*id).into(),
        (Some(QueryError::NoGroup { id, .. }), _) => DeleteError::NoGroup(*id).into(),
        (_, Some(CatalogError::NoObjects(_))) => DeleteError::NoObjects(work.store.clone()).into(),
        _ => error.into(),
    })
}

/// Counts the vertices of each object.
fn vertices_of(result: &QueryResult) -> BTreeMap<Owner, u64> {
    let mut vertices: BTreeMap<Owner, u64> = BTreeMap::new();
    for (owner, rows) in result.object_ids.iter().flat_map(ObjectIds::runs) {
        *vertices.entry(owner).or_default() += rows as u64;
    }
    if let Some(parts) = &result.parts {
        let spans = parts.offsets.iter().zip(parts.offsets.iter().skip(1));
        for (id, (start, end)) in parts.objects.iter().zip(spans) {
            *vertices.entry(Owner::Object(*id)).or_default() += end.saturating_sub(*start);
        }
    }
    vertices
}
