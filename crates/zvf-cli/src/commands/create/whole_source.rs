//! Geometry in memory as the source of a plan of tasks.

use std::error::Error;

use zvf::{Geometry, GeometrySource, NumericColumn};

/// Geometry with links that is read whole, as one batch.
pub(super) struct WholeSource {
    batch: Option<Geometry>,
    tables: Geometry,
}

impl WholeSource {
    pub(super) fn new(mut geometry: Geometry) -> Self {
        let positions = &geometry.positions;
        let mut tables = Geometry::new(NumericColumn::new(positions.kind, positions.width));
        tables.objects = geometry.objects.take();
        tables.object = std::mem::take(&mut geometry.object);
        tables.fragment = std::mem::take(&mut geometry.fragment);
        tables.groups = std::mem::take(&mut geometry.groups);
        tables.group = std::mem::take(&mut geometry.group);
        Self {
            batch: Some(geometry),
            tables,
        }
    }
}

impl GeometrySource for WholeSource {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        Ok(self.batch.take())
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Err("geometry with links is read once".into())
    }

    fn tables(&self) -> Geometry {
        self.tables.clone()
    }
}
