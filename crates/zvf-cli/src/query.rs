//! `zvf query`: a query from the command line, and its answer as text, JSON or a file.

mod arguments;
mod engine;
mod preview;
mod report;
mod select;
mod selecting;
mod values;

use std::error::Error;

use zvf::{Dataset, OpenOptions, model::root::GeometryKind};

use crate::{advice::asked, beyond::beyond, command::Done, output, progress::Progress};

pub use arguments::{Arguments, UsageError};
pub use preview::preview;
pub use report::{Counts, Report};
pub use selecting::Selecting;

/// Asks a store, and shows or writes what it finds.
pub(crate) async fn run(arguments: &Arguments) -> Result<Done, Box<dyn Error>> {
    let query = arguments.query()?;
    // Nobody asks again.
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
    let told = |error| asked(error, arguments.selecting.is_filtered());
    let progress = Progress::of(&dataset, arguments.quiet);
    if arguments.explain {
        let plan = engine::explain(&dataset, &query).await.map_err(told)?;
        return Ok(Done::from(arguments.plan(plan)?));
    }
    let mut report = Report::new(dataset.address());
    if arguments.count {
        engine::count(&dataset, &query, &mut report)
            .await
            .map_err(told)?;
    } else {
        let answer = engine::answer(&dataset, &query).await.map_err(told)?;
        report.answer(&answer);
        if let Some(target) = &arguments.output {
            report.written(output::write(
                &answer,
                &geometry(arguments, &dataset),
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
    let beyond = bbox.and_then(|bbox| beyond(&dataset, bbox));
    Ok(arguments.done(&report, beyond)?)
}

/// The kind of geometry, or the name of the one that was asked for.
fn geometry(arguments: &Arguments, dataset: &Dataset) -> String {
    if let Some(name) = &arguments.geometry {
        return name.clone();
    }
    let kinds = dataset.root().geometry_kinds.iter();
    let kinds: Vec<&str> = kinds.map(GeometryKind::as_str).collect();
    kinds.join(",")
}
