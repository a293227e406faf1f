//! Objects with their vertices and links, in groups that fit memory.

use zvf::{Query, QueryResult};

use super::{Export, ExportError};
use crate::layers::{meshes::MeshLevels, survey::StoreSurvey};

/// Vertices that are read at once.
const BATCH_VERTICES: u64 = 1 << 20;

/// The objects of a layer, or a share of them.
pub(super) struct ObjectShare<'a> {
    /// Ids in the order of the level; `None` for a level without objects, which is shown as one.
    pub(super) ids: Option<&'a [i64]>,
    /// Mean number of vertices of the objects of the level.
    pub(super) vertices: u64,
}

impl<'a> ObjectShare<'a> {
    /// Returns all objects of a level.
    pub(super) fn all(survey: &'a StoreSurvey) -> Self {
        let ids = survey.has_objects.then_some(survey.segments.ids.as_slice());
        let objects = ids.unwrap_or_default().iter().filter(|id| **id >= 0);
        let objects = u64::try_from(objects.count()).unwrap_or(u64::MAX).max(1);
        Self {
            ids,
            vertices: survey.vertices.div_ceil(objects).max(1),
        }
    }
}

/// Reads groups of objects, or the whole level if it has no objects. The first `done` groups are left
/// out.
pub(super) async fn for_each_group(
    work: &Export<'_>,
    share: &ObjectShare<'_>,
    done: usize,
    mut each: impl FnMut(&QueryResult) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    for group in groups(work, share).into_iter().skip(done) {
        (work.reading.report)(group.before, group.objects);
        each(&work.reading.dataset.query(&group.query).await?)?;
    }
    Ok(())
}

/// Reads groups of objects on all levels of meshes, the finest first. The first `done` groups are left
/// out.
pub(super) async fn for_each_group_of_levels(
    work: &Export<'_>,
    share: &ObjectShare<'_>,
    levels: &MeshLevels,
    done: usize,
    mut each: impl FnMut(&[QueryResult]) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    for group in groups(work, share).into_iter().skip(done) {
        (work.reading.report)(group.before, group.objects);
        each(&levels.read(work.reading.dataset, &group.query).await?)?;
    }
    Ok(())
}

/// Objects that are read at once.
struct ObjectGroup {
    query: Query,
    /// Objects of the groups before.
    before: u64,
    /// Objects of all groups.
    objects: u64,
}

fn groups(work: &Export<'_>, share: &ObjectShare<'_>) -> Vec<ObjectGroup> {
    let Some(ids) = share.ids else {
        return vec![ObjectGroup {
            query: work.reading.query(),
            before: 0,
            objects: 1,
        }];
    };
    let ids: Vec<i64> = ids.iter().copied().filter(|id| *id >= 0).collect();
    let objects = u64::try_from(ids.len()).unwrap_or(u64::MAX);
    let group = BATCH_VERTICES.div_ceil(share.vertices.max(1));
    let group = usize::try_from(group).unwrap_or(1);
    let mut before = 0_u64;
    let groups = ids.chunks(group.clamp(1, 16_384)).map(|ids| {
        let group = ObjectGroup {
            query: work.reading.query().objects(ids),
            before,
            objects,
        };
        before = before.saturating_add(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        group
    });
    groups.collect()
}
