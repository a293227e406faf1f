//! Multi-resolution meshes: the `info` document and the positions of vertices in a node.

use serde_json::{Map, Value};

use crate::{
    InfoError, ShardingSpec, info_node::InfoNode, info_references::add_references,
    skeleton::IDENTITY,
};

const TYPE: &str = "neuroglancer_multilod_draco";

/// The bits of a coordinate of a vertex within its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VertexBits {
    /// 10 bits: steps of 1/1023 of a node.
    Ten,
    /// 16 bits: steps of 1/65535 of a node.
    #[default]
    Sixteen,
}

impl VertexBits {
    /// Returns the number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Self::Ten => 10,
            Self::Sixteen => 16,
        }
    }

    /// Returns the largest coordinate, which is the upper border of the node.
    pub fn last(self) -> u32 {
        match self {
            Self::Ten => 1023,
            Self::Sixteen => 65_535,
        }
    }

    /// Returns the coordinate of the plane at which a viewer divides a node that has children.
    pub fn middle(self) -> u32 {
        match self {
            Self::Ten => 512,
            Self::Sixteen => 32_768,
        }
    }
}

/// The `info` of multi-resolution meshes.
#[derive(Clone, Debug, PartialEq)]
pub struct MultilodMeshInfo {
    /// Bits of the coordinates in fragments.
    pub vertex_bits: VertexBits,
    /// From positions to nanometres.
    pub transform: [f64; 12],
    /// Factor of the scales of all manifests.
    pub lod_scale_multiplier: f64,
    /// Folder of the properties of segments.
    pub segment_properties: Option<String>,
    /// The shards; `None` if each mesh is a file `<id>` with a manifest `<id>.index`.
    pub sharding: Option<ShardingSpec>,
}

impl Default for MultilodMeshInfo {
    fn default() -> Self {
        Self {
            vertex_bits: VertexBits::default(),
            transform: IDENTITY,
            lod_scale_multiplier: 1.0,
            segment_properties: None,
            sharding: None,
        }
    }
}

impl MultilodMeshInfo {
    /// Returns the document.
    pub fn to_json(&self) -> String {
        let mut info = Map::new();
        info.insert("@type".to_owned(), TYPE.into());
        info.insert(
            "vertex_quantization_bits".to_owned(),
            self.vertex_bits.bits().into(),
        );
        info.insert("transform".to_owned(), self.transform.to_vec().into());
        info.insert(
            "lod_scale_multiplier".to_owned(),
            self.lod_scale_multiplier.into(),
        );
        let properties = self.segment_properties.as_deref();
        add_references(&mut info, properties, self.sharding.as_ref());
        Value::Object(info).to_string()
    }

    /// Reads the document.
    ///
    /// # Errors
    ///
    /// [`InfoError`] if it is not JSON or not an `info` of multi-resolution meshes.
    pub fn parse(json: &[u8]) -> Result<Self, InfoError> {
        let value = serde_json::from_slice(json)?;
        let node = InfoNode::document(&value, TYPE)?;
        let wanted = "10 or 16";
        let bits = node.need("vertex_quantization_bits", wanted)?;
        let vertex_bits = match bits.unsigned()? {
            10 => VertexBits::Ten,
            16 => VertexBits::Sixteen,
            _ => return Err(bits.fault("", wanted)),
        };
        let wanted = "a positive number";
        let multiplier = node.need("lod_scale_multiplier", wanted)?;
        let lod_scale_multiplier = multiplier.number()?;
        if !lod_scale_multiplier.is_finite() || lod_scale_multiplier <= 0.0 {
            return Err(multiplier.fault("", wanted));
        }
        let transform = node.get("transform").map(|node| node.transform());
        let sharding = node
            .get("sharding")
            .map(|node| ShardingSpec::from_node(&node));
        Ok(Self {
            vertex_bits,
            transform: transform.transpose()?.unwrap_or(IDENTITY),
            lod_scale_multiplier,
            segment_properties: node.optional_text("segment_properties")?,
            sharding: sharding.transpose()?,
        })
    }
}
