//! Addresses of vertices in tables.

use zvf_files::{InputFile, KeyedTable};

/// A number that is not the address of a vertex.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: row_id {id} is negative, but row ids are not; query them again")]
pub(crate) struct RowIdError {
    file: String,
    id: i64,
}

/// Returns the addresses in a table.
pub(crate) fn row_ids(table: &KeyedTable, file: &InputFile) -> Result<Vec<u64>, RowIdError> {
    let ids = table.ids.iter().map(|id| {
        u64::try_from(*id).map_err(|_| RowIdError {
            file: file.path().display().to_string(),
            id: *id,
        })
    });
    ids.collect()
}
