//! The header of 1000 bytes.

use serde_json::Value;

use crate::{
    FileFault, FileHeader, StoreDescription,
    affine::{Direction, VoxelMap},
    values::narrow,
    voxel_grid::VoxelGrid,
};
use zvf_model::base64;

/// Size of the header.
pub(super) const SIZE: usize = 1000;
/// Bytes of a name. The header has ten names of scalars and ten of properties.
pub(super) const NAME: usize = 20;
pub(super) const NAMES: usize = 10;

const DIM: usize = 6;
const VOXEL_SIZE: usize = 12;
const SCALARS: usize = 36;
const SCALAR_NAMES: usize = 38;
const PROPERTIES: usize = 238;
const PROPERTY_NAMES: usize = 240;
const MATRIX: usize = 440;
const ORDER: usize = 948;
const COUNT: usize = 988;
const VERSION: usize = 992;
const LENGTH: usize = 996;

/// Values of a point or of a streamline that have one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedValues {
    pub(super) name: String,
    /// First value and number of values.
    pub(super) first: usize,
    pub(super) width: usize,
}

/// A valid header.
#[derive(Clone, Debug)]
pub(super) struct TrkHeader {
    pub(super) bytes: [u8; SIZE],
    pub(super) is_big_endian: bool,
    pub(super) scalars: usize,
    pub(super) properties: usize,
    pub(super) count: u64,
    /// From coordinates of the file to the world.
    pub(super) to_world: VoxelMap,
    /// From voxels to the world.
    pub(super) voxel_to_ras: VoxelMap,
    pub(super) dim: [i16; 3],
    /// True if the header has no matrix, so that the identity is used.
    pub(super) lacks_matrix: bool,
}

/// Returns `N` bytes of the header.
fn field<const N: usize>(bytes: &[u8; SIZE], at: usize) -> [u8; N] {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    field.copied().unwrap_or([0; N])
}

impl TrkHeader {
    /// Checks the header.
    pub(super) fn parse(bytes: &[u8; SIZE]) -> Result<Self, FileFault> {
        if bytes.first_chunk() != Some(b"TRACK\0") {
            let found = String::from_utf8_lossy(bytes.get(..6).unwrap_or_default()).into_owned();
            let expected = "a TRK file starts with TRACK and NUL";
            return Err(FileFault::field(
                "the magic",
                format!("{found:?}"),
                expected,
            ));
        }
        let length: [u8; 4] = field(bytes, LENGTH);
        let is_big_endian = match (i32::from_le_bytes(length), i32::from_be_bytes(length)) {
            (1000, _) => false,
            (_, 1000) => true,
            (found, _) => {
                return Err(FileFault::field("hdr_size", found, "it must be 1000"));
            }
        };
        let i16_at = |at: usize| {
            if is_big_endian {
                i16::from_be_bytes(field(bytes, at))
            } else {
                i16::from_le_bytes(field(bytes, at))
            }
        };
        let i32_at = |at: usize| {
            if is_big_endian {
                i32::from_be_bytes(field(bytes, at))
            } else {
                i32::from_le_bytes(field(bytes, at))
            }
        };
        let f32_at = |at: usize| f32::from_bits(i32_at(at).cast_unsigned());
        let version = i32_at(VERSION);
        if !matches!(version, 1 | 2) {
            return Err(FileFault::field(
                "version",
                version,
                "versions 1 and 2 are read",
            ));
        }
        let number = |at: usize, what| {
            let found = i16_at(at);
            usize::try_from(found)
                .map_err(|_| FileFault::field(what, found, "it cannot be negative"))
        };
        let scalars = number(SCALARS, "n_scalars")?;
        let properties = number(PROPERTIES, "n_properties")?;
        let count = i32_at(COUNT);
        let count = u64::try_from(count)
            .map_err(|_| FileFault::field("n_count", count, "it cannot be negative"))?;
        let dim = [0, 2, 4].map(|offset| i16_at(DIM.saturating_add(offset)));
        let sizes = [0, 4, 8].map(|offset| f32_at(VOXEL_SIZE.saturating_add(offset)));
        if let Some(size) = sizes
            .iter()
            .find(|size| !(size.is_normal() && **size > 0.0))
        {
            let expected = "voxel sizes are above 0; repair the header";
            return Err(FileFault::field("voxel_size", size, expected));
        }
        let matrix = |row: usize, column: usize| {
            f32_at(
                MATRIX
                    .saturating_add(row.saturating_mul(16))
                    .saturating_add(column.saturating_mul(4)),
            )
        };
        let lacks_matrix = version == 1 || matrix(3, 3) == 0.0;
        let voxel_to_ras = if lacks_matrix {
            VoxelMap::IDENTITY
        } else {
            VoxelMap([0, 1, 2].map(|row| [0, 1, 2, 3].map(|column| f64::from(matrix(row, column)))))
        };
        let to_world = to_world(
            &voxel_to_ras,
            sizes.map(f64::from),
            dim,
            field(bytes, ORDER),
        )?;
        Ok(Self {
            bytes: *bytes,
            is_big_endian,
            scalars,
            properties,
            count,
            to_world,
            voxel_to_ras,
            dim,
            lacks_matrix,
        })
    }

    /// Returns the names of the values of a point.
    pub(super) fn scalar_names(&self) -> Result<Vec<NamedValues>, FileFault> {
        let values = (self.scalars, "scalars");
        named(&self.bytes, SCALAR_NAMES, values.0, values.1)
    }

    /// Returns the names of the values of a streamline.
    pub(super) fn property_names(&self) -> Result<Vec<NamedValues>, FileFault> {
        let values = (self.properties, "properties");
        named(&self.bytes, PROPERTY_NAMES, values.0, values.1)
    }

    /// Returns the header that a store keeps of a file; `None` if it keeps none.
    pub(super) fn kept(description: &StoreDescription) -> Result<Option<Self>, FileFault> {
        let kept = description
            .headers
            .get("trk")
            .and_then(|kept| kept.get("header"));
        let Some(kept) = kept.and_then(Value::as_str) else {
            return Ok(None);
        };
        let bytes = base64::decode(kept.as_bytes()).map_err(FileFault::base64)?;
        let bytes: [u8; SIZE] = bytes.try_into().map_err(|bytes: Vec<u8>| {
            let expected = "headers/trk of the store must hold 1000 bytes";
            FileFault::field(
                "the kept header",
                format!("{} bytes", bytes.len()),
                expected,
            )
        })?;
        Self::parse(&bytes).map(Some)
    }

    /// Returns a header for coordinates in a voxel grid.
    pub(super) fn of_grid(grid: &VoxelGrid) -> Result<Self, FileFault> {
        let mut bytes = [0; SIZE];
        let mut put = |at: usize, value: &[u8]| {
            for (target, byte) in bytes.iter_mut().skip(at).zip(value) {
                *target = *byte;
            }
        };
        put(0, b"TRACK\0");
        let dim = grid
            .dimensions
            .map(|count| i16::try_from(count).unwrap_or(i16::MAX));
        for (axis, count) in dim.into_iter().enumerate() {
            put(
                DIM.saturating_add(axis.saturating_mul(2)),
                &count.to_le_bytes(),
            );
        }
        for (axis, size) in grid.affine.voxel_sizes().into_iter().enumerate() {
            let at = VOXEL_SIZE.saturating_add(axis.saturating_mul(4));
            put(at, &narrow(size).to_le_bytes());
        }
        // Readers derive the directions from the rounded matrix.
        let affine = VoxelMap(
            grid.affine
                .0
                .map(|row| row.map(|value| f64::from(narrow(value)))),
        );
        let last = [0.0, 0.0, 0.0, 1.0];
        let values = affine.0.iter().flatten().chain(&last);
        for (at, value) in values.enumerate() {
            let at = MATRIX.saturating_add(at.saturating_mul(4));
            put(at, &narrow(*value).to_le_bytes());
        }
        let order: String = affine.directions().map(Direction::letter).iter().collect();
        put(ORDER, order.as_bytes());
        put(VERSION, &2_i32.to_le_bytes());
        put(LENGTH, &1000_i32.to_le_bytes());
        Self::parse(&bytes)
    }

    /// Returns the voxel grid.
    pub(super) fn grid(&self) -> VoxelGrid {
        let dimensions = self.dim.map(|count| u64::try_from(count).unwrap_or(1));
        VoxelGrid {
            affine: self.voxel_to_ras,
            dimensions,
        }
    }

    /// Moves the header to another voxel grid, with the names that it has.
    pub(super) fn move_to(&mut self, grid: &VoxelGrid) -> Result<(), FileFault> {
        let (scalars, properties) = (self.scalar_names()?, self.property_names()?);
        *self = Self::of_grid(grid)?;
        self.set_scalars(&scalars);
        self.set_properties(&properties);
        Ok(())
    }

    /// Sets the names of scalars, which are ten at most. The header stays if it has them.
    pub(super) fn set_scalars(&mut self, names: &[NamedValues]) {
        if self.scalar_names().ok().as_deref() != Some(names) {
            self.scalars = self.set_names(SCALARS, SCALAR_NAMES, names);
        }
    }

    /// Sets the names of properties, which are ten at most. The header stays if it has them.
    pub(super) fn set_properties(&mut self, names: &[NamedValues]) {
        if self.property_names().ok().as_deref() != Some(names) {
            self.properties = self.set_names(PROPERTIES, PROPERTY_NAMES, names);
        }
    }

    /// Sets a number of values and their names, and returns the number.
    fn set_names(&mut self, count_at: usize, names_at: usize, names: &[NamedValues]) -> usize {
        let count = names
            .iter()
            .map(|it| it.width)
            .fold(0, usize::saturating_add);
        for (slot, named) in names
            .iter()
            .map(Some)
            .chain(std::iter::repeat(None))
            .take(NAMES)
            .enumerate()
        {
            let mut bytes = named.map_or_else(Vec::new, NamedValues::to_bytes);
            bytes.resize(NAME, 0);
            self.put(names_at.saturating_add(slot.saturating_mul(NAME)), &bytes);
        }
        let number = i16::try_from(count).unwrap_or(i16::MAX);
        let number = if self.is_big_endian {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        };
        self.put(count_at, &number);
        count
    }

    /// Returns the header with a number of streamlines.
    pub(super) fn with_count(&self, count: u64) -> Result<[u8; SIZE], FileFault> {
        let number = i32::try_from(count).map_err(|_| FileFault::Result {
            format: "trk",
            holds: "up to 2147483647 streamlines",
            remedy: "write trx or tck",
        })?;
        let mut header = self.clone();
        let number = if self.is_big_endian {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        };
        header.put(COUNT, &number);
        Ok(header.bytes)
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        for (target, byte) in self.bytes.iter_mut().skip(at).zip(value) {
            *target = *byte;
        }
    }

    /// Returns the part of `headers/trk` that restores the header.
    pub(super) fn to_header(&self) -> FileHeader {
        let mut header = FileHeader::new();
        header.insert("header".to_owned(), base64::encode(&self.bytes).into());
        header.insert("voxel_to_rasmm".to_owned(), self.voxel_to_ras.to_json());
        header.insert("dimensions".to_owned(), self.dim.to_vec().into());
        header
    }
}

impl NamedValues {
    /// Returns the number of characters that the name of this many values can have.
    pub(super) fn longest(width: usize) -> usize {
        match width {
            0 | 1 => NAME,
            // A zero and the number of values follow.
            _ => NAME.saturating_sub(2),
        }
    }

    /// Encodes the name as Latin-1, from which it is decoded when read.
    fn to_bytes(&self) -> Vec<u8> {
        let letters = self
            .name
            .chars()
            .take(Self::longest(self.width))
            .map(|letter| u8::try_from(letter).unwrap_or(b'_'));
        let mut bytes: Vec<u8> = letters.collect();
        if self.width > 1 {
            bytes.push(0);
            bytes.extend(self.width.to_string().bytes().take(1));
        }
        bytes
    }
}

/// Returns the map from coordinates of the file to the world.
fn to_world(
    voxel_to_ras: &VoxelMap,
    sizes: [f64; 3],
    dim: [i16; 3],
    order: [u8; 3],
) -> Result<VoxelMap, FileFault> {
    let order = if order == [0; 3] { *b"LPS" } else { order };
    let directions = voxel_to_ras.directions();
    let mut from_file = VoxelMap::IDENTITY;
    let axes = order.iter().zip(directions).zip(sizes.into_iter().zip(dim));
    for (axis, ((letter, direction), (size, count))) in axes.enumerate() {
        let Some(named) = Direction::of_letter(*letter) else {
            let found = String::from_utf8_lossy(&order).into_owned();
            let expected = "its letters are three of L, R, A, P, I and S; repair the header";
            return Err(FileFault::field(
                "voxel_order",
                format!("{found:?}"),
                expected,
            ));
        };
        if named.axis != direction.axis {
            let found = String::from_utf8_lossy(&order).into_owned();
            let expected = "vox_to_ras has its axes in another sequence, which programs interpret differently; repair the header";
            return Err(FileFault::field(
                "voxel_order",
                format!("{found:?}"),
                expected,
            ));
        }
        let flips = named.ascends != direction.ascends;
        // v = p / size - 0.5, or dim - 1 - v if the axis is flipped.
        let row = if flips {
            [-1.0 / size, f64::from(count) - 0.5]
        } else {
            [1.0 / size, -0.5]
        };
        if let Some(target) = from_file.0.get_mut(axis) {
            *target = [0.0, 0.0, 0.0, row[1]];
            if let Some(scale) = target.get_mut(axis) {
                *scale = row[0];
            }
        }
    }
    let map = voxel_to_ras.after(&from_file);
    if map.inverse().is_none() {
        let expected = "the matrix has no inverse; repair the header";
        return Err(FileFault::field(
            "vox_to_ras",
            format!("{:?}", voxel_to_ras.0),
            expected,
        ));
    }
    Ok(map)
}

/// Reads the names of `count` values.
fn named(
    bytes: &[u8; SIZE],
    at: usize,
    count: usize,
    rest: &'static str,
) -> Result<Vec<NamedValues>, FileFault> {
    let mut names = Vec::new();
    let mut first = 0_usize;
    for slot in bytes.get(at..).unwrap_or_default().chunks(NAME).take(NAMES) {
        if first >= count {
            break;
        }
        let mut parts = slot.split(|byte| *byte == 0);
        let name = parts.next().unwrap_or_default();
        if name.is_empty() {
            break;
        }
        let name: String = name.iter().map(|byte| char::from(*byte)).collect();
        let digits = parts.next().unwrap_or_default();
        let width = std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(1_usize)
            .max(1);
        if first.saturating_add(width) > count {
            let expected = "the names stand for more values than there are; repair the header";
            return Err(FileFault::field(
                "a name of values",
                format!("{name:?}"),
                expected,
            ));
        }
        names.push(NamedValues { name, first, width });
        first = first.saturating_add(width);
    }
    if first < count {
        names.push(NamedValues {
            name: rest.to_owned(),
            first,
            width: count.saturating_sub(first),
        });
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are Latin-1, in which a file has them.
    #[test]
    fn names_keep_their_bytes() {
        let names: Vec<NamedValues> = [
            ("\u{e9}t\u{e9}", 1),
            ("abcdefghijklmnopqrstu", 1),
            ("abcdefghijklmnopqrst", 3),
        ]
        .into_iter()
        .map(|(name, width)| NamedValues {
            name: name.to_owned(),
            first: 0,
            width,
        })
        .collect();
        let bytes: Vec<Vec<u8>> = names.iter().map(NamedValues::to_bytes).collect();
        assert_eq!(bytes[0], [0xe9, b't', 0xe9]);
        assert_eq!(bytes[1], b"abcdefghijklmnopqrst");
        assert_eq!(bytes[2], b"abcdefghijklmnopqr\x003");
    }
}
