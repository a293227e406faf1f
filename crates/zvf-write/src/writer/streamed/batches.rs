//! Batches in memory as a source.

use core::error::Error;
use std::vec;

use zvf_build::{Geometry, LinkNumbering, NumericColumn};
use zvf_format::numeric::Kind;

use super::GeometrySource;

/// Batches of geometry in memory, without tables. They are read once, which suits a share of the
/// input of a plan of tasks.
#[derive(Debug)]
pub struct GeometryBatches {
    batches: vec::IntoIter<Geometry>,
    numbering: LinkNumbering,
}

impl GeometryBatches {
    /// Creates the source of batches, whose links have this origin.
    pub fn new(batches: Vec<Geometry>, numbering: LinkNumbering) -> Self {
        Self {
            batches: batches.into_iter(),
            numbering,
        }
    }
}

impl GeometrySource for GeometryBatches {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        Ok(self.batches.next())
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Err("batches in memory are read once".into())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(Geometry::new(NumericColumn::new(Kind::Float32, 1)))
    }

    fn link_numbering(&self) -> LinkNumbering {
        self.numbering
    }
}
