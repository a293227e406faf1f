//! Steps of paths between chunks, stored as links by generations before 0.9.

use zvf_build::{
    BuildError,
    migrate::{LinkArrayKey, LinkRecordPolicy, LinkTotals},
};
use zvf_catalog::LinkCells;
use zvf_dataset::{Failure, nodes::place};
use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{
    geometry_kind::GeometryKind,
    layout::GroupRole,
    level::LevelId,
    metadata::Attributes,
    root::{CrossChunkStrategy, LinksConvention},
    word::Word,
};

use crate::migrate::{Migration, level::Level, no_place, too_far};

impl Migration<'_> {
    /// Returns whether consecutive vertices of objects are connected, without links.
    pub(in crate::migrate) fn has_paths(&self) -> bool {
        let root = self.source.root();
        let convention = root.links_convention.clone().unwrap_or_default();
        convention == LinksConvention::ImplicitSequential
            && root.kinds().any(GeometryKind::is_paths)
    }

    /// Returns whether the target has steps of paths between chunks as links, and the source has not.
    pub(in crate::migrate) fn lacks_step_links(
        &self,
        level: &Level,
        links: &[(Delta, LinkCells)],
    ) -> bool {
        let root = self.source.root();
        !self.form.is_current()
            && level.id == LevelId::FULL
            && self.has_paths()
            && root.cross_chunk_strategy
                != Some(Word::Known(CrossChunkStrategy::BoundaryDeduplication))
            && links.iter().all(|(delta, _)| *delta != Delta::INTRA)
    }

    /// Writes the steps of paths between chunks as links.
    pub(in crate::migrate) async fn step_links(&self, level: &mut Level) -> Result<(), Failure> {
        let Some(bridges) = &level.bridges else {
            return Ok(());
        };
        let (delta, width) = (Delta::INTRA, LinkWidth::EDGE);
        let policy = LinkRecordPolicy::default();
        let form = self.form.links(level.id, delta, width, policy, Vec::new());
        let pairs = bridges.by_chunks();
        if pairs.is_empty() {
            return Ok(());
        }
        self.writer.expect(pairs.len());
        let (mut outputs, mut steps) = (Vec::new(), 0);
        for (number, (chunks, ends)) in pairs.iter().enumerate() {
            let links: Vec<usize> = (0..ends.len() / 2).collect();
            steps += links.len() as u64;
            let placed = form.file(chunks, ends, &links)?;
            let (placed, _) = placed.ok_or_else(too_far)?;
            for ((array_key, at), cell) in placed {
                let key = place(form.key(&array_key))?;
                let cell = self.form.cell(&key, &level.extent, &at, cell.payload());
                outputs.extend(cell.ok_or_else(|| no_place(&key))?);
            }
            if outputs.len() >= 1 << 10 || number + 1 == pairs.len() {
                self.writer.write(core::mem::take(&mut outputs)).await?;
            }
            self.writer.done(1);
        }
        let folder = GroupRole::CrossChunkLinks;
        self.parent(&place(level.keys.group(folder))?).await?;
        let (crossing, none) = (LinkArrayKey::CrossChunk, Attributes::new());
        let totals = LinkTotals::new(steps, steps);
        let family = form.family(&crossing, &none, level.arity, totals);
        self.writer
            .write(vec![family.map_err(BuildError::from)?])
            .await?;
        level.facts.present.push(folder.name());
        self.state().links += steps;
        Ok(())
    }
}
