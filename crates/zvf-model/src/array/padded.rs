//! Padded arrays: plain numbers, with every chunk padded to the longest.

use zvf_format::numeric::Kind;

use super::presence;
use crate::{
    grid::{Grid, GridError},
    key::Key,
    metadata::{Attributes, Excerpt, Fields, JsonField, MetadataError, MetadataFault},
    zarr::{Array, DataType},
};

/// An array of the profile `0.8-padded`: shape (grid …, most rows, columns), or
/// (grid …, most rows) for one value a row.
///
/// The number of used rows of a chunk follows from its fragment index. The remaining rows have the
/// fill value.
#[derive(Clone, Debug, PartialEq)]
pub struct Padded {
    /// Chunks in the array.
    pub grid: Grid,
    /// Capacity of a chunk in rows.
    pub rows: u64,
    /// Values of a row.
    pub columns: u64,
    /// Type of a value.
    pub kind: Kind,
}

impl Padded {
    /// Reads array `key`, whose chunk keys have `arity` numbers.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if its type is not numeric, it has too few or too many dimensions, or its
    /// origin is malformed.
    pub fn parse(key: &Key, array: &Array, arity: usize) -> Result<Self, MetadataError> {
        let fields = Fields::attributes(key, &array.attributes);
        let origin = fields
            .get(presence::ORIGIN)
            .map(|at| at.exactly(arity, JsonField::i64))
            .transpose()?;
        // Shape and data type are not attributes.
        let of_node = |name: &str, fault| Fields::beside(key, name, fault);
        let DataType::Number(kind) = array.data_type else {
            let found = Excerpt::of(&format!("{:?}", array.data_type));
            let with = "a padded array, which holds numbers";
            return Err(of_node(
                "data_type",
                MetadataFault::Disagrees { found, with },
            ));
        };
        let (expected, found) = (arity.saturating_add(2), array.rank());
        let rest = array.shape.get(arity..).unwrap_or_default();
        let (rows, columns) = match rest {
            [rows] => (*rows, 1),
            [rows, columns] => (*rows, *columns),
            _ => return Err(of_node("shape", MetadataFault::Length { expected, found })),
        };
        let shape = array.shape.get(..arity).unwrap_or_default();
        let grid = Grid::new(origin.as_deref(), shape)
            .map_err(|error: GridError| of_node("shape", error.into()))?;
        Ok(Self {
            grid,
            rows,
            columns,
            kind,
        })
    }

    /// Adds the origin of the array to its other attributes.
    pub fn to_attributes(&self, others: Attributes) -> Attributes {
        presence::with_origin(others, self.grid.origin())
    }
}
