//! Description of the store that a result comes from, carried inside the file or beside it.
//!
//! | format | location |
//! |---|---|
//! | `npz` | the array `metadata`, one text |
//! | `arrow`, `parquet` | the key `zvf` of the schema metadata |
//! | `csv` | the file `NAME.metadata.json` |
//!
//! The text is one JSON object. Keys without a value are absent; unknown keys are ignored:
//!
//! | key | value |
//! |---|---|
//! | `geometry` | kind of the geometry |
//! | `level` | level, or levels, of the result |
//! | `axes` | list of objects with `name`, `type` and `unit` |
//! | `crs` | coordinate reference system, as stored |
//! | `name` | name of the collection |
//! | `directed` | `true` if links have a direction |
//! | `winding_order` | order of the corners of faces, as in the root of the store |
//! | `attributes` | units, descriptions and channel names of attributes, by scope and name |
//! | `headers` | headers of source files, by format |
//! | `transaction` | number of the transaction to which row ids belong |

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf::{AttributeDeclarations, AxisSpec, Column, Design, GeometryKind, Scope, WindingOrder};
use zvf_model::grid::Bounds;

/// Header of a file, as attributes of `headers/<format>` in a store.
pub type FileHeader = Map<String, Value>;

/// Description of the store that a result comes from: everything of a file that is not a row. Formats
/// of a field take the axes, the coordinate reference system and their header from it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoreDescription {
    /// Kind of the geometry, or name of an additional geometry.
    pub geometry: String,
    /// Axes with their types and units.
    pub axes: Vec<AxisSpec>,
    /// Coordinate reference system.
    pub crs: Option<Value>,
    /// Bounds of the store along each axis. Files do not carry them.
    pub bounds: Option<Bounds>,
    /// Name of the collection.
    pub name: Option<String>,
    /// True if links have a direction.
    pub directed: bool,
    /// Order of the corners of faces.
    pub winding: Option<WindingOrder>,
    /// Units, descriptions and channel names of attributes.
    pub attributes: AttributeDeclarations,
    /// Headers of source files, by format.
    pub headers: BTreeMap<String, FileHeader>,
    /// Number of the transaction to which row ids belong.
    pub transaction: Option<u64>,
    /// Attributes of groups, one row per group number from 0. They are written as columns.
    pub group: Vec<Column>,
}

impl StoreDescription {
    /// Creates a description that has only the kind of the geometry.
    pub fn new(geometry: impl Into<String>) -> Self {
        Self {
            geometry: geometry.into(),
            ..Self::default()
        }
    }

    /// Creates a description of axes, a coordinate reference system and headers by format.
    pub fn from_parts(
        axes: Vec<AxisSpec>,
        crs: Option<Value>,
        headers: BTreeMap<String, FileHeader>,
    ) -> Self {
        Self {
            axes,
            crs,
            headers,
            ..Self::default()
        }
    }

    /// Returns the JSON text for a result of `level`; `None` if there is nothing to carry.
    pub(crate) fn text(&self, level: &str) -> Option<String> {
        let is_empty = self.axes.is_empty()
            && self.crs.is_none()
            && self.name.is_none()
            && !self.directed
            && self.winding.is_none()
            && self.attributes.is_empty()
            && self.headers.is_empty()
            && self.transaction.is_none();
        if is_empty {
            return None;
        }
        let mut object = json!({ "geometry": self.geometry, "level": level });
        let mut put = |key: &str, value: Value| {
            if let Some(object) = object.as_object_mut() {
                object.insert(key.to_owned(), value);
            }
        };
        let axes = self.axes.iter().map(|axis| {
            let mut object = json!({ "name": axis.name, "type": axis.kind });
            if let (Some(unit), Some(object)) = (&axis.unit, object.as_object_mut()) {
                object.insert("unit".to_owned(), unit.clone().into());
            }
            object
        });
        put("axes", axes.collect());
        if let Some(crs) = &self.crs {
            put("crs", crs.clone());
        }
        if let Some(name) = &self.name {
            put("name", name.clone().into());
        }
        if self.directed {
            put("directed", true.into());
        }
        if let Some(winding) = self.winding {
            put("winding_order", winding.as_str().into());
        }
        if !self.attributes.is_empty() {
            put("attributes", json!(self.attributes));
        }
        if !self.headers.is_empty() {
            put("headers", json!(self.headers));
        }
        if let Some(transaction) = self.transaction {
            put("transaction", transaction.into());
        }
        Some(object.to_string())
    }

    /// Parses the JSON text.
    ///
    /// # Errors
    ///
    /// Returns the reason if the text is not JSON or a value has the wrong type.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let object: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let string = |object: &Map<String, Value>, key: &str| match object.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{key} is not text")),
        };
        let mut description = Self {
            geometry: string(&object, "geometry")?.unwrap_or_default(),
            crs: object.get("crs").filter(|crs| !crs.is_null()).cloned(),
            name: string(&object, "name")?,
            ..Self::default()
        };
        if let Some(transaction) = object.get("transaction") {
            let number = transaction.as_u64().ok_or("transaction is not a number")?;
            description.transaction = Some(number);
        }
        if let Some(directed) = object.get("directed") {
            let directed = directed.as_bool();
            description.directed = directed.ok_or("directed is neither true nor false")?;
        }
        if let Some(word) = string(&object, "winding_order")? {
            let winding = WindingOrder::of_word(&word);
            description.winding = Some(winding.ok_or("winding_order is neither ccw nor cw")?);
        }
        if let Some(axes) = object.get("axes") {
            let axes = axes.as_array().ok_or("axes is not a list")?;
            for axis in axes {
                let axis = axis.as_object().ok_or("an axis is not an object")?;
                let name = string(axis, "name")?.ok_or("an axis has no name")?;
                let mut described = AxisSpec::new(name);
                if let Some(kind) = string(axis, "type")? {
                    described.kind = kind;
                }
                described.unit = string(axis, "unit")?;
                description.axes.push(described);
            }
        }
        if let Some(scopes) = object.get("attributes") {
            description.attributes = attributes(scopes)?;
        }
        if let Some(headers) = object.get("headers") {
            let headers = headers.as_object().ok_or("headers is not an object")?;
            for (format, header) in headers {
                let header = header
                    .as_object()
                    .ok_or_else(|| format!("the header {format} is not an object"))?;
                description.headers.insert(format.clone(), header.clone());
            }
        }
        Ok(description)
    }

    /// Returns the kind of the geometry; `None` for several kinds, and for an additional geometry.
    pub fn kind(&self) -> Option<GeometryKind> {
        let mut kinds = GeometryKind::ALL.into_iter();
        // Stores have words of their own for kinds.
        kinds.find(|kind| [kind.as_str(), kind.name()].contains(&self.geometry.as_str()))
    }

    /// Returns the names of the axes; `None` if the description has no axes.
    pub fn axis_names(&self) -> Option<Vec<String>> {
        let names = self.axes.iter().map(|axis| axis.name.clone());
        (!self.axes.is_empty()).then(|| names.collect())
    }

    /// Completes a design: what the design leaves open is taken from the description. Axes are
    /// taken if they have the names of the columns that were read.
    pub fn complete(&self, design: &mut Design, names: Option<&[String]>) {
        let own = self.axes.iter().map(|axis| axis.name.as_str());
        let is_same = names.is_none_or(|names| own.eq(names.iter().map(String::as_str)));
        if design.axes.is_none() && is_same && !self.axes.is_empty() {
            design.axes = Some(self.axes.clone());
        }
        if design.crs.is_none() {
            design.crs = self.crs.clone().map(Into::into);
        }
        if design.name.is_none() {
            design.name.clone_from(&self.name);
        }
        design.directed |= self.directed;
        if design.winding.is_none() && design.kind.has_faces() {
            design.winding = self.winding;
        }
        if design.headers.is_empty() {
            design.headers = self.headers.clone().into();
        }
        for (scope, attributes) in &self.attributes {
            let declared = design.attribute_specs.entry(scope.clone()).or_default();
            for (name, members) in attributes {
                let declared = declared.entry(name.clone()).or_default();
                for (member, value) in members {
                    if !declared.contains_key(member) {
                        declared.insert(member.clone(), value.clone());
                    }
                }
            }
        }
    }

    /// Moves the declaration of an attribute that is stored in another scope.
    pub(crate) fn move_attribute(&mut self, from: &str, to: &str, name: &str) {
        let of_scope = self.attributes.get_mut(from);
        if let Some(declared) = of_scope.and_then(|attributes| attributes.remove(name)) {
            let of_scope = self.attributes.entry(to.to_owned()).or_default();
            of_scope.entry(name.to_owned()).or_insert(declared);
        }
    }

    /// Gives a declaration of an attribute another name.
    pub(crate) fn rename_attribute(&mut self, scope: &str, old: &str, new: &str) {
        if old == new {
            return;
        }
        if let Some(attributes) = self.attributes.get_mut(scope)
            && let Some(declared) = attributes.remove(old)
        {
            attributes.insert(new.to_owned(), declared);
        }
    }
}

/// Parses declarations of attributes.
fn attributes(scopes: &Value) -> Result<AttributeDeclarations, String> {
    let scopes = scopes.as_object().ok_or("attributes is not an object")?;
    let mut parsed = AttributeDeclarations::new();
    for (scope, attributes) in scopes {
        if !Scope::ALL.iter().any(|known| known.name() == scope) {
            return Err(format!("attributes has {scope:?}, which is not a scope"));
        }
        let attributes = attributes
            .as_object()
            .ok_or_else(|| format!("attributes.{scope} is not an object"))?;
        for (name, members) in attributes {
            let members = members
                .as_object()
                .cloned()
                .ok_or_else(|| format!("attributes.{scope}.{name} is not an object"))?;
            let of_scope = parsed.entry(scope.clone()).or_default();
            of_scope.insert(name.clone(), members);
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_description_are_equivalent() {
        let mut description = StoreDescription::new("mesh");
        assert_eq!(description.text("0"), None);
        description.axes = vec![AxisSpec::new("t").kind("time").unit("second")];
        description.crs = Some(json!({"type": "EPSG", "code": 25832}));
        description.name = Some("Gehirn σ".to_owned());
        let header = json!({"voxel_to_rasmm": [[1.0, 0.5]]})
            .as_object()
            .unwrap()
            .clone();
        description.headers.insert("trk".to_owned(), header);
        let fa = json!({"unit": "1", "description": "anisotropy", "channel_names": ["a", "b"]})
            .as_object()
            .unwrap()
            .clone();
        let vertex = BTreeMap::from([("fa".to_owned(), fa)]);
        description.attributes.insert("vertex".to_owned(), vertex);
        description.directed = true;
        description.transaction = Some(3);
        let text = description.text("0").unwrap();
        assert_eq!(StoreDescription::parse(&text), Ok(description));
    }

    #[test]
    fn damaged_text_is_rejected() {
        for (text, reason) in [
            ("", "EOF"),
            ("[]", "expected a map"),
            (r#"{"name": 3}"#, "name is not text"),
            (r#"{"axes": {}}"#, "axes is not a list"),
            (r#"{"directed": 1}"#, "directed is neither true nor false"),
            (r#"{"axes": [{}]}"#, "an axis has no name"),
            (r#"{"transaction": -1}"#, "transaction is not a number"),
            (
                r#"{"headers": {"trk": 1}}"#,
                "the header trk is not an object",
            ),
            (r#"{"attributes": 1}"#, "attributes is not an object"),
            (r#"{"attributes": {"node": {}}}"#, "which is not a scope"),
            (
                r#"{"attributes": {"vertex": {"fa": "x"}}}"#,
                "attributes.vertex.fa is not an object",
            ),
        ] {
            let found = StoreDescription::parse(text).unwrap_err();
            assert!(found.contains(reason), "{text}: {found}");
        }
        let empty = StoreDescription::parse("{}");
        assert_eq!(empty, Ok(StoreDescription::default()));
    }
}
