//! Rows of the fragments of all chunks of a level, from the inventory of its store.

use std::sync::Arc;

use zvf_format::fragment_lengths::FragmentLengths;
use zvf_model::{error_chain::error_chain, fetch::BoxFuture};

use crate::{
    catalog::Catalog,
    chunked_array::ChunkedArray,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    fragments::FragmentTable,
    schema::Schema,
};

/// Maximum number of bytes that are fetched for the rows of all fragments. The fragment indexes of a few
/// chunks of a larger level take less.
const MAX_BYTES: u64 = 1 << 20;

impl Catalog<'_> {
    /// Returns whether [`load_fragment_rows`](Self::load_fragment_rows) loads rows, or has done so.
    pub fn has_fragment_rows(&self, schema: &Schema) -> bool {
        self.array_with_lengths(schema).is_some()
    }

    /// Loads the rows of the fragments of all chunks, if the store records them. Later reads of chunks
    /// then need no fragment index. Takes one round trip on first use, beside others.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the record is damaged, unless the diagnostics skip damage: fragment
    /// indexes say the same.
    pub fn load_fragment_rows<'f>(
        &'f self,
        schema: &'f Schema,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<(), CatalogError>> {
        Box::pin(async move {
            let Some(array) = self.array_with_lengths(schema) else {
                return Ok(());
            };
            let damage = match self.read_lengths(array).await {
                Ok(()) => return Ok(()),
                Err(damage) => damage,
            };
            if diagnostics.keeps_going() {
                diagnostics.note(error_chain(&damage));
                return Ok(());
            }
            Err(damage.into())
        })
    }

    /// Returns the fragment indexes if the store records the lengths of their fragments.
    fn array_with_lengths<'s>(&self, schema: &'s Schema) -> Option<&'s Arc<ChunkedArray>> {
        let array = schema.fragments.as_ref()?;
        let bytes = self.fetch.fragment_lengths_bytes(&array.node)?;
        (bytes <= MAX_BYTES).then_some(array)
    }

    async fn read_lengths(&self, array: &ChunkedArray) -> Result<(), Damage> {
        if array.fragment_tables.has_all() {
            return Ok(());
        }
        let chunks = array.chunks().unwrap_or_default();
        let cells = chunks
            .iter()
            .filter_map(|chunk| Some((chunk, array.cell_request(chunk, None)?.cell)));
        let (chunks, cells): (Vec<_>, Vec<_>) = cells.unzip();
        let fetched = self.fetch.fragment_lengths(&cells).await;
        let recorded = fetched.map_err(|error| Damage::new(&array.node, Fault::Fetch(error)))?;
        for (chunk, bytes) in chunks.into_iter().zip(recorded) {
            let Some(bytes) = bytes else {
                continue;
            };
            let lengths = FragmentLengths::parse(&bytes)
                .map_err(|error| Damage::in_chunk(&array.node, chunk, error))?;
            if let Some(table) = FragmentTable::of_lengths(&lengths) {
                array.fragment_tables.insert(chunk, table);
            }
        }
        array.fragment_tables.set_all();
        Ok(())
    }
}
