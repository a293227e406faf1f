//! Geometry that is read as a whole.

use std::error::Error;

use zvf::{Geometry, GeometrySource, NumericColumn};

use crate::{FileDescription, GeometryReader};

/// Geometry of files that are read as a whole, because links connect any of its vertices.
#[derive(Debug)]
pub struct WholeReader {
    geometry: Geometry,
    description: FileDescription,
    is_given: bool,
}

impl WholeReader {
    pub(crate) fn new(geometry: Geometry, mut description: FileDescription) -> Self {
        let columns = geometry.vertex.iter().chain(&geometry.link);
        let sizes = columns.map(|attribute| match &attribute.values {
            zvf::ColumnValues::Numeric(numbers) => numbers.bytes.len(),
            zvf::ColumnValues::Dictionary { codes, .. } => codes.len().saturating_mul(4),
        });
        let links = geometry.links.len().saturating_mul(8);
        let size = sizes.fold(geometry.positions.bytes.len(), usize::saturating_add);
        let size = size.saturating_add(links);
        description.bytes = u64::try_from(size).unwrap_or(u64::MAX);
        Self {
            geometry,
            description,
            is_given: false,
        }
    }
}

impl GeometrySource for WholeReader {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        if self.is_given {
            return Ok(None);
        }
        self.is_given = true;
        let mut geometry = self.geometry.clone();
        // The tables are given apart.
        geometry.objects = None;
        geometry.object.clear();
        geometry.groups.clear();
        geometry.group.clear();
        Ok(Some(geometry))
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.is_given = false;
        Ok(())
    }

    fn tables(&self) -> Geometry {
        let mut tables = Geometry::new(NumericColumn::new(self.geometry.positions.kind, 3));
        tables.objects.clone_from(&self.geometry.objects);
        tables.object.clone_from(&self.geometry.object);
        tables.groups.clone_from(&self.geometry.groups);
        tables.group.clone_from(&self.geometry.group);
        tables
    }
}

impl GeometryReader for WholeReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}
