//! Objects with their vertices and links, in groups that fit memory.

use zvf::{Query, QueryResult};

use super::{Export, ExportError};
use crate::layers::survey::StoreSurvey;

/// Vertices that are read at once.
const AT_ONCE: u64 = 1 << 20;

/// Reads groups of objects, or the whole store if it has no objects.
pub(super) async fn for_each_group(
    work: &Export<'_>,
    survey: &StoreSurvey,
    mut each: impl FnMut(&QueryResult) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    if !survey.has_objects {
        return each(&work.reading.dataset.query(&work.reading.query()).await?);
    }
    let ids: Vec<i64> = survey
        .segments
        .ids
        .iter()
        .copied()
        .filter(|id| *id >= 0)
        .collect();
    let objects = u64::try_from(ids.len()).unwrap_or(u64::MAX).max(1);
    let average = survey.vertices.div_ceil(objects).max(1);
    let group = usize::try_from(AT_ONCE.div_ceil(average)).unwrap_or(1);
    let mut done = 0_u64;
    for ids in ids.chunks(group.clamp(1, 16_384)) {
        (work.reading.report)(done, objects);
        done = done.saturating_add(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        let query: Query = work.reading.query().objects(ids);
        each(&work.reading.dataset.query(&query).await?)?;
    }
    Ok(())
}
