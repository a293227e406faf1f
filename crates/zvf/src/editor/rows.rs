//! Removal of vertices.

use std::collections::BTreeSet;

use zvf_build::edit::LevelChange;
use zvf_model::{fetch::BoxFuture, row_id::RowId};
use zvf_query::{Query, Selection, Shape};

use super::{ChangeSummary, Conditions, Editor};
use crate::{
    dataset::Dataset,
    error::{Error, boxed},
    failure::Failure,
};

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
    /// [`Error::Edit`] for stores of paths and skeletons, whose vertices have an order;
    /// [`Error::Query`] when the query fails; [`Error`] otherwise.
    pub fn remove_selected<'a>(
        &'a self,
        query: &'a Query,
    ) -> BoxFuture<'a, Result<ChangeSummary, Error>> {
        boxed(async move {
            let mut query = query
                .clone()
                .shape(Shape::Points)
                .row_ids(true)
                .owners(false);
            query.columns = Selection::none();
            let mut left = self.retries;
            loop {
                let dataset = Dataset::open_store(self.store.clone()).await?;
                let transaction = dataset.transaction();
                let selected = dataset.session().query(&query).await;
                let removed = match selected {
                    Ok(selected) => {
                        let rows = selected.row_ids.unwrap_or_default();
                        self.remove_at(Some(transaction), &rows).await
                    }
                    // A read during a concurrent commit may mix two states, which looks damaged.
                    Err(_) if left > 0 && self.moved_from(transaction).await? => {
                        left -= 1;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                match removed {
                    Err(Failure::OutdatedRows { .. }) if left > 0 => left -= 1,
                    removed => return removed,
                }
            }
        })
    }

    /// Removes vertices by their [addresses](crate::QueryResult::row_ids), and all links that end at
    /// them. Objects stay, also without vertices.
    ///
    /// `transaction` is the transaction to which the addresses belong, see
    /// [`Dataset::transaction`]. Without it, addresses of an earlier transaction may remove other
    /// vertices.
    ///
    /// # Errors
    ///
    /// [`Error::OutdatedRows`] when the store is at another transaction; [`Error::Edit`] when there is
    /// no such row, and for stores of paths and skeletons; [`Error`] otherwise.
    pub fn remove_rows<'a>(
        &'a self,
        transaction: Option<u64>,
        rows: &'a [u64],
    ) -> BoxFuture<'a, Result<ChangeSummary, Error>> {
        boxed(self.remove_at(transaction, rows))
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
        let make = |image: &zvf_build::edit::LevelSnapshot| {
            Ok(LevelChange {
                remove_rows: image.rows_by_chunk(rows.iter().copied())?,
                ..LevelChange::default()
            })
        };
        self.attempts(&make, conditions).await
    }
}
