//! The runner of the conformance suite, as `docs/conformance.md` describes it: a
//! request a line on standard input, a response a line on standard output.

mod request;
mod response;

use std::{
    error::Error,
    io::{self, BufRead, Write},
};

use serde_json::{Value as Json, json};
use zvf::{Dataset, Query, QueryResult, Scope};
use zvf_catalog::{CatalogError, Fault};
use zvf_model::error_chain::error_chain;

use self::request::{Kind, Request};

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let result = match respond(&line?).await {
            Ok(result) => result,
            Err(error) => json!({ "error": error_chain(error.as_ref()) }),
        };
        writeln!(out, "{result}")?;
        out.flush()?;
    }
    Ok(())
}

async fn respond(line: &str) -> Outcome<Json> {
    let request = Request::parse(&serde_json::from_str(line)?)?;
    let dataset = Dataset::open(&request.store).await?;
    match request.kind {
        Kind::Info => info(&dataset).await,
        Kind::Tables => tables(&dataset, &request).await,
        Kind::Geometry(ref query) => {
            let result = found(&dataset, query).await?;
            Ok(response::geometry(&result)?)
        }
    }
}

async fn info(dataset: &Dataset) -> Outcome<Json> {
    // Levels that the root names may be absent.
    let info = dataset.info().await?;
    let levels = info.levels.iter().map(|level| level.level.number());
    Ok(json!({ "axes": info.axes, "levels": levels.collect::<Vec<_>>() }))
}

fn is_outdated(error: &zvf::Error) -> bool {
    matches!(error.cause(), Some(CatalogError::Damaged(damage)) if matches!(
        damage.fault,
        Fault::Uneven { .. } | Fault::NoRow { .. } | Fault::NoChunk(_)
    ))
}

/// A result, without the parts that edits of other programs left outdated, which are named.
async fn found(dataset: &Dataset, query: &Query) -> Outcome<QueryResult> {
    match dataset.query(query).await {
        Err(error) if is_outdated(&error) => {
            Ok(dataset.query(&query.clone().keep_going(true)).await?)
        }
        result => Ok(result?),
    }
}

async fn tables(dataset: &Dataset, request: &Request) -> Outcome<Json> {
    let (catalog, level) = (dataset.catalog(), request.level);
    let mut result = json!({});
    if let Some(objects) = catalog.object_list(level).await? {
        let ids: Vec<_> = (0..objects.len()).map(|at| objects.id(at)).collect();
        let rows: Vec<u64> = (0..objects.len()).map_while(|at| objects.row(at)).collect();
        let mut columns = serde_json::Map::new();
        for name in catalog.attribute_list(level, Scope::Object).await?.iter() {
            let column = catalog.object_values(level, name, Some(&rows)).await?;
            columns.insert(name.clone(), response::column(&column)?);
        }
        result["objects"] = json!(ids);
        result["object"] = columns.into();
    }
    if let Some(groups) = catalog.group_list(level).await? {
        let members = (0..groups.len()).filter_map(|group| groups.members(group));
        let members: Vec<Vec<i64>> = members.map(|members| members.iter().collect()).collect();
        let all: Vec<u64> = (0..groups.len()).collect();
        let mut columns = serde_json::Map::new();
        for name in catalog.attribute_list(level, Scope::Group).await?.iter() {
            let column = catalog.group_values(level, name, Some(&all)).await?;
            columns.insert(name.clone(), response::column(&column)?);
        }
        result["groups"] = json!(members);
        result["group"] = columns.into();
    }
    Ok(result)
}
