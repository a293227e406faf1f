//! `zvf delete`: objects of a store, by id or by what a query finds.

use std::{collections::BTreeMap, error::Error};

use zvf::{
    Query,
    query::{NO_OBJECT, QueryError, QueryResult, Selection, geometry::Mode},
};

use crate::{
    arguments::SelectionArgs,
    display::{count_noun, len_u64},
    editing::{EditOutput, EditSession, EditTargetArgs, NoChange},
    hint::Operation,
    outcome::CommandOutcome,
    progress::Progress,
};

/// Deletes objects, and links to them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Objects go whole: those of these ids, or those of which a query finds anything.

Examples:
  zvf delete tracts.zv --where \"object.length < 5\" --dry-run
  zvf delete tracts.zv --object 3,4
  zvf delete tracts.zv --bbox 0,0,0,9,9,9 --mode within"
)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    work: EditTargetArgs,
    #[command(flatten)]
    selecting: SelectionArgs,
    /// Says what would go, and changes nothing.
    #[arg(long, help_heading = "Work")]
    dry_run: bool,
    /// Exits with 1 when there is nothing to delete.
    #[arg(long, help_heading = "Work")]
    fail_empty: bool,
}

/// Why nothing is deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum DeleteError {
    #[error(
        "nothing says what to delete; give --object, --group, --where, --bbox or another of them"
    )]
    All,
    #[error("--mode clip cuts objects, which only go whole; use --mode touch or --mode within")]
    Clip,
    #[error("there is no object {0}")]
    NoObject(i64),
    #[error("there is no group {0}")]
    NoGroup(u64),
    #[error(
        "{0} has no objects; points that belong to none cannot be deleted yet, only left out of a new store: \
         zvf query -o FILE, then zvf create"
    )]
    NoObjects(String),
}

/// Finds the objects, and deletes them.
pub(crate) async fn run(arguments: &DeleteArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let DeleteArgs {
        work, selecting, ..
    } = arguments;
    if selecting.is_all() {
        return Err(DeleteError::All.into());
    }
    if selecting.mode() == Mode::Clip {
        return Err(DeleteError::Clip.into());
    }
    let mut query = Query::new();
    selecting.select(&mut query)?;
    let opened = work.open(Operation::Delete).await?;
    let axes = opened.dataset.root().axes.iter();
    let axes: Vec<&str> = axes.map(|axis| axis.name.as_str()).collect();
    selecting.check_axes(&axes)?;
    let mut notes = opened.notes();
    let ids = if selecting.is_by_id() {
        selecting.objects().to_vec()
    } else {
        let progress = Progress::for_dataset(&opened.dataset, work.quiet);
        let (ids, loose) = found(work, &opened, query).await?;
        drop(progress);
        if loose > 0 {
            let vertices = count_noun(
                loose,
                "vertex that was found belongs",
                "vertices that were found belong",
            );
            notes.push(format!("{vertices} to no object and cannot be deleted yet"));
        }
        ids
    };
    let changed = if ids.is_empty() {
        Err(NoChange::Nothing)
    } else if arguments.dry_run {
        let whole = answer(work, &opened, &whole(&ids)).await?;
        Err(NoChange::Asked(len_u64(whole.positions.len())))
    } else {
        Ok(opened.change(opened.editor.remove(&ids)).await?)
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

/// The objects that a query finds something of, and how many vertices it finds that
/// are of none.
async fn found(
    work: &EditTargetArgs,
    opened: &EditSession,
    mut query: Query,
) -> Result<(Vec<i64>, u64), Box<dyn Error>> {
    query.columns = Selection::none();
    let is_within = query.region.is_some() && query.mode == Mode::Within;
    let part = answer(work, opened, &query).await?;
    if part.object_ids.is_none() && part.parts.is_none() {
        return Err(DeleteError::NoObjects(work.store.clone()).into());
    }
    let vertices = vertices_of(&part);
    let loose = vertices.get(&NO_OBJECT).copied().unwrap_or(0);
    let mut ids = part.objects;
    if is_within && !ids.is_empty() {
        // Parts and links were found that are within, and objects of which all is go.
        let whole = answer(work, opened, &whole(&ids)).await?;
        let all = vertices_of(&whole);
        ids.retain(|id| vertices.get(id) == all.get(id));
    }
    Ok((ids, loose))
}

/// All of objects, but attributes.
fn whole(ids: &[i64]) -> Query {
    let mut query = Query::new().objects(ids);
    query.columns = Selection::none();
    query
}

async fn answer(
    work: &EditTargetArgs,
    opened: &EditSession,
    query: &Query,
) -> Result<QueryResult, Box<dyn Error>> {
    match opened.dataset.query(query).await {
        Err(zvf::Error::Query(QueryError::NoObject { id, .. })) => {
            Err(DeleteError::NoObject(id).into())
        }
        Err(zvf::Error::Query(QueryError::NoGroup { id, .. })) => {
            Err(DeleteError::NoGroup(id).into())
        }
        Err(zvf::Error::Query(QueryError::NoObjects(_))) => {
            Err(DeleteError::NoObjects(work.store.clone()).into())
        }
        other => Ok(other?),
    }
}

/// How many vertices each object has.
fn vertices_of(answer: &QueryResult) -> BTreeMap<i64, u64> {
    let mut vertices: BTreeMap<i64, u64> = BTreeMap::new();
    for id in answer.object_ids.iter().flatten() {
        *vertices.entry(*id).or_default() += 1;
    }
    if let Some(parts) = &answer.parts {
        let spans = parts.offsets.iter().zip(parts.offsets.iter().skip(1));
        for (id, (start, end)) in parts.objects.iter().zip(spans) {
            *vertices.entry(*id).or_default() += end.saturating_sub(*start);
        }
    }
    vertices
}
