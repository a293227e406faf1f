//! Regions returned at one level or the next finer one.

use std::collections::{BTreeMap, BTreeSet};

use zvf_model::{grid::ChunkCoord, level::LevelId, root::RootMetadata};

use super::{
    CountsByLevel,
    count::{Count, UNKNOWN},
    is_underfilled,
    refine::{Region, refine},
};
use crate::{
    error::QueryError,
    geometry::{Bbox, squared_distance_to_bbox},
    query::VertexBudget,
    resolve::choice::{LevelPart, LevelParts, LevelSample, VertexSample},
    session::Session,
};

/// Two alternatives for a selection, divided into regions.
pub(super) struct Regions<'c> {
    /// Levels returned together, coarsest first.
    coarse: BTreeSet<LevelId>,
    fine: BTreeSet<LevelId>,
    /// Size of a region along each axis in chunks of the root.
    extent: Vec<u64>,
    /// Size of a chunk of each level, in the same unit.
    scales: BTreeMap<LevelId, Vec<u64>>,
    counted: &'c CountsByLevel,
}

impl Session<'_> {
    /// Returns the smallest regions that chunks of all these levels fill; `None` if there are none
    /// because the chunks of a level are not a multiple of the root's.
    pub(super) async fn regions<'c>(
        &self,
        coarse: &[LevelId],
        fine: &[LevelId],
        counted: &'c CountsByLevel,
    ) -> Result<Option<Regions<'c>>, QueryError> {
        let mut extent = vec![1_u64; self.catalog.root.axes.len()];
        let mut scales = BTreeMap::new();
        for id in coarse.iter().chain(fine) {
            let level = self.catalog.level(*id).await?;
            let Ok(scale) = level.metadata.scale(self.catalog.root) else {
                return Ok(None);
            };
            let scale: Vec<u64> = scale.into_iter().map(|n| u64::from(n.get())).collect();
            for (extent, scale) in extent.iter_mut().zip(&scale) {
                let Some(both) = multiple(*extent, *scale) else {
                    return Ok(None);
                };
                *extent = both;
            }
            scales.insert(*id, scale);
        }
        Ok(Some(Regions {
            coarse: coarse.iter().copied().collect(),
            fine: fine.iter().copied().collect(),
            extent,
            scales,
            counted,
        }))
    }
}

impl Regions<'_> {
    /// Refines regions within the budget; `None` if no region can be refined.
    pub(super) fn parts(&self, budget: &VertexBudget, root: &RootMetadata) -> Option<LevelParts> {
        let mut regions: BTreeMap<Vec<i64>, [u64; 2]> = BTreeMap::new();
        for level in self.coarse.union(&self.fine) {
            for (chunk, count) in self.chunks(*level) {
                let sums = regions.entry(self.region_of(*level, chunk)?).or_default();
                for (sum, levels) in sums.iter_mut().zip([&self.coarse, &self.fine]) {
                    if levels.contains(level) {
                        *sum = sum.saturating_add(count.share);
                    }
                }
            }
        }
        let regions: Vec<Region> = regions
            .into_iter()
            .map(|(cell, [coarse, fine])| Region {
                distance: self.distance(&cell, budget, root),
                cell,
                coarse,
                fine,
            })
            .collect();
        let is_refined = refine(&regions, budget.vertices);
        let counts = regions.iter().zip(&is_refined);
        let total = counts
            .map(|(region, is_refined)| {
                if *is_refined {
                    region.fine
                } else {
                    region.coarse
                }
            })
            .fold(0, u64::saturating_add);
        let mut refined: BTreeMap<Vec<i64>, bool> = BTreeMap::new();
        let mut rest = Vec::new();
        for (region, is_refined) in regions.into_iter().zip(is_refined) {
            if is_refined {
                refined.insert(region.cell, false);
            } else if region.gain() > 0 {
                rest.push(region);
            }
        }
        // A single level whose vertices are sampled.
        let mut own = self.fine.difference(&self.coarse);
        let level = own.next().copied().filter(|_| own.next().is_none());
        let next = rest.into_iter().min_by(Region::order);
        let sampled = next.filter(|_| is_underfilled(total, budget.vertices));
        let mut sample = None;
        if let Some((level, region)) = level.zip(sampled) {
            sample = self.sample(level, &region, budget.vertices.saturating_sub(total));
            refined.extend(sample.is_some().then_some((region.cell, true)));
        }
        if refined.is_empty() {
            return None;
        }
        let levels: BTreeSet<&LevelId> = self.coarse.union(&self.fine).collect();
        let levels = levels.into_iter().rev();
        let parts: Option<LevelParts> = levels.map(|level| self.part(*level, &refined)).collect();
        // At least one part, so that there is a result.
        let mut parts = parts?;
        parts.extend(sample);
        parts.retain(|part| part.chunks.as_ref().is_none_or(|chunks| !chunks.is_empty()));
        (!parts.is_empty()).then_some(parts)
    }

    /// Returns the part of a level to read. `refined` contains the regions that are read from the finer
    /// levels, and `true` for the region that is sampled.
    fn part(&self, level: LevelId, refined: &BTreeMap<Vec<i64>, bool>) -> Option<LevelPart> {
        let mut counted = Vec::new();
        for (chunk, count) in self.chunks(level) {
            let is_read = match refined.get(&self.region_of(level, chunk)?) {
                None => self.coarse.contains(&level),
                Some(false) => self.fine.contains(&level),
                Some(true) => self.fine.contains(&level) && self.coarse.contains(&level),
            };
            if is_read {
                counted.push((chunk.clone(), count.share));
            }
        }
        Some(LevelPart::of_chunks(level, counted))
    }

    /// Returns a sample of the vertices of a region, in place of those of the coarser levels and of `more`
    /// vertices.
    fn sample(&self, level: LevelId, region: &Region, more: u64) -> Option<LevelPart> {
        let mut counted = Vec::new();
        let (mut kept, mut of) = (more, 0_u64);
        for other in self.coarse.union(&self.fine) {
            let is_left = self.coarse.contains(other) && !self.fine.contains(other);
            for (chunk, count) in self.chunks(*other) {
                if self.region_of(*other, chunk)? != region.cell {
                    continue;
                }
                if count.all == UNKNOWN {
                    return None;
                }
                if *other == level {
                    of = of.saturating_add(count.share);
                    counted.push((chunk.clone(), count.share));
                } else if is_left {
                    kept = kept.saturating_add(count.share);
                }
            }
        }
        let sample = VertexSample { kept, of };
        let mut before = 0_u64;
        for (_, count) in &mut counted {
            let next = before.saturating_add(*count);
            *count = sample.kept_of(next).saturating_sub(sample.kept_of(before));
            before = next;
        }
        (kept < of).then(|| LevelPart {
            sample: Some(LevelSample::Vertices(sample)),
            ..LevelPart::of_chunks(level, counted)
        })
    }

    fn chunks(&self, level: LevelId) -> impl Iterator<Item = (&ChunkCoord, &Count)> {
        let counts = self.counted.get(&level).into_iter();
        counts.flat_map(|counts| &counts.chunks)
    }

    /// Returns the region that contains a chunk.
    fn region_of(&self, level: LevelId, chunk: &ChunkCoord) -> Option<Vec<i64>> {
        let coords = chunk.spatial(self.extent.len())?.iter();
        let scales = self.scales.get(&level)?.iter().zip(&self.extent);
        let axes = coords.zip(scales).map(|(coord, (scale, extent))| {
            let chunks = i64::try_from(extent.checked_div(*scale)?).ok()?;
            coord.checked_div_euclid(chunks)
        });
        axes.collect()
    }

    /// Returns the squared distance of a region from the focus.
    fn distance(&self, cell: &[i64], budget: &VertexBudget, root: &RootMetadata) -> f64 {
        let Some(focus) = &budget.focus else {
            return 0.0;
        };
        let sides = self
            .extent
            .iter()
            .zip(root.chunk_shape.extents())
            .map(|(chunks, extent)| float(*chunks) * extent);
        let corners = cell.iter().zip(sides).map(|(cell, side)| {
            let lo = signed(*cell) * side;
            (lo, lo + side)
        });
        let (lo, hi): (Vec<f64>, Vec<f64>) = corners.unzip();
        Bbox::new(&lo, &hi).map_or(0.0, |bbox| squared_distance_to_bbox(focus, &bbox))
    }
}

/// Returns the least common multiple.
fn multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor.checked_rem(rest)?);
    }
    a.checked_div(divisor)?.checked_mul(b)
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "distances only order regions"
)]
fn float(value: u64) -> f64 {
    value as f64
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "distances only order regions"
)]
fn signed(value: i64) -> f64 {
    value as f64
}
