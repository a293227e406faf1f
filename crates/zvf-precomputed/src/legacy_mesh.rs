//! Single-resolution meshes: a manifest per object that names fragments.
//!
//! | part of a fragment | type |
//! |---|---|
//! | vertices n | u32 |
//! | positions in nanometres | f32 × 3n |
//! | triangles | u32 × 3, rows below n, to the end |

use serde_json::{Map, Value, json};

use crate::{
    InfoError, PrecomputedError,
    cursor::{FieldReader, f32s, u32s},
    info_node::InfoNode,
    info_references::add_references,
    skeleton::{check_rows, count},
};

const TYPE: &str = "neuroglancer_legacy_mesh";

/// The `info` of single-resolution meshes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyMeshInfo {
    /// Folder of the properties of segments.
    pub segment_properties: Option<String>,
}

impl LegacyMeshInfo {
    /// Returns the document.
    pub fn to_json(&self) -> String {
        let mut info = Map::new();
        info.insert("@type".to_owned(), TYPE.into());
        add_references(&mut info, self.segment_properties.as_deref(), None);
        Value::Object(info).to_string()
    }

    /// Reads the document.
    ///
    /// # Errors
    ///
    /// [`InfoError`] if it is not JSON or not an `info` of single-resolution meshes.
    pub fn parse(json: &[u8]) -> Result<Self, InfoError> {
        let value = serde_json::from_slice(json)?;
        let node = InfoNode::document(&value, TYPE)?;
        let segment_properties = node.optional_text("segment_properties")?;
        Ok(Self { segment_properties })
    }
}

/// The manifest of an object, the file `<id>:0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyMeshManifest {
    /// Names of the files of fragments.
    pub fragments: Vec<String>,
}

impl LegacyMeshManifest {
    /// Returns the document.
    pub fn to_json(&self) -> String {
        json!({ "fragments": self.fragments }).to_string()
    }

    /// Reads the document. A name may not lead out of the folder.
    ///
    /// # Errors
    ///
    /// [`InfoError`] if it is not JSON or not a list of names.
    pub fn parse(json: &[u8]) -> Result<Self, InfoError> {
        let value: Value = serde_json::from_slice(json)?;
        let list = InfoNode::below(&value, "").need("fragments", "a list of file names")?;
        let fragments = list.items()?.into_iter().map(|item| {
            let name = item.text()?;
            let leads_out =
                name.is_empty() || name.contains(['/', '\\', '\0']) || matches!(name, "." | "..");
            if leads_out {
                return Err(item.fault("", "the name of a file in this folder"));
            }
            Ok(name.to_owned())
        });
        Ok(Self {
            fragments: fragments.collect::<Result<_, _>>()?,
        })
    }
}

/// A fragment of a mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LegacyMeshFragment {
    /// Positions of the vertices in nanometres.
    pub positions: Vec<[f32; 3]>,
    /// Corners of the triangles.
    pub triangles: Vec<[u32; 3]>,
}

impl LegacyMeshFragment {
    /// Returns the bytes of the file.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if a triangle names a missing vertex.
    pub fn encode(&self) -> Result<Vec<u8>, PrecomputedError> {
        let vertices = count(self.positions.len(), "vertices")?;
        let corners = self.triangles.as_flattened();
        check_rows(corners.iter().copied(), vertices)?;
        let mut bytes = vertices.to_le_bytes().to_vec();
        let positions = self.positions.as_flattened().iter();
        bytes.extend(positions.flat_map(|number| number.to_le_bytes()));
        bytes.extend(corners.iter().flat_map(|row| row.to_le_bytes()));
        Ok(bytes)
    }

    /// Decodes a file.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if the bytes end inside a part, or a triangle names a missing vertex.
    pub fn decode(bytes: &[u8]) -> Result<Self, PrecomputedError> {
        let mut cursor = FieldReader::new(bytes);
        let vertices = cursor.u32("number of vertices")?;
        let rows = usize::try_from(vertices).map_err(|_| PrecomputedError::Count("vertices"))?;
        let positions: Vec<f32> = f32s(cursor.elements(rows, 12, "positions")?).collect();
        if !cursor.len().is_multiple_of(12) {
            return Err(PrecomputedError::Truncated("triangles"));
        }
        let corners = cursor.take(cursor.len(), "triangles")?;
        let corners: Vec<u32> = u32s(corners).collect();
        check_rows(corners.iter().copied(), vertices)?;
        Ok(Self {
            positions: positions.as_chunks::<3>().0.to_vec(),
            triangles: corners.as_chunks::<3>().0.to_vec(),
        })
    }
}
