//! Reading the chunks that paths go through.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use zvf_model::fetch::Fetch;

use super::{Path, Work, fate::Fate, fate::fate, fate::may_cross, loaded::Loaded};
use crate::{
    area::Area, chunk::Rows, chunk::Wish, error::Damage, error::Fault, error::QueryError,
    geometry::Mode, missing::Ledger, plan::Plan,
};

impl<F: Fetch> Plan<'_, F> {
    /// Reads what is needed of paths near a region, and leaves those that it may
    /// select.
    pub(super) async fn load_region(
        &self,
        work: &Work<'_, F>,
        area: &Area,
        paths: &mut Vec<Path>,
        loaded: &mut Loaded,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let mut more: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mode = self.area_mode;
        loaded.check_shared(paths, self.session.fetch.budget())?;
        paths.retain_mut(|path| {
            let fate = fate(path, work.objects, loaded, area, mode);
            if fate == Fate::Out {
                return false;
            }
            let clip = mode == Mode::Clip;
            for (at, piece) in path.pieces.iter().enumerate() {
                let wanted = !loaded.knows(piece.chunk)
                    && (!clip || may_cross(path, at, work.objects, loaded, area));
                if wanted {
                    more.entry(piece.chunk).or_default().insert(piece.fragment);
                }
            }
            true
        });
        self.load_fragments(work, more, loaded, ledger).await
    }

    pub(super) async fn load_fragments(
        &self,
        work: &Work<'_, F>,
        wanted: BTreeMap<u32, BTreeSet<u32>>,
        loaded: &mut Loaded,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let mut numbers = Vec::with_capacity(wanted.len());
        let mut wishes = Vec::with_capacity(wanted.len());
        for (number, fragments) in wanted {
            let Some(chunk) = work.objects.chunk(number) else {
                continue;
            };
            if !work.schema.vertices.has(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                ledger.missing(Damage::new(&work.manifests, fault))?;
                loaded.add(number, None, work.schema);
                continue;
            }
            numbers.push(number);
            wishes.push(Wish {
                chunk: chunk.clone(),
                fragments: true,
                rows: Rows::Fragments(fragments.into_iter().collect()),
            });
        }
        let chunks = self.read_chunks(work.schema, wishes, ledger).await?;
        for (number, chunk) in numbers.into_iter().zip(chunks) {
            loaded.add(number, chunk, work.schema);
        }
        Ok(())
    }

    pub(super) async fn load_whole(
        &self,
        work: &Work<'_, F>,
        numbers: Vec<u32>,
        loaded: &mut Loaded,
        ledger: &Ledger,
    ) -> Result<(), QueryError> {
        let mut there = Vec::with_capacity(numbers.len());
        let mut wishes = Vec::with_capacity(numbers.len());
        for number in numbers {
            let Some(chunk) = work.objects.chunk(number) else {
                continue;
            };
            if !work.schema.vertices.has(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                ledger.missing(Damage::new(&work.manifests, fault))?;
                loaded.add(number, None, work.schema);
                continue;
            }
            there.push(number);
            wishes.push(Wish {
                chunk: chunk.clone(),
                fragments: true,
                rows: Rows::All,
            });
        }
        let chunks = self.read_chunks(work.schema, wishes, ledger).await?;
        for (number, chunk) in there.into_iter().zip(chunks) {
            loaded.add(number, chunk, work.schema);
        }
        Ok(())
    }
}
