//! Draco streams through `draco-core`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use draco_core::{
    DataType, DecodeLimits, DecoderBuffer, EncoderBuffer, EncoderOptions, ErrorKind,
    GeometryAttributeType, Mesh, MeshDecoder, MeshEncoder, PointAttribute, PointCloud,
    PointCloudEncoder, PointIndex,
};

use super::{DracoCell, DracoError, PositionBits, SEQUENTIAL, VertexOrder};

/// Bytes of a position and of a triangle.
const ROW: u64 = 12;
const POSITION: usize = 12;

pub(super) fn decode(
    bytes: &[u8],
    limit: u64,
    order: VertexOrder,
) -> Result<DracoCell, DracoError> {
    let rows = limit.checked_div(ROW).unwrap_or(0);
    let limits = DecodeLimits::default()
        .with_max_points(rows)
        .with_max_faces(rows)
        .with_max_decoded_bytes(limit);
    let mut mesh = Mesh::new();
    // The decoder checks its input, but is not proven to be free of panics, as those of this
    // workspace are.
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        let mut buffer = DecoderBuffer::new(bytes).with_limits(limits);
        MeshDecoder::new().decode(&mut buffer, &mut mesh)
    }));
    match decoded {
        Ok(Ok(())) => {}
        Ok(Err(error)) if error.kind() == ErrorKind::LimitExceeded => {
            return Err(DracoError::TooLarge(limit));
        }
        Ok(Err(error)) => return Err(DracoError::Damaged(error.kind().as_str())),
        Err(_) => return Err(DracoError::Damaged("the decoder panicked")),
    }
    let attribute = mesh
        .named_attribute(GeometryAttributeType::Position)
        .filter(|attribute| {
            attribute.data_type() == DataType::Float32 && attribute.num_components() == 3
        })
        .ok_or(DracoError::NoPositions)?;
    let values = attribute.buffer().data().chunks_exact(POSITION);
    let points = u32::try_from(mesh.num_points()).map_err(|_| DracoError::TooLarge(limit))?;
    let values: Vec<[f32; 3]> = values.map(position).collect();
    let positions: Option<Vec<[f32; 3]>> = (0..points)
        .map(|point| {
            let row = usize::try_from(attribute.mapped_index(PointIndex(point)).0).ok()?;
            values.get(row).copied()
        })
        .collect();
    let triangles = mesh.faces().iter().map(|face| face.map(|corner| corner.0));
    let cell = DracoCell {
        positions: positions.ok_or(DracoError::NoPositions)?,
        triangles: triangles.collect(),
        order,
    };
    cell.check_triangles()?;
    Ok(cell)
}

/// Reads the three coordinates of a position.
fn position(bytes: &[u8]) -> [f32; 3] {
    let mut row = [0.0; 3];
    for (along, bytes) in row.iter_mut().zip(bytes.chunks_exact(4)) {
        *along = bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
    }
    row
}

pub(super) fn encode(cell: &DracoCell, bits: PositionBits) -> Result<Vec<u8>, DracoError> {
    let refused = DracoError::Unencodable;
    let rows = cell.positions.len();
    let mut attribute = PointAttribute::new();
    let kind = GeometryAttributeType::Position;
    attribute
        .try_init(kind, 3, DataType::Float32, false, rows)
        .map_err(|error| refused(error.kind().as_str()))?;
    if !attribute.buffer_mut().try_write(0, &cell.rows()) {
        return Err(refused("its positions do not fit"));
    }
    let mut options = EncoderOptions::new();
    options.set_encoding_method(i32::from(SEQUENTIAL));
    options.set_attribute_quantization(0, i32::from(bits.get()));
    let mut buffer = EncoderBuffer::new();
    let encoded = if cell.triangles.is_empty() {
        let mut points = PointCloud::new();
        points.set_num_points(rows);
        points.add_attribute(attribute);
        let mut encoder = PointCloudEncoder::new();
        encoder.set_point_cloud(points);
        encoder.encode(&options, &mut buffer)
    } else {
        let mut mesh = Mesh::new();
        mesh.set_num_points(rows);
        mesh.add_attribute(attribute);
        for triangle in &cell.triangles {
            mesh.add_face(triangle.map(PointIndex));
        }
        let mut encoder = MeshEncoder::new();
        encoder.set_mesh(mesh);
        encoder.encode(&options, &mut buffer)
    };
    encoded.map_err(|error| refused(error.kind().as_str()))?;
    Ok(buffer.data().to_vec())
}
