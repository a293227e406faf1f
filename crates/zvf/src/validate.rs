//! Validation of stores in place.

use zvf_model::fetch::BoxFuture;
use zvf_store::{CellReader, OpenOptions, Read, Store};
use zvf_validate::{ValidateOptions, ValidationReport};

use crate::{error::Error, failure::Failure, location::Location, nodes};

/// Checks a store, even one that [`Dataset::open`](crate::Dataset::open) rejects.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::ValidateOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let points = Geometry::new(positions);
/// # let mut design = Design::new(GeometryKind::Points);
/// # design.chunk_shape = Some(vec![10.0; 3]);
/// # zvf::create(address, &points, design, &Default::default()).await?;
/// let report = zvf::validate(address, &ValidateOptions::default()).await?;
/// for finding in &report.findings {
///     println!("{}: {}", finding.rule.code, finding.message);
/// }
/// assert!(report.is_ok());
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error`] if the address cannot be opened, or the journal of a committed transaction cannot be
/// read. Faults of the store are in the report.
pub async fn validate(
    location: impl Into<Location>,
    options: &ValidateOptions,
) -> Result<ValidationReport, Error> {
    let store = location.into().open(&OpenOptions::default())?;
    Ok(validate_store(store, options).await?)
}

pub(crate) fn validate_store(
    store: Store,
    options: &ValidateOptions,
) -> BoxFuture<'_, Result<ValidationReport, Failure>> {
    Box::pin(async move {
        let root = nodes::metadata(&zvf_model::key::Key::root())?;
        let store = match store.read_one(Read::full(root)).await? {
            Some(bytes) => store.committed_view(&bytes).await?,
            None => store,
        };
        let cells = CellReader::new(store);
        Ok(zvf_validate::validate(cells.port(), options).await)
    })
}
