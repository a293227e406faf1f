//! Points and paths that coarser levels of the store keep, which a viewer shows first.

use std::{
    hash::{DefaultHasher, Hasher},
    ops::ControlFlow,
};

use zvf_catalog::Selection;
use zvf_model::level::LevelId;
use zvf_query::LevelChoice;

use super::{
    LayerError, LayerInput, float_positions::FloatPositions, levels::usable_levels,
    survey::StoreSurvey,
};

/// Points or objects of a level. Larger levels are left out.
const MAX_KEYS: u64 = 1 << 20;

/// The contents of coarser levels, by a key: a hash of the position of a point, or the object of a path.
#[derive(Debug, Default)]
pub(crate) struct CoarseFirst {
    /// Sorted keys of each level, the coarsest first.
    levels: Vec<Vec<u64>>,
    /// Annotations of level 0 that are on each level, and on no coarser one.
    counts: Vec<u64>,
    /// The share of annotations on each level and the coarser ones.
    shares: Vec<f64>,
}

impl CoarseFirst {
    /// Reads the positions or objects of the coarser levels.
    pub(crate) async fn new(
        reading: &LayerInput<'_>,
        survey: &StoreSurvey,
    ) -> Result<Self, LayerError> {
        let mut levels = Vec::new();
        let usable = usable_levels(reading.dataset, survey.is_path).await?;
        for level in usable.chosen.into_iter().rev() {
            let keys = if survey.is_path {
                objects(reading, level).await?
            } else {
                positions(reading, level).await?
            };
            levels.extend(keys.map(|mut keys| {
                keys.sort_unstable();
                keys.dedup();
                keys
            }));
        }
        Ok(Self {
            counts: vec![0; levels.len()],
            levels,
            shares: Vec::new(),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Returns the coarsest level that has a key.
    fn level(&self, key: u64) -> Option<usize> {
        let mut levels = self.levels.iter();
        levels.position(|keys| keys.binary_search(&key).is_ok())
    }

    /// Counts an annotation of level 0.
    pub(crate) fn count(&mut self, key: u64) {
        let level = self.level(key);
        if let Some(count) = level.and_then(|level| self.counts.get_mut(level)) {
            *count = count.saturating_add(1);
        }
    }

    /// Ends the count of this many annotations.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share needs no more than 53 bits"
    )]
    pub(crate) fn finish(&mut self, annotations: u64) {
        let mut sum = 0_u64;
        let shares = self.counts.iter().map(|count| {
            sum = sum.saturating_add(*count);
            (sum as f64 / annotations.max(1) as f64).min(1.0)
        });
        self.shares = shares.collect();
    }

    /// Returns the rank in [0, 1) of an annotation: those of coarser levels have the lower ranks, and
    /// those of one level follow `random`, a number in [0, 1).
    pub(crate) fn rank(&self, key: u64, random: f64) -> f64 {
        let level = self.level(key).unwrap_or(self.levels.len());
        let coarser = level
            .checked_sub(1)
            .and_then(|level| self.shares.get(level));
        let from = coarser.copied().unwrap_or(0.0);
        let to = self.shares.get(level).copied().unwrap_or(1.0);
        from + (to - from) * random
    }
}

/// Returns the key of a point.
pub(crate) fn key_of_point(point: &[f32]) -> u64 {
    // The keys of this hasher are constants.
    let mut hasher = DefaultHasher::new();
    for along in point {
        hasher.write_u32(along.to_bits());
    }
    hasher.finish()
}

/// Returns the key of a path.
pub(crate) fn key_of_path(object: i64) -> u64 {
    object.cast_unsigned()
}

async fn positions(
    reading: &LayerInput<'_>,
    level: LevelId,
) -> Result<Option<Vec<u64>>, LayerError> {
    let query = reading
        .query()
        .columns(Selection::none())
        .owners(false)
        .level(LevelChoice::Number(level));
    let count = reading.dataset.count(&query).await?.vertices;
    if count > MAX_KEYS {
        return Ok(None);
    }
    let rank = reading.space.rank();
    let mut keys = Vec::new();
    let work = reading.dataset.batches(&query, |batch| {
        if let Some(positions) = FloatPositions::of(&batch, rank) {
            keys.extend(positions.finite().map(|point| key_of_point(&point)));
        }
        ControlFlow::Continue(())
    });
    work.await?;
    Ok(Some(keys))
}

async fn objects(reading: &LayerInput<'_>, level: LevelId) -> Result<Option<Vec<u64>>, LayerError> {
    let query = reading
        .query()
        .columns(Selection::none())
        .level(LevelChoice::Number(level));
    let (mut keys, mut is_large) = (Vec::new(), false);
    let work = reading.dataset.batches(&query, |batch| {
        keys.extend(batch.objects.iter().copied().map(key_of_path));
        is_large = u64::try_from(keys.len()).is_ok_and(|count| count > MAX_KEYS);
        if is_large {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    work.await?;
    Ok((!is_large).then_some(keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarser_levels_have_lower_ranks() {
        let mut first = CoarseFirst {
            levels: vec![vec![3], vec![1, 3, 5]],
            counts: vec![0; 2],
            shares: Vec::new(),
        };
        (0..10).for_each(|key| first.count(key));
        first.finish(10);
        let close = |key, random, expected: f64| {
            let rank = first.rank(key, random);
            assert!((rank - expected).abs() < 1e-12, "{key}: {rank}");
        };
        close(3, 0.5, 0.05);
        close(5, 0.5, 0.2);
        close(7, 0.0, 0.3);
        close(7, 0.5, 0.65);
        let none = CoarseFirst::default();
        assert!((none.rank(7, 0.5) - 0.5).abs() < 1e-12);
    }
}
