//! Validation of stores in place.

use zvf_model::{error_chain::error_chain, fetch::BoxFuture};
use zvf_store::{CellReader, OpenOptions, Read, Store};
use zvf_validate::{Depth, Finding, ValidateOptions, ValidationReport, rules::consistency};

use crate::{error::Error, failure::Failure, location::Location, nodes};

/// Checks a store, even one that [`Dataset::open`](crate::Dataset::open) rejects. A sealed store is
/// also compared with its inventory.
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
        let root = store.read_one(Read::full(root)).await?;
        let store = match &root {
            Some(bytes) => store.committed_view(bytes).await?,
            None => store,
        };
        let cells = CellReader::new(store.clone());
        let mut report = zvf_validate::validate(cells.port(), options).await;
        if options.depth >= Depth::Consistency
            && let Some(root) = &root
        {
            let rule = &consistency::INVENTORY;
            let found: Vec<Finding> = match store.seal_differences(root).await {
                Ok(found) => found
                    .iter()
                    .map(|(key, source)| Finding::new(rule, key.as_str(), source.to_string()))
                    .collect(),
                Err(error) => {
                    let rule = &consistency::CELL_NOT_CHECKED;
                    vec![Finding::new(rule, "", error_chain(&error))]
                }
            };
            report.extend(found, options.max_findings_per_rule);
        }
        Ok(report)
    })
}
