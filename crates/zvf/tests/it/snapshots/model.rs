//! The expected contents of a store of polylines.

use core::iter::Sum;
use std::collections::BTreeMap;

use zvf::{
    CreateOptions, Design, Geometry, GeometryBuilder, GeometryKind, Location, NumericColumn,
    QueryResult,
};

/// Vertices of an object, over four chunks.
const LENGTH: u32 = 8;

/// Objects with their vertices. The order of objects does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Content(BTreeMap<i64, Vec<[f64; 2]>>);

impl Content {
    /// Returns the content with these objects only.
    pub(super) fn only(&self, ids: &[i64]) -> Self {
        let kept = self.0.iter().filter(|(id, _)| ids.contains(id));
        Self(kept.map(|(id, rows)| (*id, rows.clone())).collect())
    }

    /// Returns whether all objects of `part` are in this content.
    pub(super) fn contains(&self, part: &Self) -> bool {
        let mut objects = part.0.iter();
        objects.all(|(id, rows)| self.0.get(id) == Some(rows))
    }

    pub(super) fn vertices(&self) -> u64 {
        self.0.values().map(|rows| rows.len() as u64).sum()
    }

    pub(super) fn ids(&self) -> Vec<i64> {
        self.0.keys().copied().collect()
    }
}

impl Sum for Content {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        let mut sum = Self::default();
        for part in parts {
            sum.0.extend(part.0);
        }
        sum
    }
}

/// Returns the objects of a result or of a batch.
pub(super) fn content(result: &QueryResult) -> Content {
    let Some(parts) = &result.parts else {
        return Content::default();
    };
    let places: Vec<f64> = result
        .positions
        .bytes
        .chunks_exact(8)
        .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let mut content = Content::default();
    for (id, ends) in parts.objects.iter().zip(parts.offsets.windows(2)) {
        let row = |row: u64| usize::try_from(row - result.first_row).unwrap();
        let rows = places[2 * row(ends[0])..2 * row(ends[1])]
            .chunks_exact(2)
            .map(|place| [place[0], place[1]]);
        content.0.entry(*id).or_default().extend(rows);
    }
    content
}

/// The objects of a store. Every object that is written has a coordinate of its own.
pub(super) struct Model {
    content: Content,
    written: u32,
}

impl Model {
    /// Creates a store of objects 0 to `objects`.
    pub(super) async fn create(location: impl Into<Location>, objects: i64) -> Self {
        Self::create_at(location, objects, 0).await
    }

    /// Creates a store as [`create`](Self::create), with other coordinates for another `first`.
    pub(super) async fn create_at(location: impl Into<Location>, objects: i64, first: u32) -> Self {
        let mut model = Self {
            content: Content::default(),
            written: first,
        };
        let geometry = model.add(&(0..objects).collect::<Vec<_>>());
        let mut design = Design::new(GeometryKind::Polylines);
        design.chunk_shape = Some(vec![10.0, 10.0]);
        design.bounds = Some((vec![0.0, 0.0], vec![40.0, 10.0]));
        let options = CreateOptions::new().seal(false);
        let created = zvf::create(location, geometry.build().unwrap(), design, &options).await;
        created.unwrap();
        model
    }

    /// Adds objects, and returns their geometry.
    pub(super) fn add(&mut self, ids: &[i64]) -> GeometryBuilder {
        let (mut places, mut offsets) = (Vec::new(), vec![0]);
        for id in ids {
            self.written += 1;
            let y = 0.5 + f64::from(self.written) / 1024.0;
            let rows: Vec<[f64; 2]> = (0..LENGTH)
                .map(|step| [f64::from(step) * 5.0 + 0.5, y])
                .collect();
            places.extend(rows.iter().flatten().copied());
            offsets.push(offsets.last().unwrap() + u64::from(LENGTH));
            self.content.0.insert(*id, rows);
        }
        Geometry::builder(NumericColumn::float64(2, places)).paths(offsets, ids.to_vec())
    }

    pub(super) fn remove(&mut self, id: i64) {
        self.content.0.remove(&id);
    }

    pub(super) fn content(&self) -> Content {
        self.content.clone()
    }
}
