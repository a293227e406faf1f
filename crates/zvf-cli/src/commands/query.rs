//! `zvf query`: runs a query and formats its result as text, JSON or a file.

mod arguments;
mod columns;
mod explain;
mod output;
mod preview;

use std::error::Error;

use zvf::{Dataset, GeometryType, OpenOptions};

use crate::{
    formats::{self, SourceMetadata},
    hint::{outside_bounds, with_query_hint},
    outcome::CommandOutcome,
    progress::ProgressLine,
};

pub use arguments::QueryArgs;
pub use output::{QueryOutput, ResultCounts};
pub use preview::preview;

/// Runs the query, and prints or writes its result.
pub(crate) async fn run(arguments: &QueryArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let query = arguments.query()?;
    // A single query gains nothing from a cell cache.
    let options = OpenOptions::default()
        .cache(0)
        .anonymous(arguments.anonymous)
        .node_copy(!arguments.no_node_copy);
    let dataset = Dataset::open_with(&arguments.store, &options).await?;
    let axes: Vec<&str> = dataset
        .root()
        .axes
        .iter()
        .map(|axis| axis.name.as_str())
        .collect();
    arguments.check_axes(&axes)?;
    let hinted = |error| with_query_hint(error, arguments.selecting.is_filtered());
    let progress = ProgressLine::for_dataset(&dataset, arguments.quiet);
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
    } else {
        let answer = dataset.query(&query).await.map_err(hinted)?;
        report.answer(&answer);
        if let Some(target) = &arguments.output {
            report.written(formats::write(
                &answer,
                metadata(arguments, &dataset),
                target,
            )?);
        } else if !arguments.json {
            report.rows(preview(&answer)?);
        }
    }
    let activity = dataset.store().activity();
    report.cost(
        activity.requests.saturating_add(activity.lists),
        activity.bytes_read,
    );
    drop(progress);
    let bbox = arguments.selecting.bbox();
    let outside = bbox.and_then(|bbox| outside_bounds(&dataset, bbox));
    Ok(arguments.done(&report, outside)?)
}

/// Returns the facts about the store that a file records.
fn metadata(arguments: &QueryArgs, dataset: &Dataset) -> SourceMetadata {
    let geometry = geometry(arguments, dataset);
    SourceMetadata::new(&geometry).crs(dataset.root().crs.clone())
}

/// Returns the kind of geometry, or the name of the selected one.
fn geometry(arguments: &QueryArgs, dataset: &Dataset) -> String {
    if let Some(name) = &arguments.geometry {
        return name.clone();
    }
    let kinds = dataset.root().geometry_kinds.iter();
    let kinds: Vec<&str> = kinds.map(GeometryType::as_str).collect();
    kinds.join(",")
}
