//! Attributes of fragments.

use zvf_format::numeric::Kind;
use zvf_model::{
    array::CellAttributeRole as Role,
    column::{Column, NumericColumn},
    grid::ChunkCoord,
    layout::FRAGMENT_OWNERS,
    object_ids::Owner,
};

use crate::{
    error::BuildError,
    objects::ObjectRows,
    stored_column::{StoredColumn, check_nulls},
    vertex_layout::VertexLayout,
};

/// Returns a row for each fragment of a column with a row for each vertex. The value of fragments
/// without vertices is null, or 0 if the type has no null.
///
/// # Errors
///
/// [`BuildError::FragmentValues`] if the vertices of a fragment differ.
pub(crate) fn by_fragment(column: &Column, layout: &VertexLayout) -> Result<Column, BuildError> {
    let missing = column.len();
    let mut rows = Vec::with_capacity(layout.fragments.len());
    let mut order = layout.order.as_slice();
    for (at, fragment) in (0_u32..).zip(&layout.fragments) {
        let (own, rest) = order.split_at(fragment.rows as usize);
        order = rest;
        let first = own.first().map_or(missing, |vertex| *vertex as usize);
        let mut others = own.iter().map(|vertex| *vertex as usize);
        if others.any(|vertex| !column.rows_are_equal(vertex, first)) {
            return Err(BuildError::FragmentValues {
                name: column.name.clone(),
                chunk: ChunkCoord::new(layout.chunks[fragment.chunk as usize].as_slice())
                    .to_string(),
                fragment: layout.number(at),
            });
        }
        rows.push(first);
    }
    let mut own = column.take(rows.iter().copied());
    if check_nulls(&own).is_err() {
        // Nothing reads the value of a fragment without vertices.
        let nulls: Vec<bool> = rows.iter().map(|row| column.is_null(*row)).collect();
        own.nulls = nulls.contains(&true).then_some(nulls);
    }
    Ok(own)
}

/// Returns a row for each fragment of a column with a row for each object. Fragments of objects
/// without a row are null.
pub(crate) fn by_object(
    column: &Column,
    layout: &VertexLayout,
    objects: Option<&ObjectRows>,
) -> Column {
    let attribute_rows = objects.map_or(&[][..], |objects| &objects.attribute_rows);
    let missing = column.len();
    let of_object = |object: u32| attribute_rows.get(object as usize).copied().flatten();
    let fragments = layout.fragments.iter();
    let rows: Vec<usize> = fragments
        .map(|fragment| of_object(fragment.object).unwrap_or(missing))
        .collect();
    column.take(rows)
}

/// Returns the object of each fragment.
pub(crate) fn owners(layout: &VertexLayout, ids: &[i64]) -> NumericColumn {
    let fragments = layout.fragments.iter();
    let owners = fragments.flat_map(|fragment| {
        let id = ids.get(fragment.object as usize);
        id.copied().unwrap_or(Owner::NONE).to_le_bytes()
    });
    NumericColumn {
        bytes: owners.collect(),
        ..NumericColumn::new(Kind::Int64, 1)
    }
}

/// Returns the attribute that has the object of each fragment.
pub(crate) fn owner_column(
    layout: &VertexLayout,
    ids: &[i64],
    is_current: bool,
) -> Result<StoredColumn, BuildError> {
    let column = Column::new(FRAGMENT_OWNERS, owners(layout, ids));
    StoredColumn::of(column, Role::Fragment, is_current)
}
