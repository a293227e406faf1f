//! Objects near a position.

use std::collections::HashMap;

use zvf_model::object_ids::Owner;
use zvf_query::{Query, QueryResult, Selection};

use super::Dataset;
use crate::error::Error;

/// Factor by which more elements are requested if too few objects have them.
const GROWTH: usize = 8;

/// An object and its distance from a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearestObject {
    /// The id of the object.
    pub id: i64,
    /// The distance of its nearest vertex, path or link.
    pub distance: f64,
}

impl Dataset {
    /// Returns the objects nearest to the position of a query, in ascending order of distance: as many
    /// as the query requests elements, or all that it selects. Elements without an object are left out.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`query`](Self::query).
    pub async fn nearest_objects(&self, query: &Query) -> Result<Vec<NearestObject>, Error> {
        let Some(nearest) = query.nearest else {
            return Ok(Vec::new());
        };
        let wanted = nearest.count;
        let mut query = query.clone().columns(Selection::none());
        query.owners = true;
        let mut count = wanted;
        loop {
            query = query.nearest(nearest.position, count);
            let result = self.query(&query).await?;
            let objects = objects_of(&result);
            let elements = result.distances.as_ref().map_or(0, Vec::len);
            if objects.len() >= wanted || elements < count {
                return Ok(objects.into_iter().take(wanted).collect());
            }
            count = count.saturating_mul(GROWTH);
        }
    }
}

/// Returns the objects of a result, by distance.
fn objects_of(result: &QueryResult) -> Vec<NearestObject> {
    let distances = result.distances.iter().flatten();
    let owner = |row: u64| {
        let ids = result.object_ids.as_ref()?;
        let id = ids.numbers().get(usize::try_from(row).ok()?)?;
        Owner::from_number(*id).object()
    };
    let owners: Vec<Option<i64>> = match (&result.parts, &result.links) {
        (Some(parts), _) => parts.objects.iter().copied().map(Some).collect(),
        (None, Some(links)) => {
            let width = usize::try_from(links.width).unwrap_or(usize::MAX).max(1);
            let links = links.ends.chunks_exact(width);
            links.map(|ends| owner(*ends.first()?)).collect()
        }
        (None, None) => (0..result.positions.len() as u64).map(owner).collect(),
    };
    let mut ranks: HashMap<i64, usize> = HashMap::new();
    let mut objects: Vec<NearestObject> = Vec::new();
    for (owner, distance) in owners.into_iter().zip(distances) {
        let Some(id) = owner else { continue };
        let rank = *ranks.entry(id).or_insert(objects.len());
        if rank == objects.len() {
            let distance = *distance;
            objects.push(NearestObject { id, distance });
        }
    }
    objects
}
