//! Division of a query into independent parts.

use core::{fmt, str::FromStr};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use zvf_catalog::{Diagnostics, Schema};
use zvf_model::{fetch::BoxFuture, grid::ChunkCoord, level::LevelId};

use super::budget::selected_rows;
use crate::{
    error::QueryError,
    exec::link_scan::LinkScan,
    geometry::Bbox,
    query::{LevelChoice, Query, Shape},
    resolve::query::LevelQuery,
    session::Session,
};

/// An independent part of a query: each vertex, path and link of the whole result is in the result
/// of exactly one part.
///
/// [`Session::partitions`] divides a query. [`query`](Self::query) returns the query of a part, which
/// runs like any other, on any machine that opens the same state of the store. The text of a
/// partition ([`Display`](fmt::Display), [`FromStr`]) does not contain the query that it divides.
///
/// ```
/// use zvf_query::{Query, QueryPartition};
///
/// let part: QueryPartition = r#"{"level": 0, "chunks": [[0, 0, 1], [0, 0, 2]]}"#.parse()?;
/// let query = part.query(&Query::new());
/// assert_eq!(query.chunks.map(|chunks| chunks.len()), Some(2));
/// # Ok::<(), zvf_query::ParsePartitionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QueryPartition {
    /// Estimated number of vertices; `None` if they were not counted. Exact for a query without a
    /// region and a predicate.
    pub rows: Option<u64>,
    /// Approximate size of the positions and of the vertex attributes in memory.
    pub bytes: Option<u64>,
    /// A box that contains all vertices; `None` if it is not known.
    pub bounds: Option<Bbox>,
    /// The level; `None` if the part is the whole query.
    level: Option<LevelId>,
    share: PartitionShare,
}

/// The part of a level that a partition selects.
#[derive(Clone, Debug, PartialEq)]
enum PartitionShare {
    Whole,
    /// The vertices of these chunks, and the links between them.
    Chunks(Vec<ChunkCoord>),
    /// These objects, in this order.
    Objects(Vec<i64>),
}

/// The error of text that is not a partition. It names the member that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a partition of a query: {0} is missing or wrong")]
pub struct ParsePartitionError(&'static str);

impl QueryPartition {
    fn whole() -> Self {
        Self {
            rows: None,
            bytes: None,
            bounds: None,
            level: None,
            share: PartitionShare::Whole,
        }
    }

    /// Returns the query of this part. `query` is the query that was divided.
    pub fn query(&self, query: &Query) -> Query {
        let mut query = query.clone();
        if let Some(level) = self.level {
            query.level = LevelChoice::Number(level);
        }
        match &self.share {
            PartitionShare::Whole => {}
            PartitionShare::Chunks(chunks) => query.chunks = Some(chunks.clone()),
            PartitionShare::Objects(ids) => {
                query.objects = Some(ids.clone());
                // The members of the groups are among the objects.
                query.groups = None;
            }
        }
        query
    }
}

impl fmt::Display for QueryPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        if let Some(level) = self.level {
            put("level", level.number().into());
        }
        match &self.share {
            PartitionShare::Whole => {}
            PartitionShare::Chunks(chunks) => {
                let chunks: Vec<&[i64]> = chunks.iter().map(ChunkCoord::coords).collect();
                put("chunks", json!(chunks));
            }
            PartitionShare::Objects(ids) => {
                put("objects", json!(ids));
            }
        }
        if let Some(rows) = self.rows {
            put("rows", rows.into());
        }
        if let Some(bytes) = self.bytes {
            put("bytes", bytes.into());
        }
        if let Some(bounds) = &self.bounds {
            put("bounds", json!([bounds.lo(), bounds.hi()]));
        }
        Value::from(members).fmt(f)
    }
}

impl FromStr for QueryPartition {
    type Err = ParsePartitionError;

    fn from_str(text: &str) -> Result<Self, ParsePartitionError> {
        let wrong = ParsePartitionError;
        let members: Map<String, Value> =
            serde_json::from_str(text).map_err(|_| wrong("the JSON object"))?;
        let number = |name: &'static str| match members.get(name) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or(wrong(name)),
        };
        let level = number("level")?
            .map(|level| u32::try_from(level).map(LevelId::new))
            .transpose()
            .map_err(|_| wrong("level"))?;
        let share = match (members.get("chunks"), members.get("objects"), level) {
            (None, None, _) => PartitionShare::Whole,
            (Some(chunks), None, Some(_)) => {
                let chunks = numbers_of_each(chunks, Value::as_i64).ok_or(wrong("chunks"))?;
                PartitionShare::Chunks(chunks.into_iter().map(ChunkCoord::new).collect())
            }
            (None, Some(ids), Some(_)) => {
                PartitionShare::Objects(numbers(ids, Value::as_i64).ok_or(wrong("objects"))?)
            }
            _ => return Err(wrong("level")),
        };
        let bounds = members.get("bounds").map(|bounds| {
            let ends = numbers_of_each(bounds, Value::as_f64)?;
            let [lo, hi] = ends.as_slice() else {
                return None;
            };
            Bbox::new(lo, hi).ok()
        });
        Ok(Self {
            rows: number("rows")?,
            bytes: number("bytes")?,
            bounds: bounds
                .map(|bounds| bounds.ok_or(wrong("bounds")))
                .transpose()?,
            level,
            share,
        })
    }
}

fn numbers<T>(list: &Value, one: fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    list.as_array()?.iter().map(one).collect()
}

fn numbers_of_each<T>(lists: &Value, one: fn(&Value) -> Option<T>) -> Option<Vec<Vec<T>>> {
    let lists = lists.as_array()?.iter();
    lists.map(|list| numbers(list, one)).collect()
}

impl Session<'_> {
    /// Divides a query into at most `parts` independent parts of about equal size, in the order of
    /// the result. There is always one part, also of an empty result.
    ///
    /// | query | division | parts in order |
    /// |---|---|---|
    /// | points | by chunk | concatenate to the result |
    /// | paths, and points of selected objects | by object: no path is cut | concatenate to the result |
    /// | links | by groups of chunks that no link leaves | are the result in another order |
    ///
    /// If links join all chunks, their query is one part. So is a query with a limit, a budget, a
    /// search for the nearest, a level jump or a named geometry, and a query of additive levels.
    ///
    /// Rows of [`parts`](crate::QueryResult::parts) and [`links`](crate::QueryResult::links) count from
    /// the start of each part. An object with vertices in several parts is listed by each of them.
    /// Parts do not list the groups that the query selects.
    ///
    /// Reads the fragment indexes of the chunks concerned, and the manifests if objects are divided.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if the query is not valid for the store, or if what is read is damaged.
    pub fn partitions<'f>(
        &'f self,
        query: &'f Query,
        parts: usize,
    ) -> BoxFuture<'f, Result<Vec<QueryPartition>, QueryError>> {
        Box::pin(async move {
            let divided = self.divided(query, parts.max(1)).await;
            self.confirmed(divided).await
        })
    }

    async fn divided(
        &self,
        query: &Query,
        parts: usize,
    ) -> Result<Vec<QueryPartition>, QueryError> {
        let whole = || Ok(vec![QueryPartition::whole()]);
        let is_divisible = query.limit.is_none()
            && query.nearest.is_none()
            && query.drill.is_none()
            && query.geometry.is_none()
            && !matches!(query.level, LevelChoice::Budget(_));
        if !is_divisible {
            return whole();
        }
        let diagnostics = Diagnostics::new(query.keep_going);
        let chosen = self.choose(query, &diagnostics).await?;
        let [levels] = chosen.alternatives.as_slice() else {
            return whole();
        };
        let [level] = levels.as_slice() else {
            return whole();
        };
        let query = Query {
            level: LevelChoice::Number(level.level),
            ..query.clone()
        };
        let plan = self.resolve(&query).await?;
        let Some(schema) = plan.schema(true).await? else {
            return whole();
        };
        let division = Division {
            plan: &plan,
            schema: &schema,
            diagnostics: &diagnostics,
            parts,
        };
        let divided = match plan.shape {
            Shape::Links => division.by_group().await?,
            Shape::Points if !plan.selects_objects() => division.by_chunk().await?,
            Shape::Points | Shape::Paths => division.by_object().await?,
        };
        match divided {
            Some(divided) if !divided.is_empty() => Ok(divided),
            _ => whole(),
        }
    }
}

/// A query that is being divided.
struct Division<'d> {
    plan: &'d LevelQuery<'d>,
    schema: &'d Schema,
    diagnostics: &'d Diagnostics,
    parts: usize,
}

/// A division; `None` if the query cannot be divided.
type Partitions = Option<Vec<QueryPartition>>;

impl Division<'_> {
    /// Divides the chunks, in their order.
    async fn by_chunk(&self) -> Result<Partitions, QueryError> {
        let chunks = self.plan.scanned_chunks(self.schema)?;
        let rows = self.rows_of_chunks().await?;
        let items = chunks.into_iter().map(|chunk| {
            let rows = rows.get(&chunk).copied().flatten();
            (chunk, rows)
        });
        let parts = in_order(items.collect(), self.parts)
            .into_iter()
            .map(|(chunks, rows)| {
                let bounds = self.plan.space.hull(&chunks);
                self.partition(PartitionShare::Chunks(chunks), rows, bounds)
            });
        Ok(Some(simplified(parts.collect())))
    }

    /// Divides the objects, in the order of the query or of the object index.
    async fn by_object(&self) -> Result<Partitions, QueryError> {
        let (plan, diagnostics) = (self.plan, self.diagnostics);
        let Some((objects, rows)) = selected_rows(plan, self.schema, diagnostics).await? else {
            return Ok(None);
        };
        let items = rows.into_iter().map(|(index, rows)| (index, Some(rows)));
        let mut divided = Vec::new();
        for (indices, rows) in in_order(items.collect(), self.parts) {
            let ids: Option<Vec<i64>> = indices.iter().map(|index| objects.id(*index)).collect();
            let Some(ids) = ids else {
                return Ok(None);
            };
            let fragments = indices.iter().flat_map(|index| objects.fragments(*index));
            let chunks: BTreeSet<u32> = fragments.map(|fragment| fragment.chunk).collect();
            let chunks = chunks
                .into_iter()
                .filter_map(|number| objects.chunk(number));
            let bounds = plan.space.hull(chunks);
            divided.push(self.partition(PartitionShare::Objects(ids), rows, bounds));
        }
        Ok(Some(simplified(divided)))
    }

    /// Divides the groups of chunks that links join.
    async fn by_group(&self) -> Result<Partitions, QueryError> {
        let plan = self.plan;
        let set = plan.link_set(self.diagnostics).await?;
        let scan = LinkScan::new(set.clone(), &plan.convention);
        let allowed = plan.allowed()?;
        let mut groups = ChunkUnion::default();
        for chunk in plan.chunks(self.schema)? {
            if plan
                .area
                .as_ref()
                .is_none_or(|area| area.may_contain(&chunk))
            {
                groups.number(&chunk);
            }
        }
        for cell in scan.cells(plan, None)? {
            let cell = set.as_ref().and_then(|set| set.cells.get(cell));
            // The ends of a table's links can be in any chunk.
            let Some(chunks) = cell.and_then(|cell| cell.chunks.as_ref()) else {
                return Ok(None);
            };
            // A link that leaves the chunks of the query is not in the result.
            groups.join(chunks.iter().filter(|chunk| allowed.allows(chunk)));
        }
        let rows = self.rows_of_chunks().await?;
        let mut divided: Vec<(Vec<ChunkCoord>, Option<u64>)> = Vec::new();
        for group in groups.finish() {
            let mut rows = group.iter().map(|chunk| rows.get(chunk).copied().flatten());
            let rows = rows.try_fold(0_u64, |sum, rows| Some(sum.saturating_add(rows?)));
            divided.push((group, rows));
        }
        let parts = balanced(divided, self.parts)
            .into_iter()
            .map(|(chunks, rows)| {
                let bounds = plan.space.hull(&chunks);
                self.partition(PartitionShare::Chunks(chunks), rows, bounds)
            });
        Ok(Some(simplified(parts.collect())))
    }

    /// Returns the estimated rows of each chunk; `None` for a chunk that was not counted.
    async fn rows_of_chunks(&self) -> Result<BTreeMap<ChunkCoord, Option<u64>>, QueryError> {
        let (plan, diagnostics) = (self.plan, self.diagnostics);
        let session = Session::new(plan.catalog);
        let counts = session.counts(plan.query, plan.level.id(), diagnostics);
        Ok(counts.await?.estimates())
    }

    fn partition(
        &self,
        share: PartitionShare,
        rows: Option<u64>,
        bounds: Option<Bbox>,
    ) -> QueryPartition {
        let attributes = self.schema.vertex.iter();
        let sizes = attributes.map(|attribute| {
            let values = attribute
                .metadata
                .row_shape
                .iter()
                .flatten()
                .fold(1_u64, |product, extent| product.saturating_mul(*extent));
            let size = u64::try_from(attribute.metadata.dtype.size()).unwrap_or(8);
            values.saturating_mul(size)
        });
        let row = sizes.fold(self.schema.row(), u64::saturating_add);
        let is_finite = |bounds: &Bbox| {
            let mut ends = bounds.lo().iter().chain(bounds.hi());
            ends.all(|end| end.is_finite())
        };
        QueryPartition {
            rows,
            bytes: rows.map(|rows| rows.saturating_mul(row)),
            bounds: bounds.filter(is_finite),
            level: Some(self.plan.level.id()),
            share,
        }
    }
}

/// Drops the restriction of a single part, which is the whole query. Without it, a scan of a level
/// does not evict other cells from the cache.
fn simplified(mut divided: Vec<QueryPartition>) -> Vec<QueryPartition> {
    if let [part] = divided.as_mut_slice() {
        part.share = PartitionShare::Whole;
    }
    divided
}

/// Divides items into at most `parts` runs of about equal weight. Items of unknown weight weigh as
/// much as the average; the weight of a run with such an item is unknown.
fn in_order<T>(items: Vec<(T, Option<u64>)>, parts: usize) -> Vec<(Vec<T>, Option<u64>)> {
    let average = average(&items);
    let weight = |known: Option<u64>| u128::from(known.unwrap_or(average));
    let mut left: u128 = items.iter().map(|(_, rows)| weight(*rows)).sum();
    let mut left_parts = u128::try_from(parts.max(1)).unwrap_or(1);
    let mut runs = Vec::new();
    let (mut run, mut rows, mut heavy) = (Vec::new(), Some(0_u64), 0_u128);
    for (item, known) in items {
        run.push(item);
        rows = rows.zip(known).map(|(sum, rows)| sum.saturating_add(rows));
        heavy = heavy.saturating_add(weight(known));
        if left_parts > 1 && heavy.saturating_mul(left_parts) >= left {
            left = left.saturating_sub(heavy);
            left_parts = left_parts.saturating_sub(1);
            runs.push((core::mem::take(&mut run), rows));
            (rows, heavy) = (Some(0), 0);
        }
    }
    if !run.is_empty() {
        runs.push((run, rows));
    }
    runs
}

/// Divides groups into at most `parts` sets of about equal weight, the heaviest groups first. Sets
/// and the chunks of a set are in ascending order.
fn balanced(
    mut groups: Vec<(Vec<ChunkCoord>, Option<u64>)>,
    parts: usize,
) -> Vec<(Vec<ChunkCoord>, Option<u64>)> {
    let average = average(&groups);
    let weight = |known: Option<u64>| known.unwrap_or(average);
    groups.sort_by_key(|(_, rows)| core::cmp::Reverse(weight(*rows)));
    let count = parts.min(groups.len());
    let mut sets: Vec<(u64, Vec<ChunkCoord>, Option<u64>)> = Vec::with_capacity(count);
    sets.resize_with(count, || (0, Vec::new(), Some(0)));
    for (chunks, rows) in groups {
        // Empty groups are spread as well.
        let lightest = sets
            .iter_mut()
            .min_by_key(|(heavy, set, _)| (*heavy, set.len()));
        if let Some((heavy, set, sum)) = lightest {
            *heavy = heavy.saturating_add(weight(rows));
            *sum = sum.zip(rows).map(|(sum, rows)| sum.saturating_add(rows));
            set.extend(chunks);
        }
    }
    for (_, set, _) in &mut sets {
        set.sort_unstable();
    }
    sets.sort_by(|(_, one, _), (_, other, _)| one.cmp(other));
    let sets = sets.into_iter();
    sets.map(|(_, chunks, rows)| (chunks, rows)).collect()
}

fn average<T>(items: &[(T, Option<u64>)]) -> u64 {
    let known = items.iter().filter_map(|(_, rows)| *rows);
    let (sum, count) = known.fold((0_u64, 0_u64), |(sum, count), rows| {
        (sum.saturating_add(rows), count.saturating_add(1))
    });
    sum.checked_div(count).unwrap_or(1).max(1)
}

/// Chunks, and which of them links join, as a forest of sets.
#[derive(Default)]
struct ChunkUnion {
    numbers: BTreeMap<ChunkCoord, usize>,
    /// The parent of each chunk; a root is its own.
    parents: Vec<usize>,
}

impl ChunkUnion {
    /// Returns the number of a chunk, and adds the chunk if it is new.
    fn number(&mut self, chunk: &ChunkCoord) -> usize {
        if let Some(number) = self.numbers.get(chunk) {
            return *number;
        }
        let number = self.parents.len();
        self.numbers.insert(chunk.clone(), number);
        self.parents.push(number);
        number
    }

    /// Returns the root of the set that a chunk is in, and compresses the path to it.
    fn root(&mut self, mut number: usize) -> usize {
        while let Some(parent) = self.parents.get(number).copied() {
            if parent == number {
                break;
            }
            let above = self.parents.get(parent).copied().unwrap_or(parent);
            if let Some(own) = self.parents.get_mut(number) {
                *own = above;
            }
            number = above;
        }
        number
    }

    fn join<'c>(&mut self, mut chunks: impl Iterator<Item = &'c ChunkCoord>) {
        let Some(first) = chunks.next() else {
            return;
        };
        let first = self.number(first);
        for chunk in chunks {
            let (number, root) = (self.number(chunk), self.root(first));
            let other = self.root(number);
            if let Some(parent) = self.parents.get_mut(other) {
                *parent = root;
            }
        }
    }

    /// Returns the sets.
    fn finish(mut self) -> Vec<Vec<ChunkCoord>> {
        let mut groups: BTreeMap<usize, Vec<ChunkCoord>> = BTreeMap::new();
        for (chunk, number) in core::mem::take(&mut self.numbers) {
            groups.entry(self.root(number)).or_default().push(chunk);
        }
        groups.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(weights: &[u64]) -> Vec<(usize, Option<u64>)> {
        weights.iter().copied().map(Some).enumerate().collect()
    }

    #[test]
    fn runs_have_about_equal_weights() {
        let runs = in_order(known(&[1; 10]), 4);
        let rows: Vec<_> = runs.iter().map(|(_, rows)| rows.unwrap()).collect();
        assert_eq!(rows, [3, 3, 2, 2]);
        let runs = in_order(known(&[100, 1, 1, 1]), 3);
        let items: Vec<_> = runs.into_iter().map(|(items, _)| items).collect();
        assert_eq!(items, [vec![0], vec![1, 2], vec![3]]);
        assert_eq!(in_order(known(&[0, 0]), 8).len(), 2);
        assert_eq!(in_order(known(&[]), 8), []);
        let unknown = vec![((), None), ((), Some(5)), ((), None)];
        let rows: Vec<_> = in_order(unknown, 3)
            .into_iter()
            .map(|(_, rows)| rows)
            .collect();
        assert_eq!(rows, [None, Some(5), None]);
    }

    #[test]
    fn chunks_that_links_join_are_one_group() {
        let chunk = |at: i64| ChunkCoord::new([at]);
        let mut union = ChunkUnion::default();
        for at in 0..6 {
            union.number(&chunk(at));
        }
        union.join([chunk(0), chunk(3)].iter());
        union.join([chunk(5), chunk(3), chunk(7)].iter());
        union.join([chunk(1), chunk(1)].iter());
        let groups = union.finish();
        let [a, b, c, d] = groups.as_slice() else {
            panic!("{groups:?}")
        };
        let mut all = [a, b, c, d];
        all.sort();
        let expected = [&[0, 3, 5, 7][..], &[1], &[2], &[4]];
        for (group, expected) in all.into_iter().zip(expected) {
            let chunks: Vec<i64> = group.iter().map(|chunk| chunk.coords()[0]).collect();
            assert_eq!(chunks, expected);
        }
        let weighted = groups.into_iter().map(|group| {
            let rows = u64::try_from(group.len()).ok();
            (group, rows)
        });
        let sets = balanced(weighted.collect(), 2);
        let rows: Vec<_> = sets.iter().map(|(_, rows)| *rows).collect();
        assert_eq!(rows, [Some(4), Some(3)]);
    }

    #[test]
    fn text_comes_back_and_other_text_is_rejected() {
        let share = [
            PartitionShare::Whole,
            PartitionShare::Chunks(vec![ChunkCoord::new([0, -3]), ChunkCoord::new([7, 1])]),
            PartitionShare::Objects(vec![5, -9, 5]),
        ];
        for share in share {
            let part = QueryPartition {
                rows: Some(12),
                bytes: Some(144),
                bounds: Bbox::new(&[0.1, -1e300], &[0.1, f64::MAX]).ok(),
                level: Some(LevelId::new(3)),
                share,
            };
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        let whole = QueryPartition::whole();
        assert_eq!(whole.to_string(), "{}");
        assert_eq!("{}".parse(), Ok(whole));
        for (text, member) in [
            ("", "the JSON object"),
            ("[]", "the JSON object"),
            (r#"{"level": -1}"#, "level"),
            (r#"{"level": 5000000000}"#, "level"),
            (r#"{"objects": [1]}"#, "level"),
            (r#"{"level": 0, "objects": [1], "chunks": []}"#, "level"),
            (r#"{"level": 0, "objects": [1.5]}"#, "objects"),
            (r#"{"level": 0, "chunks": [1]}"#, "chunks"),
            (r#"{"rows": "1"}"#, "rows"),
            (r#"{"bytes": []}"#, "bytes"),
            (r#"{"bounds": [[0]]}"#, "bounds"),
            (r#"{"bounds": [[0], [0, 1]]}"#, "bounds"),
        ] {
            let parsed: Result<QueryPartition, _> = text.parse();
            assert_eq!(parsed, Err(ParsePartitionError(member)), "{text}");
        }
    }
}
