//! A recorded read and the corresponding query.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use zvf::{Dataset, Query, QueryResult};
use zvf_catalog::{CatalogError, Fault};
use zvf_model::{grid::ChunkCoord, level::LevelId};
use zvf_query::{LevelChoice, QueryError, geometry::Bbox};

use super::{recorded::Level, tally::Tally};
use crate::block_on;

pub(super) struct Call {
    pub(super) name: String,
    pub(super) args: Json,
    /// The result of the reference, corrected where it is known to be wrong; `None` if it failed.
    pub(super) expected: Option<Json>,
}

impl Call {
    pub(super) fn recorded(json: &Json) -> Self {
        let mut expected = json.get("result").cloned();
        if let Some(reference) = json.get("reference") {
            assert!(json.get("python_bug").is_some());
            expected = Some(reference.clone());
        }
        assert_eq!(expected.is_none(), json.get("raises").is_some());
        Self {
            name: json["call"].as_str().unwrap().to_owned(),
            args: json["args"].clone(),
            expected,
        }
    }

    pub(super) fn level(&self) -> u32 {
        let level = self
            .args
            .get("level")
            .map_or(0, |level| level.as_u64().unwrap());
        level.try_into().unwrap()
    }

    pub(super) fn bbox(&self) -> Option<Bbox> {
        let corners = self.args.get("bbox")?;
        let [lo, hi] = [0, 1].map(|at| {
            let values = corners[at].as_array().unwrap().iter();
            values
                .map(|value| value.as_f64().unwrap())
                .collect::<Vec<_>>()
        });
        Some(Bbox::new(&lo, &hi).unwrap())
    }

    pub(super) fn object_ids(&self) -> Option<Vec<i64>> {
        let one = self
            .args
            .get("object_id")
            .map(|id| vec![id.as_i64().unwrap()]);
        one.or_else(|| integers(self.args.get("object_ids")?))
    }

    pub(super) fn chunks(&self) -> Option<Vec<Vec<i64>>> {
        let chunks = self.args.get("chunks")?.as_array().unwrap().iter();
        chunks.map(integers).collect()
    }

    /// Returns the query without the mode of its region.
    pub(super) fn query(&self) -> Query {
        let level = LevelId::new(self.level());
        let mut query = Query::new().level(LevelChoice::Number(level));
        if let Some(bbox) = self.bbox() {
            query = query.region(bbox);
        }
        if let Some(ids) = self.object_ids() {
            query = query.objects(ids);
        }
        if let Some(ids) = self.args.get("group_ids").and_then(integers) {
            let ids = ids.into_iter().map(|id| id.try_into().unwrap());
            query = query.groups(ids.collect::<Vec<u64>>());
        }
        if let Some(chunks) = self.chunks() {
            let chunks = chunks.into_iter().map(ChunkCoord::new);
            query = query.chunks(chunks.collect::<Vec<_>>());
        }
        if let Some(filter) = self.args.get("attribute_filter") {
            let mut values = filter.as_object().unwrap().values();
            query.chunked_by = values.next().cloned().map(Into::into);
            assert!(values.next().is_none());
        }
        query
    }
}

fn integers(json: &Json) -> Option<Vec<i64>> {
    let list = json.as_array()?.iter();
    Some(list.map(|number| number.as_i64().unwrap()).collect())
}

/// A recorded read and what it is compared with.
pub(super) struct Work<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) level: &'a Level,
    pub(super) call: &'a Call,
    pub(super) at: &'a str,
}

impl Work<'_> {
    /// Returns the first coordinate of chunks with the requested value.
    pub(super) fn leading(&self) -> Option<i64> {
        let filter = self.call.args.get("attribute_filter")?.as_object()?;
        let value = filter.values().next()?;
        let index = self
            .level
            .chunked_by
            .iter()
            .position(|other| other == value);
        Some(index.map_or(-1, |index| index.try_into().unwrap()))
    }

    /// Runs the query. Missing objects are an error, and the only skipped items with `keep_going`,
    /// because the reference skips them. Damaged data is skipped, as the reference does, and
    /// counted with its reason.
    pub(super) fn run(&self, query: &Query, tally: &mut Tally) -> Option<QueryResult> {
        let requested = self.call.object_ids().unwrap_or_default();
        let unknown = requested
            .iter()
            .filter(|id| !self.level.has_object(**id))
            .count();
        let found = block_on(self.dataset.query(query));
        if unknown == 0 {
            return whole(self.dataset, query, found, tally, self.at);
        }
        let error = found.as_ref().err();
        match (
            error.and_then(zvf::Error::cause),
            error.and_then(zvf::Error::cause),
        ) {
            (Some(QueryError::NoObject { id, .. }), _) => {
                tally.same(requested.contains(id), true, self.at);
            }
            (_, Some(CatalogError::NoObjects(_))) => {
                tally.same(self.level.objects.is_none(), true, self.at);
                return None;
            }
            _ => tally.differs(format!("{}: {found:?}", self.at)),
        }
        let found = block_on(self.dataset.query(&query.clone().keep_going(true)));
        let result = found.unwrap_or_else(|error| panic!("{}: {error:?}", self.at));
        tally.same(result.skipped.len(), unknown, self.at);
        Some(result)
    }
}

/// Returns the result, without the data that the editor or the writers of the reference damaged.
pub(super) fn whole(
    dataset: &Dataset,
    query: &Query,
    found: Result<QueryResult, zvf::Error>,
    tally: &mut Tally,
    at: &str,
) -> Option<QueryResult> {
    let error = match found {
        Ok(result) => {
            tally.same(&result.skipped, &Vec::new(), at);
            return Some(result);
        }
        Err(error) => error,
    };
    let Some(CatalogError::Damaged(damage)) = error.cause() else {
        tally.differs(format!("{at}: {error:?}"));
        return None;
    };
    if !matches!(
        damage.fault,
        Fault::Uneven { .. } | Fault::NoRow { .. } | Fault::NoChunk(_)
    ) {
        tally.differs(format!("{at}: {error:?}"));
        return None;
    }
    let result = block_on(dataset.query(&query.clone().keep_going(true))).unwrap();
    assert!(!result.skipped.is_empty(), "{at}");
    let keys = result.skipped.iter().map(|missing| missing.key.as_str());
    let reasons = keys.map(|key| match key.split('/').nth(1) {
        Some("vertex_attributes") => "attributes that edits left out of step with vertices",
        Some("links" | "cross_chunk_links") => "links of vertices that are not there",
        _ => panic!("{at}: {key}"),
    });
    for reason in reasons.collect::<BTreeSet<_>>() {
        tally.not_comparable(reason);
    }
    Some(result)
}
