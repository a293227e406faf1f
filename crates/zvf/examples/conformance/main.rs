//! The runner of the conformance suite, as `docs/conformance.md` describes it: a
//! request a line on standard input, an answer a line on standard output.

mod answer;
mod request;

use std::{
    error::Error,
    io::{self, BufRead, Write},
};

use serde_json::{Value as Json, json};
use zvf::{Dataset, Query, QueryResult, Scope};
use zvf_model::error_chain::error_chain;
use zvf_query::{Fault, QueryError};

use self::request::{Kind, Request};

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answer = match answered(&line?).await {
            Ok(answer) => answer,
            Err(error) => json!({ "error": error_chain(error.as_ref()) }),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

async fn answered(line: &str) -> Outcome<Json> {
    let request = Request::parse(&serde_json::from_str(line)?)?;
    let dataset = Dataset::open(&request.store).await?;
    match request.kind {
        Kind::Info => info(&dataset).await,
        Kind::Tables => tables(&dataset, &request).await,
        Kind::Geometry(ref query) => {
            let answer = found(&dataset, query).await?;
            Ok(answer::geometry(&answer)?)
        }
    }
}

async fn info(dataset: &Dataset) -> Outcome<Json> {
    // Levels that the root names may be absent.
    let info = dataset.info().await?;
    let levels = info.levels.iter().map(|level| level.level.number());
    Ok(json!({ "axes": info.axes, "levels": levels.collect::<Vec<_>>() }))
}

/// An answer; what edits by others left out of step is left out, and named.
async fn found(dataset: &Dataset, query: &Query) -> Outcome<QueryResult> {
    match dataset.query(query).await {
        Err(zvf::Error::Query(QueryError::Damaged(damage)))
            if matches!(
                damage.fault,
                Fault::Uneven { .. } | Fault::NoRow { .. } | Fault::NoChunk(_)
            ) =>
        {
            Ok(dataset.query(&query.clone().keep_going(true)).await?)
        }
        answer => Ok(answer?),
    }
}

async fn tables(dataset: &Dataset, request: &Request) -> Outcome<Json> {
    let (session, level) = (dataset.session(), request.level);
    let mut answer = json!({});
    if let Some(objects) = session.object_list(level).await? {
        let ids: Vec<_> = (0..objects.len()).map(|at| objects.id(at)).collect();
        let rows = (0..objects.len()).map_while(|at| objects.row(at));
        let rows: Vec<u64> = rows.collect();
        let mut columns = serde_json::Map::new();
        for name in session.attribute_list(level, Scope::Object).await?.iter() {
            let column = session.object_values(level, name, Some(&rows)).await?;
            columns.insert(name.clone(), answer::column(&column)?);
        }
        answer["objects"] = json!(ids);
        answer["object"] = columns.into();
    }
    if let Some(groups) = session.group_list(level).await? {
        let members = (0..groups.len()).filter_map(|group| groups.members(group));
        let members: Vec<Vec<i64>> = members.map(|members| members.iter().collect()).collect();
        let all: Vec<u64> = (0..groups.len()).collect();
        let mut columns = serde_json::Map::new();
        for name in session.attribute_list(level, Scope::Group).await?.iter() {
            let column = session.group_values(level, name, Some(&all)).await?;
            columns.insert(name.clone(), answer::column(&column)?);
        }
        answer["groups"] = json!(members);
        answer["group"] = columns.into();
    }
    Ok(answer)
}
