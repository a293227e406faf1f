//! Geometry that is read as a whole.

use std::{error::Error, fmt};

use zvf::{Geometry, GeometryBuilder, GeometrySource};

use crate::{FileDescription, FileError, GeometryReader, reader::built};

/// Geometry of files that are read as a whole, because links connect any of its vertices.
pub struct WholeReader {
    /// `None` after it was returned.
    geometry: Option<GeometryBuilder>,
    tables: GeometryBuilder,
    description: FileDescription,
    is_given: bool,
    again: Option<Box<Reopen>>,
}

/// Function that reads the file again.
type Reopen = dyn Fn() -> Result<WholeReader, FileError> + Send;

impl fmt::Debug for WholeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeReader")
            .field("geometry", &self.geometry)
            .field("tables", &self.tables)
            .field("description", &self.description)
            .field("is_given", &self.is_given)
            .finish_non_exhaustive()
    }
}

impl WholeReader {
    pub(crate) fn new(mut geometry: GeometryBuilder, mut description: FileDescription) -> Self {
        let columns = geometry.vertex.iter().chain(&geometry.link);
        let sizes = columns.map(|attribute| match &attribute.values {
            zvf::ColumnValues::Numeric(numbers) => numbers.bytes.len(),
            zvf::ColumnValues::Dictionary { codes, .. } => codes.len().saturating_mul(4),
        });
        let links = geometry.links.ends.len().saturating_mul(8);
        let size = sizes
            .fold(geometry.positions.bytes.len(), usize::saturating_add)
            .saturating_add(links);
        description.bytes = u64::try_from(size).unwrap_or(u64::MAX);
        // The tables are returned separately.
        let tables = geometry.take_tables();
        Self {
            geometry: Some(geometry),
            tables,
            description,
            is_given: false,
            again: None,
        }
    }

    /// Returns the geometry itself when it is read first, and calls `again` if it is read once
    /// more. Otherwise, a copy is kept.
    #[must_use]
    pub(crate) fn reread(
        self,
        again: impl Fn() -> Result<Self, FileError> + Send + 'static,
    ) -> Self {
        let again = Some::<Box<Reopen>>(Box::new(again));
        Self { again, ..self }
    }
}

impl GeometrySource for WholeReader {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        if std::mem::replace(&mut self.is_given, true) {
            return Ok(None);
        }
        let geometry = match &self.again {
            None => self.geometry.clone(),
            Some(again) => match self.geometry.take() {
                Some(geometry) => Some(geometry),
                None => again()?.geometry,
            },
        };
        built(geometry)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.is_given = false;
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(self.tables.clone().build()?)
    }
}

impl GeometryReader for WholeReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }

    fn is_whole(&self) -> bool {
        true
    }
}
