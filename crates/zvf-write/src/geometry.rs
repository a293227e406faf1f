//! Query results as geometry to write.

use std::collections::HashMap;

use zvf_build::{Geometry, GeometryBuilder, LinkEnds, VertexOwners};
use zvf_dataset::{Error, Failure};
use zvf_model::{
    column::Column,
    object_ids::{ObjectIds, Owner},
};
use zvf_query::QueryResult;

/// Conversion into [`Geometry`], which [`create`](crate::writer::create) and
/// [`Editor::append`](crate::editor::Editor::append) take.
///
/// ```
/// use zvf::{CreateOptions, Dataset, IntoGeometry, Query};
/// use zvf::{Design, Geometry, GeometryKind, NumericColumn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let source = folder.path().join("points.zv").display().to_string();
/// # let target = folder.path().join("copy.zv").display().to_string();
/// # let points = Geometry::new(NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0]));
/// # let design = Design::new(GeometryKind::Points);
/// # zvf::create(&source, &points, design, &CreateOptions::default()).await?;
/// let result = Dataset::open(&source).await?.query(&Query::new()).await?;
/// let geometry = result.into_geometry()?;
/// let design = Design::new(GeometryKind::Points);
/// zvf::create(&target, geometry, design, &CreateOptions::default()).await?;
/// # assert_eq!(Dataset::open(&target).await?.query(&Query::new()).await?.positions.len(), 2);
/// # Ok(()) }
/// ```
pub trait IntoGeometry {
    /// Converts the value. Columns, paths and links are moved, not copied.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](zvf_model::error_kind::ErrorKind::InvalidInput) when the value holds rows that
    /// geometry cannot express.
    fn into_geometry(self) -> Result<Geometry, Error>;
}

/// Converts the vertices, paths, links, attributes and groups of a result, or of a batch of one.
///
/// Links of a batch are rejected if they join vertices of other batches, as those of a streamed query
/// do: convert the whole result instead. Their vertices, in batches before, convert to geometry without
/// links.
///
/// Writers store NaN for null floats and reject null integers of vertices, links and fragments.
/// These results are rejected: vertices without an object beside vertices with one, vertices of several objects, and
/// attributes of fragments that differ within an object. Parts of the store that the query
/// [skipped](QueryResult::skipped) are absent from the geometry.
impl IntoGeometry for QueryResult {
    fn into_geometry(self) -> Result<Geometry, Error> {
        Ok(geometry(self)?)
    }
}

fn geometry(mut result: QueryResult) -> Result<Geometry, Failure> {
    count_from_batch(&mut result)?;
    let fragment = fragment_attributes(&result)?;
    let owners = match (result.parts, result.object_ids) {
        (Some(_), Some(_)) => {
            return Err(Failure::NotGeometry {
                what: "object ids of vertices".to_owned(),
                why: "the vertices are those of paths, whose objects are in `parts`",
            });
        }
        (Some(parts), None) => VertexOwners::Paths {
            offsets: parts.offsets,
            objects: Some(parts.objects),
        },
        (None, Some(ids)) => object_ids(ids)?,
        (None, None) => VertexOwners::Unnamed,
    };
    let links = result.links.map(|links| LinkEnds {
        width: usize::try_from(links.width).unwrap_or(usize::MAX),
        // Rows of a result are fewer than `i64::MAX`, and the allocation is reused.
        ends: links.ends.into_iter().map(u64::cast_signed).collect(),
    });
    let mut geometry = GeometryBuilder {
        owners,
        links: links.unwrap_or_default(),
        ..Geometry::builder(result.positions)
            .vertex(result.vertex)
            .link(result.link)
    };
    if !result.objects.is_empty() {
        geometry.object = result.object;
        geometry.fragment = fragment;
        geometry.objects = Some(result.objects);
    }
    for group in result.groups {
        let id = u32::try_from(group.id).map_err(|_| Failure::NotGeometry {
            what: format!("group {}", group.id),
            why: "its number exceeds 32 bits",
        })?;
        geometry.groups.insert(id, group.members);
    }
    Ok(geometry.build()?)
}

/// Changes row numbers that count from the start of the whole result to those of the batch.
fn count_from_batch(result: &mut QueryResult) -> Result<(), Failure> {
    let first = result.first_row;
    if first == 0 {
        return Ok(());
    }
    let offsets = result.parts.iter_mut().flat_map(|parts| &mut parts.offsets);
    for row in offsets {
        *row = row.saturating_sub(first);
    }
    let ends = result.links.iter_mut().flat_map(|links| &mut links.ends);
    for row in ends {
        *row = row.checked_sub(first).ok_or_else(|| Failure::NotGeometry {
            what: "links of a batch".to_owned(),
            why: "they join vertices of earlier batches; convert the whole result of the query",
        })?;
    }
    Ok(())
}

/// Returns the owners of vertices with these objects; [`VertexOwners::Unnamed`] when none has an object.
fn object_ids(ids: ObjectIds) -> Result<VertexOwners, Failure> {
    if ids.iter().all(|owner| owner == Owner::None) {
        return Ok(VertexOwners::Unnamed);
    }
    if ids.iter().any(|owner| owner.object().is_none()) {
        return Err(Failure::NotGeometry {
            what: "vertices".to_owned(),
            why: "some belong to no object or to several; query by object to tell them apart",
        });
    }
    Ok(VertexOwners::Vertices(ids.into_numbers()))
}

/// Returns attributes of fragments with a row for each object of the result. The result has a
/// row for each vertex.
fn fragment_attributes(result: &QueryResult) -> Result<Vec<Column>, Failure> {
    if result.fragment.is_empty() {
        return Ok(Vec::new());
    }
    let mut first_row: HashMap<i64, usize> = HashMap::new();
    let mut owners: Vec<i64> = Vec::with_capacity(result.positions.len());
    if let Some(parts) = &result.parts {
        for (id, ends) in parts.objects.iter().zip(parts.offsets.windows(2)) {
            let rows = ends
                .iter()
                .map(|end| usize::try_from(*end).unwrap_or(usize::MAX));
            owners.resize(rows.max().unwrap_or(0).min(result.positions.len()), *id);
        }
    } else if let Some(ids) = &result.object_ids {
        owners.extend_from_slice(ids.numbers());
    }
    for (row, id) in owners.iter().enumerate() {
        first_row.entry(*id).or_insert(row);
    }
    let mut attributes = Vec::with_capacity(result.fragment.len());
    for column in &result.fragment {
        let first = |id: &i64| first_row.get(id).copied().unwrap_or(usize::MAX);
        let mut rows = owners.iter().enumerate();
        let is_uniform = rows.all(|(row, id)| column.rows_are_equal(row, first(id)));
        if !is_uniform {
            return Err(Failure::NotGeometry {
                what: format!("attribute {} of fragments", column.name),
                why: "it differs within an object; exclude it from the query",
            });
        }
        let rows = result.objects.iter().map(first);
        attributes.push(column.take(rows));
    }
    Ok(attributes)
}
