//! Skeletons: vertices with attributes, and edges.
//!
//! | part | type |
//! |---|---|
//! | vertices n, edges m | u32, u32 |
//! | positions | f32 × 3n |
//! | edges | u32 × 2m, rows below n |
//! | per attribute | n rows |

use serde_json::{Map, Value, json};

use crate::{
    InfoError, PrecomputedError, ShardingSpec,
    cursor::{FieldReader, f32s, u32s},
    info_node::InfoNode,
    info_references::add_references,
};

const TYPE: &str = "neuroglancer_skeletons";

/// The transform that leaves positions unchanged: three rows of four.
pub const IDENTITY: [f64; 12] = [1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0.];

/// The type of an attribute of vertices. The viewer draws [`Float32`](Self::Float32) only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum AttributeType {
    #[default]
    Float32,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
}

impl AttributeType {
    const ALL: [(Self, &'static str, usize); 7] = [
        (Self::Float32, "float32", 4),
        (Self::Int8, "int8", 1),
        (Self::Uint8, "uint8", 1),
        (Self::Int16, "int16", 2),
        (Self::Uint16, "uint16", 2),
        (Self::Int32, "int32", 4),
        (Self::Uint32, "uint32", 4),
    ];

    fn of(self) -> (Self, &'static str, usize) {
        let found = Self::ALL.into_iter().find(|(kind, ..)| *kind == self);
        found.unwrap_or((Self::Float32, "float32", 4))
    }

    /// Returns the name in the document.
    pub fn name(self) -> &'static str {
        self.of().1
    }

    /// Returns the size of a component.
    pub fn size(self) -> usize {
        self.of().2
    }
}

/// An attribute of vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexAttribute {
    /// Identifier; a name in the shader.
    pub id: String,
    /// Type of a component.
    pub data_type: AttributeType,
    /// Components of a row: 1 to 4 in the viewer.
    pub components: u32,
}

impl VertexAttribute {
    fn row_size(&self) -> usize {
        let components = usize::try_from(self.components).unwrap_or(usize::MAX);
        self.data_type.size().saturating_mul(components)
    }
}

/// The `info` of skeletons.
#[derive(Clone, Debug, PartialEq)]
pub struct SkeletonInfo {
    /// From positions to nanometres.
    pub transform: [f64; 12],
    /// Attributes, in the order of the values.
    pub vertex_attributes: Vec<VertexAttribute>,
    /// Folder of the properties of segments.
    pub segment_properties: Option<String>,
    /// The shards; `None` if each skeleton is a file.
    pub sharding: Option<ShardingSpec>,
}

impl Default for SkeletonInfo {
    fn default() -> Self {
        Self {
            transform: IDENTITY,
            vertex_attributes: Vec::new(),
            segment_properties: None,
            sharding: None,
        }
    }
}

impl SkeletonInfo {
    /// Returns the document.
    pub fn to_json(&self) -> String {
        let attributes = self.vertex_attributes.iter().map(|attribute| {
            json!({
                "id": attribute.id,
                "data_type": attribute.data_type.name(),
                "num_components": attribute.components,
            })
        });
        let mut info = Map::new();
        info.insert("@type".to_owned(), TYPE.into());
        info.insert("transform".to_owned(), self.transform.to_vec().into());
        info.insert("vertex_attributes".to_owned(), attributes.collect());
        let properties = self.segment_properties.as_deref();
        add_references(&mut info, properties, self.sharding.as_ref());
        Value::Object(info).to_string()
    }

    /// Reads the document.
    ///
    /// # Errors
    ///
    /// [`InfoError`] if it is not JSON or not an `info` of skeletons.
    pub fn parse(json: &[u8]) -> Result<Self, InfoError> {
        let value = serde_json::from_slice(json)?;
        let node = InfoNode::document(&value, TYPE)?;
        let transform = node.get("transform").map(|node| node.transform());
        let mut vertex_attributes = Vec::new();
        if let Some(list) = node.get("vertex_attributes") {
            for item in list.items()? {
                vertex_attributes.push(attribute(&item)?);
            }
        }
        let sharding = node
            .get("sharding")
            .map(|node| ShardingSpec::from_node(&node));
        Ok(Self {
            transform: transform.transpose()?.unwrap_or(IDENTITY),
            vertex_attributes,
            segment_properties: node.optional_text("segment_properties")?,
            sharding: sharding.transpose()?,
        })
    }
}

fn attribute(node: &InfoNode<'_>) -> Result<VertexAttribute, InfoError> {
    let name = node.need("data_type", "the name of a type")?.text()?;
    let known = AttributeType::ALL.into_iter().find(|kind| kind.1 == name);
    let wanted = "a number of components from 1 to 256";
    let components = node.need("num_components", wanted)?.unsigned()?;
    let components = u32::try_from(components).ok();
    let components = components.filter(|components| (1..=256).contains(components));
    Ok(VertexAttribute {
        id: node.need("id", "an identifier")?.text()?.to_owned(),
        data_type: known
            .ok_or_else(|| node.fault("data_type", "the name of a type"))?
            .0,
        components: components.ok_or_else(|| node.fault("num_components", wanted))?,
    })
}

/// A skeleton.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skeleton {
    /// Positions of the vertices, before the transform.
    pub positions: Vec<[f32; 3]>,
    /// Pairs of rows.
    pub edges: Vec<[u32; 2]>,
    /// Rows of each attribute as little-endian bytes.
    pub attributes: Vec<Vec<u8>>,
}

impl Skeleton {
    /// Returns the bytes of the file or value.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if an edge names a missing vertex, or an attribute does not have a row for
    /// each vertex.
    pub fn encode(&self, attributes: &[VertexAttribute]) -> Result<Vec<u8>, PrecomputedError> {
        let vertices = count(self.positions.len(), "vertices")?;
        let edges = count(self.edges.len(), "edges")?;
        check_rows(self.edges.as_flattened().iter().copied(), vertices)?;
        if self.attributes.len() != attributes.len() {
            return Err(PrecomputedError::Schema("attributes"));
        }
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&vertices.to_le_bytes());
        bytes.extend_from_slice(&edges.to_le_bytes());
        let positions = self.positions.as_flattened().iter();
        bytes.extend(positions.flat_map(|number| number.to_le_bytes()));
        let rows = self.edges.as_flattened().iter();
        bytes.extend(rows.flat_map(|row| row.to_le_bytes()));
        for (at, (values, attribute)) in self.attributes.iter().zip(attributes).enumerate() {
            let wanted = self.positions.len().saturating_mul(attribute.row_size());
            if values.len() != wanted {
                return Err(PrecomputedError::Column {
                    attribute: at,
                    found: values.len(),
                    wanted,
                });
            }
            bytes.extend_from_slice(values);
        }
        Ok(bytes)
    }

    /// Decodes a file or value.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if the bytes have another length than their counts say, or an edge names a
    /// missing vertex.
    pub fn decode(bytes: &[u8], attributes: &[VertexAttribute]) -> Result<Self, PrecomputedError> {
        let mut cursor = FieldReader::new(bytes);
        let vertices = cursor.u32("number of vertices")?;
        let edges = cursor.count("number of edges")?;
        let rows = usize::try_from(vertices).map_err(|_| PrecomputedError::Count("vertices"))?;
        let positions = cursor.elements(rows, 12, "positions")?;
        let positions: Vec<f32> = f32s(positions).collect();
        let edges: Vec<u32> = u32s(cursor.elements(edges, 8, "edges")?).collect();
        check_rows(edges.iter().copied(), vertices)?;
        let columns = attributes.iter().map(|attribute| {
            let values = cursor.elements(rows, attribute.row_size(), "attributes")?;
            Ok(values.to_vec())
        });
        let attributes = columns.collect::<Result<_, PrecomputedError>>()?;
        cursor.finish()?;
        Ok(Self {
            positions: positions.as_chunks::<3>().0.to_vec(),
            edges: edges.as_chunks::<2>().0.to_vec(),
            attributes,
        })
    }
}

pub(crate) fn count(count: usize, of: &'static str) -> Result<u32, PrecomputedError> {
    u32::try_from(count).map_err(|_| PrecomputedError::Count(of))
}

pub(crate) fn check_rows(
    mut rows: impl Iterator<Item = u32>,
    vertices: u32,
) -> Result<(), PrecomputedError> {
    let outside = rows.find(|row| *row >= vertices);
    outside.map_or(Ok(()), |row| Err(PrecomputedError::Row { row, vertices }))
}
