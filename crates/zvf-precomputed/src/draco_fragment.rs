//! Fragments of multi-resolution meshes: Draco meshes of triangles with integer positions.

use draco_core::{
    DataType, DecodeLimits, DecoderBuffer, EncoderBuffer, EncoderOptions, GeometryAttributeType,
    Mesh, MeshDecoder, MeshEncoder, PointAttribute, PointIndex,
};

use crate::{
    PrecomputedError,
    mesh_cut::{CutMesh, MultilodMesh, QuantizedMesh},
    multilod_mesh::VertexBits,
    skeleton::{check_rows, count},
};

/// Bytes of a position.
const POSITION: usize = 12;
/// Draco's compromise of size and time: 0 is the smallest, 10 the fastest. Of a torus with a million
/// triangles, 3 takes 13 % more time than 5 for 10 % fewer bytes; 1 takes three times as long for
/// another 2 %.
const SPEED: i32 = 3;

impl QuantizedMesh {
    /// Returns the mesh as a Draco stream: an attribute of three signed 32-bit integers, without a
    /// transform. The order of vertices and triangles changes.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if a triangle names a missing vertex, if a coordinate has more than 16
    /// bits, or if there are no triangles or too many.
    pub fn encode(&self) -> Result<Vec<u8>, PrecomputedError> {
        let vertices = count(self.positions.len(), "vertices")?;
        check_rows(self.triangles.as_flattened().iter().copied(), vertices)?;
        count(self.triangles.len().saturating_mul(3), "corners")?;
        if self.triangles.is_empty() {
            return Err(PrecomputedError::Draco("it has no triangles"));
        }
        check_steps(&self.positions)?;
        let mut attribute = PointAttribute::new();
        let kind = GeometryAttributeType::Position;
        let rows = self.positions.len();
        attribute
            .try_init(kind, 3, DataType::Int32, false, rows)
            .map_err(|error| PrecomputedError::Draco(error.kind().as_str()))?;
        let coordinates = self.positions.as_flattened().iter();
        let bytes: Vec<u8> = coordinates.flat_map(|along| along.to_le_bytes()).collect();
        if !attribute.buffer_mut().try_write(0, &bytes) {
            return Err(PrecomputedError::Draco("its positions do not fit"));
        }
        let mut mesh = Mesh::new();
        mesh.set_num_points(rows);
        mesh.add_attribute(attribute);
        for [a, b, c] in &self.triangles {
            mesh.add_face([PointIndex(*a), PointIndex(*b), PointIndex(*c)]);
        }
        let mut options = EncoderOptions::new();
        options.set_global_int("encoding_speed", SPEED);
        options.set_global_int("decoding_speed", SPEED);
        let mut encoder = MeshEncoder::new();
        encoder.set_mesh(mesh);
        let mut buffer = EncoderBuffer::new();
        encoder
            .encode(&options, &mut buffer)
            .map_err(|error| PrecomputedError::Draco(error.kind().as_str()))?;
        Ok(buffer.data().to_vec())
    }

    /// Decodes a Draco stream of at most `most_triangles` triangles. Memory is bounded by that
    /// number, not by the numbers that the bytes claim.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if the bytes are damaged, have more triangles, or are not a mesh with
    /// integer positions of at most 16 bits.
    pub fn decode(bytes: &[u8], most_triangles: u32) -> Result<Self, PrecomputedError> {
        let refused = PrecomputedError::Draco;
        let most = u64::from(most_triangles);
        let points = most.saturating_mul(3);
        let limits = DecodeLimits::default()
            .with_max_faces(most)
            .with_max_points(points)
            .with_max_decoded_bytes(points.saturating_mul(12));
        let mut buffer = DecoderBuffer::new(bytes).with_limits(limits);
        let mut mesh = Mesh::new();
        MeshDecoder::new()
            .decode(&mut buffer, &mut mesh)
            .map_err(|error| refused(error.kind().as_str()))?;
        let attribute = mesh
            .named_attribute(GeometryAttributeType::Position)
            .ok_or(refused("it has no positions"))?;
        let is_integer = matches!(attribute.data_type(), DataType::Int32 | DataType::Uint32);
        if !is_integer || attribute.num_components() != 3 {
            return Err(refused("its positions are not three 32-bit integers"));
        }
        let values = attribute.buffer().data().as_chunks::<POSITION>().0;
        let vertices = count(mesh.num_points(), "vertices")?;
        let positions: Option<Vec<[u32; 3]>> = (0..vertices)
            .map(|point| {
                let row = usize::try_from(attribute.mapped_index(PointIndex(point)).0).ok()?;
                let value = values.get(row)?.as_chunks::<4>().0;
                let value = <[[u8; 4]; 3]>::try_from(value).ok()?;
                Some(value.map(u32::from_le_bytes))
            })
            .collect();
        let triangles: Vec<[u32; 3]> = mesh
            .faces()
            .iter()
            .map(|face| face.map(|corner| corner.0))
            .collect();
        check_rows(triangles.as_flattened().iter().copied(), vertices)?;
        let positions = positions.ok_or(refused("it has fewer positions than points"))?;
        check_steps(&positions)?;
        Ok(Self {
            positions,
            triangles,
        })
    }
}

/// Refuses positions outside of a node of 16 bits.
fn check_steps(positions: &[[u32; 3]]) -> Result<(), PrecomputedError> {
    let last = VertexBits::Sixteen.last();
    let is_inside = positions.as_flattened().iter().all(|step| *step <= last);
    let outside = PrecomputedError::Draco("a position is outside of its node");
    is_inside.then_some(()).ok_or(outside)
}

impl CutMesh {
    /// Encodes all fragments and joins them.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if a fragment cannot be encoded.
    pub fn encode(&self) -> Result<MultilodMesh, PrecomputedError> {
        let encoded: Vec<Vec<u8>> = self
            .fragments()
            .iter()
            .map(|fragment| fragment.mesh().encode())
            .collect::<Result<_, _>>()?;
        self.join(&encoded)
    }
}
