//! `zvf query`: runs a query and formats its result as text, JSON or a file.

mod arguments;
mod columns;
mod description;
mod explain;
mod output;
mod preview;
mod save;

use std::error::Error;

use zvf::{Dataset, OpenOptions};

use crate::{
    arguments::axis_names, dense::reference_grid, hint::with_query_hint, outcome::CommandOutcome,
    progress::ProgressLine,
};

use save::result;

pub use arguments::QueryArgs;
pub use description::ResultDescription;
pub use output::{QueryOutput, ResultCounts};
pub use preview::preview;
pub use save::{SaveError, save};

/// Runs the query, and prints or writes its result.
pub(crate) async fn run(arguments: &QueryArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut query = arguments.query()?;
    // A single query gains nothing from a cell cache.
    let defaults = OpenOptions::default();
    let budget = arguments.memory.unwrap_or(defaults.budget);
    let options = defaults
        .budget(budget)
        .cache(0)
        .anonymous(arguments.anonymous)
        .node_copy(!arguments.no_node_copy)
        .seal(!arguments.no_seal);
    let dataset = Dataset::open_with(&arguments.store, &options).await?;
    arguments.check_axes(&axis_names(&dataset))?;
    let selecting = &arguments.selecting;
    let nearest = selecting.search(&dataset, &mut query).await?;
    let hinted = |error| with_query_hint(error, arguments.selecting.is_filtered());
    let raised = |error| match error {
        SaveError::Query(error) => hinted(error),
        error => error.into(),
    };
    let progress = ProgressLine::for_dataset(&dataset, arguments.quiet);
    // A query that returns no objects does not open their attributes.
    dataset.check_selection(&query).await.map_err(hinted)?;
    if arguments.explain {
        let plan = explain::explain(&dataset, &query).await.map_err(hinted)?;
        return Ok(CommandOutcome::from(arguments.plan(plan)?));
    }
    if arguments.analyze {
        let plan = explain::analyze(&dataset, &query).await.map_err(hinted)?;
        return Ok(CommandOutcome::from(arguments.plan(plan)?));
    }
    let mut report = QueryOutput::new(dataset.address());
    if arguments.count {
        explain::count(&dataset, &query, &mut report)
            .await
            .map_err(hinted)?;
    } else if let Some(target) = &arguments.output {
        let grid = arguments.reference.as_deref().map(reference_grid);
        let target = target.clone().in_unit(arguments.unit);
        let target = &target.in_grid(grid.transpose()?)?;
        let saved = save(&dataset, &query, target, arguments.strict).await;
        report = saved.map_err(raised)?;
    } else {
        let result = result(&dataset, &query).await.map_err(raised)?;
        if !arguments.json {
            report.rows(preview(&result)?);
        }
        report.result(&result);
    }
    report.nearest_objects(&nearest);
    if let Some(max) = arguments.vertices {
        let mut stored = 0_u64;
        for level in report.levels_read() {
            let count = dataset.level(level).await?.vertex_count;
            stored = stored.saturating_add(count.unwrap_or(u64::MAX));
        }
        report.note_vertices(max, stored);
    }
    let activity = dataset.store().activity();
    report.cost(
        activity.requests.saturating_add(activity.lists),
        activity.bytes_read,
    );
    drop(progress);
    let bbox = arguments.selecting.bbox();
    let why_empty = bbox.and_then(|bbox| bbox.why_empty(dataset.root()));
    Ok(arguments.done(&report, why_empty)?)
}
