//! Attributes of parametric objects.

use std::collections::BTreeMap;

use super::check_tag;
use crate::{
    key::Key,
    metadata::{Attributes, Fields, JsonField, JsonMembers, MetadataError, Noted, Noter},
};

const TYPES: &str = "parametric_types";
const OBJECTS: &str = "parametric_objects";
const NAMES: &str = "parametric_names";
const FLOAT64: &str = "float64";

/// A type of parametric objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParametricType {
    /// Its name.
    pub name: String,
    /// Names of its coefficients, in the order of a row.
    pub coefficients: Vec<String>,
}

/// Metadata of the group `parametric`: types by id. Rows contain the id as a float.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParametricTypes {
    /// The types.
    pub types: BTreeMap<u64, ParametricType>,
}

impl ParametricTypes {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the table of types is missing or malformed.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut types = BTreeMap::new();
        for (name, at) in fields.require(TYPES)?.fields()?.iter() {
            let id = name.parse::<u64>().ok();
            let id = id
                .filter(|id| id.to_string() == name)
                .ok_or_else(|| at.unknown_word(name, "a type number"))?;
            let fields = at.fields()?;
            let text = |at: &JsonField<'_>| at.text().map(str::to_owned);
            let read = ParametricType {
                name: text(&fields.require("name")?)?,
                coefficients: fields.require("coefficients")?.each(text)?,
            };
            types.insert(id, read);
        }
        let value = Self { types };
        let notes = Vec::new();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes of the node.
    pub fn to_attributes(&self) -> Attributes {
        let types: Attributes = self
            .types
            .iter()
            .map(|(id, of)| {
                let members = JsonMembers::default()
                    .with("name", of.name.as_str())
                    .with("coefficients", of.coefficients.clone());
                (id.to_string(), members.into())
            })
            .collect();
        JsonMembers::default().with(TYPES, types).finish()
    }
}

/// Metadata of `parametric/objects`: rows of float64, NaN after the coefficients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParametricObjects {
    /// Rows.
    pub num_objects: u64,
    /// Numbers of a row: the type's id and coefficients.
    pub max_row_length: u64,
}

impl ParametricObjects {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if a count is missing or another dtype is declared.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, &[OBJECTS], &mut notes);
        if let Some(at) = fields.get("dtype") {
            match at.text()? {
                FLOAT64 => {}
                other => return Err(at.unknown_word(other, "\"float64\"")),
            }
        }
        let value = Self {
            num_objects: fields.require("num_objects")?.u64()?,
            max_row_length: fields.require("max_row_length")?.unsigned(1, u64::MAX)?,
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes of the node.
    pub fn to_attributes(&self) -> Attributes {
        JsonMembers::tagged(OBJECTS)
            .with("num_objects", self.num_objects)
            .with("max_row_length", self.max_row_length)
            .with("dtype", FLOAT64)
            .finish()
    }
}

/// Metadata of `parametric/names`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParametricNames {
    /// Number of names.
    pub num_objects: u64,
}

impl ParametricNames {
    /// Returns the attributes of the node.
    pub fn to_attributes(self) -> Attributes {
        JsonMembers::tagged(NAMES)
            .with("num_objects", self.num_objects)
            .finish()
    }
}
