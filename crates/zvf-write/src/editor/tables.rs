//! Attributes from tables.

use zvf_build::Column;
use zvf_catalog::Scope;
use zvf_dataset::{Error, boxed};

use super::Editor;
use crate::attribute::{AttributeReport, TableKeys, TableOptions, remove_attributes, write_table};

impl Editor {
    /// Adds attributes of vertices, or changes values of existing ones, by the
    /// [addresses](zvf_query::QueryResult::row_ids) of the vertices. `rows` are distinct, and each
    /// column has one row for each of them.
    ///
    /// Other vertices keep their values of existing attributes. In new ones, they have NaN or no
    /// text. The columns are written in one transaction, and coarser levels become stale.
    ///
    /// ```
    /// # use zvf::{Column, Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Editor, Query, TableOptions};
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
    /// let class = Column::new("class", NumericColumn::float32(1, [1.0, 2.0, 2.0]));
    /// let mut options = TableOptions::default();
    /// options.transaction = Some(dataset.transaction());
    /// let written = editor.write_vertex_attributes(&rows, &[class], &options).await?;
    /// assert_eq!(written.vertices, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StateError::OutdatedRows`](zvf_dataset::StateError::OutdatedRows) when the store is at another
    /// transaction; [`EditError`](zvf_build::edit::EditError) when there is no such row, an
    /// existing attribute has another type, or a vertex has no value of a new attribute of
    /// integers; [`CommitError::Conflict`](zvf_store::CommitError::Conflict) when others commit
    /// meanwhile; [`Error`] otherwise.
    pub async fn write_vertex_attributes(
        &self,
        rows: &[u64],
        columns: &[Column],
        options: &TableOptions,
    ) -> Result<AttributeReport, Error> {
        boxed(write_table(
            &self.store,
            TableKeys::Rows(rows),
            columns,
            options,
        ))
        .await
    }

    /// Adds attributes of the fragments that contain the vertices with these
    /// [addresses](zvf_query::QueryResult::row_ids), or changes their values, as
    /// [`write_vertex_attributes`](Self::write_vertex_attributes). Rows of a column are equal for all
    /// vertices of a fragment. Other fragments keep their values.
    ///
    /// # Errors
    ///
    /// [`BuildError::FragmentValues`](zvf_build::BuildError::FragmentValues) when vertices of a
    /// fragment have different rows; otherwise as for vertices.
    pub async fn write_fragment_attributes(
        &self,
        rows: &[u64],
        columns: &[Column],
        options: &TableOptions,
    ) -> Result<AttributeReport, Error> {
        boxed(write_table(
            &self.store,
            TableKeys::Fragments(rows),
            columns,
            options,
        ))
        .await
    }

    /// Adds attributes of objects, or changes values of existing ones, as
    /// [`write_vertex_attributes`](Self::write_vertex_attributes). Other objects keep their values
    /// of existing attributes, and have no value of new ones.
    ///
    /// # Errors
    ///
    /// [`EditError`](zvf_build::edit::EditError) when an object does not exist or an existing
    /// attribute has another type; otherwise as for vertices.
    pub async fn write_object_attributes(
        &self,
        ids: &[i64],
        columns: &[Column],
        options: &TableOptions,
    ) -> Result<AttributeReport, Error> {
        boxed(write_table(
            &self.store,
            TableKeys::Objects(ids),
            columns,
            options,
        ))
        .await
    }

    /// Removes attributes from every level, in one transaction. A name without a scope is that of the
    /// only attribute that has it. No level becomes stale.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NoAttribute`](zvf_catalog::CatalogError::NoAttribute) when level 0 has no such
    /// attribute; [`ErrorKind::InvalidInput`](zvf_model::error_kind::ErrorKind::InvalidInput) when
    /// several scopes have it; [`CommitError::Conflict`](zvf_store::CommitError::Conflict) when others
    /// commit meanwhile; [`Error`] otherwise.
    pub async fn remove_attributes(
        &self,
        names: &[(Option<Scope>, String)],
    ) -> Result<AttributeReport, Error> {
        boxed(remove_attributes(&self.store, names)).await
    }
}
