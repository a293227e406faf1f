//! The five queries of the demo and their costs.

use std::{error::Error, path::Path, time::Instant};

use zvf::{Bbox, Dataset, Mode, Position, Predicate, Query, VertexBudget};

/// A query of the demo.
pub(super) struct DemoQuery {
    title: &'static str,
    file: &'static str,
    /// Arguments of `zvf query` after the store.
    arguments: &'static str,
    query: fn() -> Result<Query, Box<dyn Error>>,
}

/// A query that was run, with its costs.
pub(super) struct QueryRun {
    pub(super) title: &'static str,
    pub(super) command: String,
    /// Requests of the first round trip, by the plan.
    pub(super) planned_requests: u64,
    pub(super) planned_bytes: Option<u64>,
    pub(super) then: Vec<&'static str>,
    pub(super) requests: u64,
    pub(super) bytes: u64,
    pub(super) milliseconds: f64,
    pub(super) vertices: u64,
    pub(super) objects: u64,
}

pub(super) fn steps() -> Vec<DemoQuery> {
    vec![
        DemoQuery {
            title: "a box: whole streamlines that enter it",
            file: "tracts.zv",
            arguments: "--bbox -6,-40,10,6,-30,20",
            query: || Ok(Query::new().region(Bbox::parse("-6,-40,10,6,-30,20")?)),
        },
        DemoQuery {
            title: "objects by id",
            file: "tracts.zv",
            arguments: "--object 17,170",
            query: || Ok(Query::new().objects([17, 170])),
        },
        DemoQuery {
            title: "attributes: long streamlines, where they are most ordered",
            file: "tracts.zv",
            arguments: "--where \"object.length > 160 and vertex.fa > 0.7\" --mode clip",
            query: || {
                let filter = Predicate::parse("object.length > 160 and vertex.fa > 0.7")?;
                Ok(Query::new().filter(filter).mode(Mode::Clip))
            },
        },
        DemoQuery {
            title: "the five cells nearest to a position",
            file: "cells.zv",
            arguments: "--nearest 0,450,1200 --k 5",
            query: || Ok(Query::new().nearest(Position::new(&[0.0, 450.0, 1200.0])?, 5)),
        },
        DemoQuery {
            title: "an overview: at most a given number of vertices",
            file: "cells.zv",
            arguments: "--budget 20000",
            query: || Ok(Query::new().level(VertexBudget::new(20_000))),
        },
    ]
}

impl DemoQuery {
    /// Explains and runs the query, each on a newly opened store, so that nothing is cached.
    pub(super) async fn take(&self, folder: &Path) -> Result<QueryRun, Box<dyn Error>> {
        let path = folder.join(self.file).display().to_string();
        let query = (self.query)()?;
        let plan = Dataset::open(&path).await?.explain(&query).await?;
        let begun = Instant::now();
        let dataset = Dataset::open(&path).await?;
        let counts = dataset.query(&query).await?;
        let milliseconds = begun.elapsed().as_secs_f64() * 1000.0;
        let activity = dataset.store().activity();
        Ok(QueryRun {
            title: self.title,
            command: format!("zvf query {path} {}", self.arguments),
            planned_requests: plan.requests(),
            planned_bytes: plan.bytes(),
            then: plan.then,
            requests: activity.requests.saturating_add(activity.lists),
            bytes: activity.bytes_read,
            milliseconds,
            vertices: counts.positions.len() as u64,
            objects: counts.objects.len() as u64,
        })
    }
}
