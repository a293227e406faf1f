//! Stub.
use crate::{answer::Column, error::QueryError, level::{Level, Session}, missing::Ledger};
use zvf_model::{fetch::Fetch, layout::Part};
pub(crate) struct Groups(Vec<Vec<i64>>);
impl Groups {
    pub(crate) fn len(&self) -> usize { self.0.len() }
    pub(crate) fn members(&self, id: u64) -> Option<impl Iterator<Item = i64> + '_> {
        self.0.get(usize::try_from(id).ok()?).map(|m| m.iter().copied())
    }
}
impl<F: Fetch> Session<'_, F> {
    pub(crate) async fn object_column(&self, _: &Level<F::Array>, _: &str, _: Option<&[u64]>, _: &Ledger) -> Result<Column, QueryError> { Err(QueryError::NoScale) }
    pub(crate) async fn group_column(&self, _: &Level<F::Array>, _: &str, _: &Ledger) -> Result<Column, QueryError> { Err(QueryError::NoScale) }
    pub(crate) async fn groups(&self, _: &Level<F::Array>, _: &Ledger) -> Result<Option<std::sync::Arc<Groups>>, QueryError> { Err(QueryError::NoScale) }
    pub(crate) async fn number_table(&self, _: &Level<F::Array>, _: &Part<'_>, _: &Ledger) -> Result<Option<Vec<u64>>, QueryError> { Err(QueryError::NoScale) }
}
