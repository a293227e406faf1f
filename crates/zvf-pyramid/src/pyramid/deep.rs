//! Links that span several levels, composed from existing links.

use std::{collections::BTreeMap, sync::Arc};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use zvf_build::coarsen::NO_VERTEX;
use zvf_catalog::CellLinks;
use zvf_dataset::{Failure, base, nodes::place};
use zvf_format::path::Delta;
use zvf_model::{
    grid::ChunkCoord,
    layout::{ArrayRole, LevelKeys},
    level::LevelId,
};

use super::{
    build::Build,
    job::{NewCell, file_pairs},
    shards::LastSteps,
};

/// Linked rows, by the chunks of both ends.
type Pairs = BTreeMap<(ChunkCoord, ChunkCoord), Vec<(u64, u64)>>;

/// Approximate bytes of links in memory.
const BATCH_BYTES: usize = 8 << 20;
/// Number of chunks in the first batch, which measures the number of links in a chunk.
const FIRST_BATCH: usize = 8;
/// Maximum number of chunks in a batch.
const MAX_BATCH: usize = 256;

/// Cells and counts of links from some chunks.
#[derive(Default)]
struct DeepLinks {
    cells: Vec<NewCell>,
    count: u64,
    crossing: u64,
}

impl Build<'_> {
    /// Builds links from levels below the source, and back.
    pub(super) async fn deep_links(&mut self) -> Result<(), Failure> {
        if !self.shared.keeps_parents || self.shared.up.is_none() {
            return Ok(());
        }
        let depth = self.options.depth.unwrap_or(u32::MAX);
        let first = self.target.number().saturating_sub(depth);
        for number in first..self.source.id.number() {
            self.deep_from(LevelId::new(number)).await?;
        }
        Ok(())
    }

    async fn deep_from(&mut self, from: LevelId) -> Result<(), Failure> {
        let dataset = self.source.dataset;
        let catalog = dataset.catalog();
        let step = i32::try_from(self.source.id.number() - from.number()).unwrap_or(i32::MAX);
        let Some(cells) = catalog.all_link_cells(from, Delta::new(step)).await? else {
            return self.count_no_deep_links(from, step).await;
        };
        let metadata = base::level(dataset, from).await?;
        let aside = self.shared.aside.clone();
        let up = self.link_form(&metadata, &self.metadata, step + 1, &aside)?;
        let down = match &self.shared.down {
            Some(_) => Some(self.link_form(&self.metadata, &metadata, -step - 1, &aside)?),
            None => None,
        };
        let mut shared = (*self.shared).clone();
        shared.fine = self.arrays_of(&metadata);
        for cell in 0..cells.len() {
            for chunk in cells.chunks(cell).unwrap_or_default().iter().take(1) {
                shared.fine.extent.reach(chunk.coords());
            }
        }
        let shared = Arc::new(shared);
        // The cells of a chunk stay together, so that each new cell is complete.
        let mut by_chunk: BTreeMap<ChunkCoord, Vec<usize>> = BTreeMap::new();
        for cell in 0..cells.len() {
            let chunks = cells.chunks(cell).unwrap_or_default();
            let is_made = chunks
                .get(1)
                .is_none_or(|middle| self.is_made(&self.source.chunk_of(middle, &self.scale)));
            if let Some(chunk) = chunks.first().filter(|_| is_made) {
                by_chunk.entry(chunk.clone()).or_default().push(cell);
            }
        }
        let mut groups: Vec<(ChunkCoord, Vec<usize>)> = by_chunk.into_iter().collect();
        groups.sort_by_cached_key(|(chunk, _)| shared.shard_of(&shared.fine, chunk));
        let mut last_steps = LastSteps::default();
        for (step, (chunk, own)) in groups.iter().enumerate() {
            last_steps.record(&shared, &shared.fine, chunk, step);
            let middles = own.iter().filter_map(|cell| cells.chunks(*cell)?.get(1));
            for middle in middles {
                let end = self.source.chunk_of(middle, &self.scale);
                last_steps.record(&shared, &shared.coarse, &end, step);
            }
        }
        let mut done = 0;
        let (mut count, mut crossing) = (0, 0);
        let (mut rest, mut at_once) = (groups.as_slice(), FIRST_BATCH);
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(at_once.min(rest.len()));
            rest = later;
            done += batch.len();
            let wanted: Vec<usize> = batch
                .iter()
                .flat_map(|(_, own)| own.iter().copied())
                .collect();
            let mut read = catalog.read_links(&cells, &wanted).await?.into_iter();
            let own: Vec<Vec<CellLinks>> = batch
                .iter()
                .map(|(_, group)| group.len())
                .map(|cells| read.by_ref().take(cells).collect())
                .collect();
            let found = own.iter().flatten().map(|links| links.ends.len());
            let bytes = found.sum::<usize>() * size_of::<(u32, u64)>();
            at_once = (BATCH_BYTES / (bytes / batch.len()).max(1)).clamp(1, MAX_BATCH);
            let placed_links = own.par_iter().map(|links| {
                let mut placed_links = DeepLinks::default();
                for ((start, end), mut pairs) in self.pairs(links) {
                    pairs.sort_unstable();
                    placed_links.count += pairs.len() as u64;
                    placed_links.crossing += if start == end { 0 } else { pairs.len() as u64 };
                    let cells = &mut placed_links.cells;
                    file_pairs(&up, &start, &end, &pairs, shared.fine.arity, cells)?;
                    if let Some(down) = &down {
                        let mut back: Vec<(u64, u64)> =
                            pairs.iter().map(|(a, b)| (*b, *a)).collect();
                        back.sort_unstable();
                        file_pairs(down, &end, &start, &back, shared.coarse.arity, cells)?;
                    }
                }
                Ok(placed_links)
            });
            let mut new = Vec::new();
            for placed_links in placed_links.collect::<Result<Vec<DeepLinks>, Failure>>()? {
                count += placed_links.count;
                crossing += placed_links.crossing;
                new.extend(placed_links.cells);
            }
            self.put_cells(&shared, new, &last_steps, done).await?;
        }
        let count = (count, crossing);
        let arity = shared.fine.arity;
        self.deep_places.insert(from, shared);
        self.deep_metadata.insert(from, metadata);
        self.between.push((up, arity, count));
        let arity = self.shared.coarse.arity;
        self.between.extend(down.map(|down| (down, arity, count)));
        Ok(())
    }

    /// Adds the families of links between `from` and a partly rebuilt level that has lost all of them, so
    /// that their counts are written.
    async fn count_no_deep_links(&mut self, from: LevelId, step: i32) -> Result<(), Failure> {
        let keys = LevelKeys {
            level: from,
            ..self.shared.coarse.keys
        };
        let family = place(keys.node(&ArrayRole::LinkFamily(Delta::new(step + 1))))?;
        if self.only.is_none() || !self.is_there(&family).await? {
            return Ok(());
        }
        let metadata = base::level(self.source.dataset, from).await?;
        let aside = self.shared.aside.clone();
        let up = self.link_form(&metadata, &self.metadata, step + 1, &aside)?;
        let arity = self.arrays_of(&metadata).arity;
        self.between.push((up, arity, (0, 0)));
        if self.shared.down.is_some() {
            let down = self.link_form(&self.metadata, &metadata, -step - 1, &aside)?;
            let arity = self.shared.coarse.arity;
            self.between.push((down, arity, (0, 0)));
        }
        Ok(())
    }

    /// Pairs the first end of each link with the coarse row of its second end.
    fn pairs(&self, links: &[CellLinks]) -> Pairs {
        let mut pairs = Pairs::new();
        for links in links {
            self.add_pairs(links, &mut pairs);
        }
        pairs
    }

    fn add_pairs(&self, links: &CellLinks, pairs: &mut Pairs) {
        // Most links have the same chunks as the link before.
        let of = |ends: &&[(u32, u64)]| (ends[0].0, ends[1].0);
        let ends: Vec<&[(u32, u64)]> = links.ends.chunks_exact(2).collect();
        for alike in ends.chunk_by(|a, b| of(a) == of(b)) {
            let Some((start, middle)) = alike.first().map(of) else {
                continue;
            };
            let (Some(start), Some(middle)) = (
                links.chunks.get(start as usize),
                links.chunks.get(middle as usize),
            ) else {
                continue;
            };
            let Some(parents) = self.tally.parents.get(middle) else {
                continue;
            };
            let mut found = alike
                .iter()
                .filter_map(|ends| {
                    let row = usize::try_from(ends[1].1).ok()?;
                    let parent = parents.get(row).filter(|parent| **parent != NO_VERTEX)?;
                    Some((ends[0].1, u64::from(*parent)))
                })
                .peekable();
            if found.peek().is_some() {
                let end = self.source.chunk_of(middle, &self.scale);
                pairs.entry((start.clone(), end)).or_default().extend(found);
            }
        }
    }
}
