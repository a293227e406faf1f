//! Geometry in memory as the source of a plan of tasks.

use std::error::Error;

use zvf::{BuildError, Geometry, GeometrySource};

/// Geometry with links that is read whole, as one batch.
pub(super) struct WholeSource {
    batch: Option<Geometry>,
    tables: Geometry,
}

impl WholeSource {
    pub(super) fn new(geometry: Geometry) -> Result<Self, BuildError> {
        let mut geometry = geometry.into_builder();
        let mut tables = geometry.take_tables();
        tables.fragment = std::mem::take(&mut geometry.fragment);
        Ok(Self {
            batch: Some(geometry.build()?),
            tables: tables.build()?,
        })
    }
}

impl GeometrySource for WholeSource {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        Ok(self.batch.take())
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Err("geometry with links is read once".into())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(self.tables.clone())
    }
}
