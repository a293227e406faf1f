//! Counts of a partly rebuilt level: the previous counts, without the stale parts, plus the new
//! parts.

use std::collections::{BTreeMap, BTreeSet};

use zvf_dataset::{Failure, base};
use zvf_format::path::Delta;
use zvf_model::{array::LinkFamily, grid::ChunkCoord, layout::ArrayRole, level::LevelId};

use super::super::build::Build;

/// Previous counts of a level, and the part of them that is rebuilt.
#[derive(Debug, Default)]
pub(super) struct RemovedCounts {
    rows: Count,
    chunks: Count,
    /// Links by level and delta.
    links: BTreeMap<(LevelId, i32), Count>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: u64,
    removed: u64,
}

impl RemovedCounts {
    pub(super) async fn read(
        build: &Build<'_>,
        stale: &BTreeSet<ChunkCoord>,
    ) -> Result<Self, Failure> {
        let dataset = build.source.dataset;
        let catalog = dataset.catalog();
        let mut removed = Self::default();
        let level = base::level(dataset, build.target).await?;
        removed.rows.all = level.vertex_count.unwrap_or(0);
        if let Some(vertices) = catalog
            .stored_array(build.target, &ArrayRole::Vertices)
            .await?
        {
            let own: Vec<ChunkCoord> = vertices
                .chunks()
                .iter()
                .filter(|chunk| stale.contains(*chunk))
                .cloned()
                .collect();
            let row = build.shared.recipe.positions.size() * build.shared.recipe.axes;
            for cell in catalog.stored_cells(&vertices, &own).await {
                let cell = cell.map_err(zvf_catalog::CatalogError::from)?;
                removed.rows.removed += (cell.len() / row.max(1)) as u64;
            }
            removed.chunks = Count {
                all: vertices.chunks().len() as u64,
                removed: own.len() as u64,
            };
        }
        let mut families = vec![(build.target, 0)];
        for from in 0..build.target.number() {
            let from = LevelId::new(from);
            let step = i32::try_from(build.target.number() - from.number()).unwrap_or(i32::MAX);
            families.extend([(from, step), (build.target, -step)]);
        }
        for (level, delta) in families {
            if delta == 0 && build.shared.links.is_none() {
                continue;
            }
            let Some(cells) = catalog.all_link_cells(level, Delta::new(delta)).await? else {
                continue;
            };
            let mut count = Count::default();
            for (node, _) in cells.families() {
                let attributes = super::super::source::of_node(dataset, &node).await?;
                count.all += LinkFamily::declared_links(&attributes).unwrap_or(0);
            }
            let is_gone = |cell: &usize| {
                let chunks = cells.chunks(*cell).unwrap_or_default();
                match delta {
                    0 => chunks.iter().any(|chunk| stale.contains(chunk)),
                    1.. => chunks.iter().skip(1).any(|chunk| stale.contains(chunk)),
                    _ => chunks.iter().take(1).any(|chunk| stale.contains(chunk)),
                }
            };
            let own: Vec<usize> = (0..cells.len()).filter(is_gone).collect();
            for links in catalog.read_links(&cells, &own).await? {
                let is_copy = delta == 0 && !build.source.is_first_copy(&links);
                if !is_copy {
                    count.removed += (links.ends.len() / links.width.get()) as u64;
                }
            }
            removed.links.insert((level, delta), count);
        }
        Ok(removed)
    }

    /// Adds the counts of unchanged parts to the tally.
    pub(super) fn add_unchanged(&self, build: &mut Build<'_>) {
        let stays = |count: Count| count.all.saturating_sub(count.removed);
        let target = build.target;
        let of = |level: LevelId, delta: i32| {
            let count = self.links.get(&(level, delta)).copied();
            count.map_or(0, stays)
        };
        let tally = &mut build.tally;
        tally.rows += stays(self.rows);
        tally.chunks += stays(self.chunks);
        if build.shared.recipe.shape.is_shared() {
            // The lengths of shared fragments are in the fragment indexes of their chunks.
            tally.is_partly_named = stays(self.chunks) > 0;
        } else {
            tally.names = tally.rows;
        }
        tally.links += of(target, 0);
        // Levels with copies of links are never rebuilt in part.
        tally.physical = tally.links;
        tally.between_levels += of(build.source.id, 1);
        for (form, _, count) in &mut build.between {
            count.0 += of(form.keys().level, form.delta.levels());
        }
    }
}
