//! Sealing of stores in place.

use zvf_dataset::{Error, Failure, Location};
use zvf_model::fetch::BoxFuture;
use zvf_store::{CommitError, OpenOptions, RowTable, Store};
#[cfg(feature = "validate")]
use zvf_validate::{ValidationReport, rules::consistency};

use crate::row_tables::row_tables;

/// Maximum number of times that others may commit while the store is sealed.
const MAX_RETRIES: usize = 8;

/// Seals a store: writes an inventory of all its objects, which readers check what they read
/// against. Returns the number of the transaction.
///
/// A damaged, exchanged or absent object is then an error instead of a wrong result. Changes by
/// `zvf` keep the inventory. After a change by another program, reads of the changed objects fail
/// until the store is sealed again or [`OpenOptions::seal`] is off. Takes one read of the whole
/// store, and another of its fragment indexes.
///
/// ```
/// use zvf::{Dataset, Design, Geometry, GeometryKind, NumericColumn, Query};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("points.zv");
/// # let address = path.display().to_string();
/// # let address = address.as_str();
/// let points = Geometry::new(NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0]));
/// zvf::create(address, &points, Design::new(GeometryKind::Points), &Default::default()).await?;
/// zvf::seal(address).await?;
/// std::fs::remove_dir_all(path.join("0/vertices/c"))?;
/// assert!(Dataset::open(address).await?.query(&Query::new()).await.is_err());
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error`] when the store cannot be read or written, or others keep changing it.
pub async fn seal(location: impl Into<Location>) -> Result<u64, Error> {
    let store = location.into().open(&OpenOptions::default())?;
    Ok(seal_store(&store).await?)
}

/// Seals a store as [`seal`] does if `report`, the result of its validation, has no error other than
/// differences from a former inventory. These are removed from the report. Returns the number of the
/// transaction, or `None` if there are other errors.
///
/// This seals a store again that another program changed. Nothing distinguishes such a change from
/// damage: the new inventory describes the present state of the store.
///
/// # Errors
///
/// [`Error`], as for [`seal`].
#[cfg(feature = "validate")]
pub async fn seal_validated(
    location: impl Into<Location>,
    report: &mut ValidationReport,
) -> Result<Option<u64>, Error> {
    let mut other = report.clone();
    other.remove_rule(&consistency::INVENTORY);
    if !other.is_ok() {
        return Ok(None);
    }
    let transaction = seal(location).await?;
    *report = other;
    Ok(Some(transaction))
}

fn seal_store(store: &Store) -> BoxFuture<'_, Result<u64, Failure>> {
    Box::pin(async move {
        let mut retries = MAX_RETRIES;
        loop {
            let mut transaction = store.begin().await?;
            // Objects that a concurrent transaction changes would get entries of their old state.
            transaction.touch("*");
            let sealed = async {
                transaction.seal().await?;
                let tables = row_tables(store).await.into_iter();
                let objects = tables.filter_map(RowTable::into_object).collect();
                transaction.put_many(objects).await
            };
            let sealed = sealed.await;
            let root = transaction.root().clone();
            let committed = match sealed {
                Ok(()) => transaction.commit(&root).await,
                Err(error) => Err(error.into()),
            };
            match committed {
                Ok(committed) => return Ok(committed.transaction),
                Err(CommitError::Outdated { .. } | CommitError::Conflict { .. }) if retries > 0 => {
                    retries -= 1;
                    let _ = transaction.abort().await;
                }
                Err(error) => {
                    let _ = transaction.abort().await;
                    return Err(error.into());
                }
            }
        }
    })
}
