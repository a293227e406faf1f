//! Removal and replacement of vertices.

use std::collections::BTreeSet;

use zvf_build::{
    Geometry, GeometryKind, OutOfBounds,
    edit::{EditError, LevelChange, LevelSnapshot},
};
use zvf_catalog::Selection;
use zvf_dataset::{Error, Failure, StateError, base, boxed};
use zvf_model::row_id::RowId;
use zvf_query::{Query, Shape};

use super::{ChangeSummary, Conditions, Editor};
use crate::writer::has_moved;

impl Editor {
    /// Removes the vertices that a query selects, and all links that end at them. For graphs and
    /// meshes, these are the vertices inside the region for which the predicate is true. Objects
    /// stay, also without vertices.
    ///
    /// ```
    /// # use zvf::{Bbox, Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Editor, Query};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let points = Geometry::new(NumericColumn::float32(2, [0.0, 0.0, 9.0, 1.0, 12.0, 5.0]));
    /// # let mut design = Design::new(GeometryKind::Points);
    /// # design.chunk_shape = Some(vec![10.0; 2]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let editor = Editor::open(address).await?;
    /// let query = Query::new().region(Bbox::parse("8,0,20,20")?);
    /// assert_eq!(editor.remove_selected(&query).await?.removed, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`EditError`] for stores of paths and skeletons, whose vertices have an order;
    /// [`QueryError`](zvf_query::QueryError) when the query fails; [`Error`] otherwise.
    pub async fn remove_selected(&self, query: &Query) -> Result<ChangeSummary, Error> {
        boxed(async move {
            let mut query = query
                .clone()
                .shape(Shape::Points)
                .row_ids(true)
                .owners(false);
            query.columns = Selection::none();
            let mut left = self.retries;
            loop {
                let dataset = base::open(self.store.clone()).await?;
                let transaction = dataset.transaction();
                let selected = dataset.session().query(&query).await;
                let removed = match selected {
                    Ok(selected) => {
                        let rows = selected.row_ids.unwrap_or_default();
                        self.remove_at(Some(transaction), &rows).await
                    }
                    // A read during a concurrent commit may mix two states, which looks damaged.
                    Err(_) if left > 0 && has_moved(&self.store, transaction).await? => {
                        left -= 1;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                match removed {
                    Err(Failure::State(StateError::OutdatedRows { .. })) if left > 0 => left -= 1,
                    removed => return removed,
                }
            }
        })
        .await
    }

    /// Removes vertices by their [addresses](zvf_query::QueryResult::row_ids), and all links that end at
    /// them. Objects stay, also without vertices.
    ///
    /// `transaction` is the transaction to which the addresses belong, see
    /// [`Dataset::transaction`](zvf_dataset::Dataset::transaction). Without it, addresses of an
    /// earlier transaction may remove other vertices.
    ///
    /// # Errors
    ///
    /// [`StateError::OutdatedRows`] when the store is at another transaction; [`EditError`] when
    /// there is no such row, and for stores of paths and skeletons; [`Error`] otherwise.
    pub async fn remove_rows(
        &self,
        transaction: Option<u64>,
        rows: &[u64],
    ) -> Result<ChangeSummary, Error> {
        boxed(self.remove_at(transaction, rows)).await
    }

    /// Replaces points by their [addresses](zvf_query::QueryResult::row_ids): removes the vertices at
    /// `rows` and adds those of `geometry`, which moves points and changes their attributes. Applies to
    /// stores of points without objects; objects have ids, by which [`replace`](Self::replace) finds
    /// them. `transaction` is that of the addresses, as for [`remove_rows`](Self::remove_rows).
    ///
    /// Points of `geometry` that [`OutOfBounds::Drop`] drops are removed only.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Editor, OutOfBounds, Query};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let points = Geometry::new(NumericColumn::float32(2, [0.0, 0.0, 9.0, 1.0, 12.0, 5.0]));
    /// # zvf::create(address, &points, Design::new(GeometryKind::Points), &Default::default()).await?;
    /// let editor = Editor::open(address).await?;
    /// let dataset = editor.dataset().await?;
    /// let rows = dataset.query(&Query::new().row_ids(true)).await?.row_ids.ok_or("no row ids")?;
    /// let moved = Geometry::new(NumericColumn::float32(2, [1.0, 0.5]));
    /// let transaction = Some(dataset.transaction());
    /// let changed = editor.replace_rows(transaction, &rows[..1], &moved, OutOfBounds::Reject).await?;
    /// assert_eq!((changed.removed, changed.added), (1, 1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StateError::OutdatedRows`] when the store is at another transaction; [`EditError`] when
    /// there is no such row, the store has no points or has points of objects, or the geometry does
    /// not fit it; [`Error`] otherwise.
    pub async fn replace_rows(
        &self,
        transaction: Option<u64>,
        rows: &[u64],
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Error> {
        boxed(async move {
            let rows: BTreeSet<RowId> = rows.iter().copied().map(RowId::from).collect();
            let conditions = Conditions {
                base: transaction,
                ..Conditions::default()
            };
            let make = |image: &LevelSnapshot| {
                if image.kind() != GeometryKind::Points {
                    let found = "points with row ids; replace whole objects by their ids";
                    let expected = image.kind().name();
                    return Err(EditError::Kind { expected, found }.into());
                }
                Ok(LevelChange {
                    remove_rows: image.rows_by_chunk(rows.iter().copied())?,
                    ..self.addition(geometry, image, out_of_bounds)?
                })
            };
            self.attempts(&make, conditions).await
        })
        .await
    }

    async fn remove_at(&self, base: Option<u64>, rows: &[u64]) -> Result<ChangeSummary, Failure> {
        let rows: BTreeSet<RowId> = rows.iter().copied().map(RowId::from).collect();
        if rows.is_empty() {
            return Ok(ChangeSummary {
                transaction: base.unwrap_or_default(),
                ..ChangeSummary::default()
            });
        }
        let conditions = Conditions {
            base,
            ..Conditions::default()
        };
        let make = |image: &LevelSnapshot| {
            Ok(LevelChange {
                remove_rows: image.rows_by_chunk(rows.iter().copied())?,
                ..LevelChange::default()
            })
        };
        self.attempts(&make, conditions).await
    }
}
