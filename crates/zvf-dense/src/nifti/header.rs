//! The header of a NIfTI file.

use zvf_format::numeric::{ByteOrder, Kind};

use super::NiftiError;
use crate::sample::Affine;

/// Bytes of the longer header, that of NIfTI-2.
pub(super) const MAX_HEADER_LEN: u64 = 540;
const LEN_1: i32 = 348;
const LEN_2: i32 = 540;
/// Axes of space, which every array has.
const SPACE: usize = 3;
/// Minimum offsets of the voxels: the header, and four bytes that announce extensions.
const MIN_OFFSET_1: u64 = 352;
const MIN_OFFSET_2: u64 = 544;

/// The field of a header that maps voxels to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NiftiTransform {
    /// The matrix `srow_x`, `srow_y`, `srow_z`.
    Sform,
    /// The rotation by a quaternion, the voxel sizes and the offset.
    Qform,
    /// The voxel sizes alone.
    Pixdim,
}

impl NiftiTransform {
    /// Returns the name of the field.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sform => "sform",
            Self::Qform => "qform",
            Self::Pixdim => "pixdim",
        }
    }
}

/// The parsed header of a NIfTI file.
#[derive(Debug)]
pub(super) struct NiftiHeader {
    pub(super) order: ByteOrder,
    pub(super) kind: Kind,
    pub(super) shape: Vec<u64>,
    /// Offset of the voxels.
    pub(super) start: u64,
    /// Slope and intercept, if they change values.
    pub(super) scaling: Option<(f64, f64)>,
    pub(super) voxel_to_world: Option<Affine>,
    /// `None` if the transform cannot be inverted.
    pub(super) world_to_voxel: Option<Affine>,
    /// Metres per unit of positions.
    pub(super) unit: f64,
    pub(super) transform: NiftiTransform,
}

/// The fields of both versions, as stored.
struct StoredHeader {
    dim: [i64; 8],
    datatype: i16,
    pixdim: [f64; 8],
    vox_offset: u64,
    slope: f64,
    intercept: f64,
    qform_code: i32,
    sform_code: i32,
    /// b, c and d of the quaternion, then the offset.
    quaternion: [f64; 6],
    rows: [f64; 12],
    /// Codes of the units of length and time.
    units: i32,
}

impl NiftiHeader {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, NiftiError> {
        let first = bytes.first_chunk().ok_or(NiftiError::Header)?;
        let version = [
            (i32::from_le_bytes(*first), ByteOrder::Little),
            (i32::from_be_bytes(*first), ByteOrder::Big),
        ];
        let known = version
            .into_iter()
            .find(|(len, _)| [LEN_1, LEN_2].contains(len));
        let (len, order) = known.ok_or(NiftiError::Header)?;
        let view = HeaderBytes { bytes, order };
        let fields = match len {
            LEN_1 => StoredHeader::version_1(&view)?,
            _ => StoredHeader::version_2(&view)?,
        };
        let kind = match fields.datatype {
            2 => Kind::UInt8,
            4 => Kind::Int16,
            8 => Kind::Int32,
            16 => Kind::Float32,
            64 => Kind::Float64,
            256 => Kind::Int8,
            512 => Kind::UInt16,
            768 => Kind::UInt32,
            1024 => Kind::Int64,
            1280 => Kind::UInt64,
            other => return Err(NiftiError::Datatype(other)),
        };
        let is_identity = (fields.slope - 1.0).abs() == 0.0 && fields.intercept == 0.0;
        let is_scaled = fields.slope != 0.0 && fields.slope.is_finite() && !is_identity;
        let intercept = Some(fields.intercept).filter(|value| value.is_finite());
        let (transform, matrix) = fields.voxel_to_world();
        let inverse = inverted(&matrix).and_then(|inverse| Affine::of(&inverse).ok());
        let mut forward = matrix.to_vec();
        forward.extend([0.0, 0.0, 0.0, 1.0]);
        Ok(Self {
            order,
            kind,
            shape: fields.shape()?,
            start: fields.vox_offset,
            scaling: is_scaled.then(|| (fields.slope, intercept.unwrap_or(0.0))),
            voxel_to_world: Affine::of(&forward).ok(),
            world_to_voxel: inverse,
            unit: fields.unit(),
            transform,
        })
    }
}

impl StoredHeader {
    fn version_1(view: &HeaderBytes<'_>) -> Result<Self, NiftiError> {
        match view.slice(344, 4)? {
            b"n+1\0" => {}
            b"ni1\0" => return Err(NiftiError::Pair),
            _ => return Err(NiftiError::Header),
        }
        let offset = whole(view.f32(108)?).filter(|offset| *offset >= MIN_OFFSET_1);
        Ok(Self {
            dim: all(40, 2, |at| view.i16(at).map(i64::from))?,
            datatype: view.i16(70)?,
            pixdim: all(76, 4, |at| view.f32(at))?,
            vox_offset: offset.ok_or(NiftiError::Offset)?,
            slope: view.f32(112)?,
            intercept: view.f32(116)?,
            qform_code: view.i16(252)?.into(),
            sform_code: view.i16(254)?.into(),
            quaternion: all(256, 4, |at| view.f32(at))?,
            rows: all(280, 4, |at| view.f32(at))?,
            units: view.slice(123, 1)?.iter().copied().map(i32::from).sum(),
        })
    }

    fn version_2(view: &HeaderBytes<'_>) -> Result<Self, NiftiError> {
        match view.slice(4, 8)? {
            b"n+2\0\r\n\x1a\n" => {}
            b"ni2\0\r\n\x1a\n" => return Err(NiftiError::Pair),
            _ => return Err(NiftiError::Header),
        }
        let offset = u64::try_from(view.i64(168)?).ok();
        let offset = offset.filter(|offset| *offset >= MIN_OFFSET_2);
        Ok(Self {
            dim: all(16, 8, |at| view.i64(at))?,
            datatype: view.i16(12)?,
            pixdim: all(104, 8, |at| view.f64(at))?,
            vox_offset: offset.ok_or(NiftiError::Offset)?,
            slope: view.f64(176)?,
            intercept: view.f64(184)?,
            qform_code: view.i32(344)?,
            sform_code: view.i32(348)?,
            quaternion: all(352, 8, |at| view.f64(at))?,
            rows: all(400, 8, |at| view.f64(at))?,
            units: view.i32(500)?,
        })
    }

    fn shape(&self) -> Result<Vec<u64>, NiftiError> {
        let [count, extents @ ..] = self.dim;
        let count = usize::try_from(count).ok().filter(|count| *count > 0);
        let extents = count
            .and_then(|count| extents.get(..count))
            .ok_or(NiftiError::Shape)?
            .iter()
            .map(|extent| u64::try_from(*extent).ok().filter(|extent| *extent > 0));
        let mut shape: Vec<u64> = extents.collect::<Option<_>>().ok_or(NiftiError::Shape)?;
        while shape.len() > SPACE && shape.last() == Some(&1) {
            shape.pop();
        }
        while shape.len() < SPACE {
            shape.push(1);
        }
        Ok(shape)
    }

    /// Returns metres per unit of length, which is a millimetre unless the header names another.
    fn unit(&self) -> f64 {
        match self.units & 7 {
            1 => 1.0,
            3 => 1e-6,
            _ => 1e-3,
        }
    }

    /// Returns the rows of the map from voxel indices to positions.
    fn voxel_to_world(&self) -> (NiftiTransform, [f64; 12]) {
        if self.sform_code > 0 {
            return (NiftiTransform::Sform, self.rows);
        }
        let [fac, dx, dy, dz, ..] = self.pixdim;
        if self.qform_code <= 0 {
            let rows = [dx, 0.0, 0.0, 0.0, 0.0, dy, 0.0, 0.0, 0.0, 0.0, dz, 0.0];
            return (NiftiTransform::Pixdim, rows);
        }
        let [i, j, k, offset @ ..] = self.quaternion;
        let squared = i * i + j * j + k * k;
        // A rotation by 180 degrees, whose axis may be rounded beyond length 1.
        let norm = squared.max(1.0).sqrt();
        let (i, j, k, real) = (
            i / norm,
            j / norm,
            k / norm,
            (1.0 - squared).max(0.0).sqrt(),
        );
        let dz = if fac < 0.0 { -dz } else { dz };
        let rotation = [
            [
                real * real + i * i - j * j - k * k,
                2.0 * (i * j - real * k),
                2.0 * (i * k + real * j),
            ],
            [
                2.0 * (i * j + real * k),
                real * real + j * j - i * i - k * k,
                2.0 * (j * k - real * i),
            ],
            [
                2.0 * (i * k - real * j),
                2.0 * (j * k + real * i),
                real * real + k * k - i * i - j * j,
            ],
        ];
        let mut rows = [0.0; 12];
        let slots = rows.chunks_exact_mut(SPACE + 1);
        for ((slots, [first, second, third]), shift) in slots.zip(rotation).zip(offset) {
            slots.copy_from_slice(&[first * dx, second * dy, third * dz, shift]);
        }
        (NiftiTransform::Qform, rows)
    }
}

type SpaceVector = [f64; SPACE];

fn dot(left: SpaceVector, right: SpaceVector) -> f64 {
    let products = left.iter().zip(right).map(|(left, right)| left * right);
    products.sum()
}

fn cross([lx, ly, lz]: SpaceVector, [rx, ry, rz]: SpaceVector) -> SpaceVector {
    [ly * rz - lz * ry, lz * rx - lx * rz, lx * ry - ly * rx]
}

/// Inverts a map of three axes, given by its rows. Returns the full matrix.
fn inverted(rows: &[f64; 12]) -> Option<[f64; 16]> {
    let [x0, x1, x2, tx, y0, y1, y2, ty, z0, z1, z2, tz] = *rows;
    let (x, y, z) = ([x0, x1, x2], [y0, y1, y2], [z0, z1, z2]);
    // Rounding keeps the rows of a flat map from being exactly in one plane.
    let determinant = dot(x, cross(y, z));
    let volume = (dot(x, x) * dot(y, y) * dot(z, z)).sqrt();
    let is_flat = determinant.abs() <= volume * 1e-9;
    if !determinant.is_finite() || !volume.is_finite() || is_flat {
        return None;
    }
    let columns = [cross(y, z), cross(z, x), cross(x, y)]
        .map(|column| column.map(|value| value / determinant));
    let [[a0, a1, a2], [b0, b1, b2], [c0, c1, c2]] = columns;
    let row = |row: SpaceVector| {
        let [first, second, third] = row;
        [first, second, third, -dot(row, [tx, ty, tz])]
    };
    let rows = [row([a0, b0, c0]), row([a1, b1, c1]), row([a2, b2, c2])];
    let mut inverse = [0.0; 16];
    let last = [0.0, 0.0, 0.0, 1.0];
    let rows = rows.iter().chain([&last]).flatten();
    for (slot, value) in inverse.iter_mut().zip(rows) {
        *slot = *value;
    }
    inverse
        .iter()
        .all(|value| value.is_finite())
        .then_some(inverse)
}

/// Converts a float that is a whole number of 0 or more, exact as f32.
fn whole(value: f64) -> Option<u64> {
    const MAX: f64 = 1e15;
    let is_whole = value.fract() == 0.0 && (0.0..MAX).contains(&value);
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and within u64"
    )]
    is_whole.then_some(value as u64)
}

/// Bytes of a header in its byte order.
struct HeaderBytes<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl HeaderBytes<'_> {
    fn slice(&self, at: usize, len: usize) -> Result<&[u8], NiftiError> {
        let end = at.checked_add(len).ok_or(NiftiError::Header)?;
        self.bytes.get(at..end).ok_or(NiftiError::Header)
    }

    /// Returns the bytes at an offset, least significant first.
    fn little<const N: usize>(&self, at: usize) -> Result<[u8; N], NiftiError> {
        let bytes = self.slice(at, N)?.first_chunk::<N>();
        let mut bytes = *bytes.ok_or(NiftiError::Header)?;
        if self.order == ByteOrder::Big {
            bytes.reverse();
        }
        Ok(bytes)
    }

    fn i16(&self, at: usize) -> Result<i16, NiftiError> {
        self.little(at).map(i16::from_le_bytes)
    }

    fn i32(&self, at: usize) -> Result<i32, NiftiError> {
        self.little(at).map(i32::from_le_bytes)
    }

    fn i64(&self, at: usize) -> Result<i64, NiftiError> {
        self.little(at).map(i64::from_le_bytes)
    }

    fn f32(&self, at: usize) -> Result<f64, NiftiError> {
        self.little(at)
            .map(|bytes| f32::from_le_bytes(bytes).into())
    }

    fn f64(&self, at: usize) -> Result<f64, NiftiError> {
        self.little(at).map(f64::from_le_bytes)
    }
}

/// Reads `N` values of `size` bytes each.
fn all<T: Copy + Default, const N: usize>(
    at: usize,
    size: usize,
    read: impl Fn(usize) -> Result<T, NiftiError>,
) -> Result<[T; N], NiftiError> {
    let mut values = [T::default(); N];
    for (number, value) in values.iter_mut().enumerate() {
        let offset = number
            .checked_mul(size)
            .and_then(|offset| offset.checked_add(at));
        *value = read(offset.ok_or(NiftiError::Header)?)?;
    }
    Ok(values)
}
