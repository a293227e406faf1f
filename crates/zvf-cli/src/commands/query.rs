//! `zvf query`: runs a query and formats its result as text, JSON or a file.

mod arguments;
mod columns;
mod description;
mod explain;
mod field;
mod output;
mod preview;

use std::error::Error;

use zvf::{Column, ColumnValues, Dataset, GeometryType, NumericColumn, OpenOptions, QueryResult};

use crate::{
    formats::{self, LosslessTarget},
    hint::{outside_bounds, with_query_hint},
    outcome::CommandOutcome,
    progress::ProgressLine,
};

use description::Described;

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
        .node_copy(!arguments.no_node_copy)
        .seal(!arguments.no_seal);
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
    } else if let Some(target) = arguments.field_output() {
        let written = field::write(arguments, &dataset, &query, target, &mut report);
        written.await?;
    } else {
        let transaction = dataset.transaction();
        let mut answer = dataset.query(&query).await.map_err(hinted)?;
        if arguments.row_ids && dataset.transaction() != transaction {
            return Err(StoreChanged.into());
        }
        add_distances(&mut answer);
        if let Some(target) = &arguments.output {
            let geometry = geometry(arguments, &dataset);
            let mut described = Described::new(&dataset, geometry);
            described.description.transaction = arguments.row_ids.then_some(transaction);
            // Formats of pictures have no groups.
            if target.format().is_readable() && arguments.geometry.is_none() {
                described.read_groups(&dataset, &mut answer).await;
                described.read_headers(&dataset).await;
            }
            let lossless = LosslessTarget::new(target, arguments.strict)?;
            let mut written = formats::write(&answer, &described.description, lossless.file())?;
            written.left_out.append(&mut described.left_out);
            let written = lossless.publish(written)?;
            answer.notes.append(&mut described.notes);
            report.written(written);
        } else if !arguments.json {
            report.rows(preview(&answer)?);
        }
        report.answer(&answer);
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

/// The transaction of row ids is not known.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the store changed while it was read, so its row ids are outdated; run the query again")]
struct StoreChanged;

/// Adds the distances of a nearest query as a column: of vertices for points, of links, or, for
/// paths, of objects, each with the distance of its nearest path.
fn add_distances(answer: &mut QueryResult) {
    let Some(distances) = &answer.distances else {
        return;
    };
    let (columns, values) = match (&answer.parts, &answer.links) {
        (Some(parts), _) => {
            let of_object = |id: &i64| {
                let of_parts = parts.objects.iter().zip(distances);
                let own = of_parts.filter(|(object, _)| *object == id);
                own.map(|(_, distance)| *distance).reduce(f64::min)
            };
            let objects = answer.objects.iter();
            let values = objects.map(|id| of_object(id).unwrap_or(f64::NAN));
            (&mut answer.object, values.collect())
        }
        (None, Some(_)) => (&mut answer.link, distances.clone()),
        (None, None) => (&mut answer.vertex, distances.clone()),
    };
    let is_taken = |name: &str| columns.iter().any(|column| column.name == name);
    let names = ["distance", "nearest_distance"].map(str::to_owned);
    let more = (2_u32..).map(|number| format!("nearest_distance_{number}"));
    let Some(name) = names.into_iter().chain(more).find(|name| !is_taken(name)) else {
        return;
    };
    columns.push(Column {
        name,
        values: ColumnValues::Numeric(NumericColumn::float64(1, values)),
        nulls: None,
    });
}

/// Returns the kind of geometry, or the name of the selected one.
pub(super) fn geometry(arguments: &QueryArgs, dataset: &Dataset) -> String {
    if let Some(name) = &arguments.geometry {
        return name.clone();
    }
    let kinds = dataset.root().geometry_kinds.iter();
    let kinds: Vec<&str> = kinds.map(GeometryType::as_str).collect();
    kinds.join(",")
}
