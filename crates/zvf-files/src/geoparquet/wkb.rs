//! Well-known binary.

use crate::FileFault;

/// Kinds of geometry by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WkbKind {
    Point = 1,
    LineString = 2,
    Polygon = 3,
    MultiPoint = 4,
    MultiLineString = 5,
    MultiPolygon = 6,
}

impl WkbKind {
    fn of(number: u32) -> Option<Self> {
        let all = [
            Self::Point,
            Self::LineString,
            Self::Polygon,
            Self::MultiPoint,
            Self::MultiLineString,
            Self::MultiPolygon,
        ];
        all.into_iter().find(|kind| kind.number() == number)
    }

    fn number(self) -> u32 {
        match self {
            Self::Point => 1,
            Self::LineString => 2,
            Self::Polygon => 3,
            Self::MultiPoint => 4,
            Self::MultiLineString => 5,
            Self::MultiPolygon => 6,
        }
    }

    /// Returns the name in the metadata of a file.
    pub(super) fn name(self, has_z: bool) -> String {
        let name = match self {
            Self::Point => "Point",
            Self::LineString => "LineString",
            Self::Polygon => "Polygon",
            Self::MultiPoint => "MultiPoint",
            Self::MultiLineString => "MultiLineString",
            Self::MultiPolygon => "MultiPolygon",
        };
        format!("{name}{}", if has_z { " Z" } else { "" })
    }
}

/// Appends geometry. Coordinates have two or three numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct WkbEncoder {
    pub(super) has_z: bool,
}

impl WkbEncoder {
    fn head(self, kind: WkbKind, into: &mut Vec<u8>) {
        let z = if self.has_z { 1000 } else { 0 };
        into.push(1);
        into.extend(kind.number().saturating_add(z).to_le_bytes());
    }

    fn coordinates(self, rows: impl IntoIterator<Item = [f64; 3]>, into: &mut Vec<u8>) {
        for [x, y, z] in rows {
            into.extend(x.to_le_bytes());
            into.extend(y.to_le_bytes());
            if self.has_z {
                into.extend(z.to_le_bytes());
            }
        }
    }

    pub(super) fn point(self, row: [f64; 3], into: &mut Vec<u8>) {
        self.head(WkbKind::Point, into);
        self.coordinates([row], into);
    }

    pub(super) fn line(self, rows: &[[f64; 3]], into: &mut Vec<u8>) {
        self.head(WkbKind::LineString, into);
        into.extend(count(rows.len()));
        self.coordinates(rows.iter().copied(), into);
    }

    /// Appends a polygon of one ring, which is closed here.
    pub(super) fn polygon(self, corners: &[[f64; 3]], into: &mut Vec<u8>) {
        self.head(WkbKind::Polygon, into);
        into.extend(count(1));
        into.extend(count(corners.len().saturating_add(1)));
        let closed = corners.iter().chain(corners.first()).copied();
        self.coordinates(closed, into);
    }

    pub(super) fn lines(self, lines: &[[[f64; 3]; 2]], into: &mut Vec<u8>) {
        self.head(WkbKind::MultiLineString, into);
        into.extend(count(lines.len()));
        for line in lines {
            self.line(line, into);
        }
    }
}

/// Counts fit, because callers divide rows before they have 2³² vertices.
fn count(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}

/// Geometry of a row: parts with rows of coordinates.
#[derive(Debug, PartialEq)]
pub(super) struct WkbGeometry {
    pub(super) kind: WkbKind,
    pub(super) has_z: bool,
    /// Points, lines or rings. A ring ends with its first corner.
    pub(super) parts: Vec<Vec<[f64; 3]>>,
    /// Number of rings of each polygon.
    pub(super) rings: Vec<usize>,
}

/// Type number of a geometry collection.
const COLLECTION: u32 = 7;
/// Bit of the type for z in the form of `PostGIS`, which some programs write.
const HAS_Z: u32 = 0x8000_0000;
/// Bit of the type for a coordinate system after the type, in this form.
const HAS_SRID: u32 = 0x2000_0000;

/// Parses a value. Returns `None` if it has no vertices.
///
/// # Errors
///
/// [`FileFault::Field`] for other types, [`FileFault::Truncated`], [`FileFault::Trailing`] and
/// [`FileFault::NotFinite`].
pub(super) fn parse(bytes: &[u8]) -> Result<Option<WkbGeometry>, FileFault> {
    let mut cursor = WkbCursor { bytes };
    let (number, form) = cursor.head()?;
    if number == COLLECTION && cursor.count(form, 9)? == 0 {
        return cursor.finish(None);
    }
    let kind = WkbKind::of(number).ok_or_else(|| {
        let expected =
            "points, lines and polygons are read, without measures; convert other geometry first";
        FileFault::field("the type of a geometry", number, expected)
    })?;
    let mut geometry = WkbGeometry {
        kind,
        has_z: form.has_z,
        parts: Vec::new(),
        rings: Vec::new(),
    };
    let single = match kind {
        WkbKind::MultiPoint => Some(WkbKind::Point),
        WkbKind::MultiLineString => Some(WkbKind::LineString),
        WkbKind::MultiPolygon => Some(WkbKind::Polygon),
        _ => None,
    };
    match single {
        None => cursor.single(kind, form, &mut geometry)?,
        Some(single) => {
            // A member has 9 bytes or more.
            let members = cursor.count(form, 9)?;
            for _ in 0..members {
                let (number, of_member) = cursor.head()?;
                if (number, of_member.has_z) != (single.number(), form.has_z) {
                    let expected = "the members of a collection have its type and its dimension; the file is damaged";
                    return Err(FileFault::field("the type of a geometry", number, expected));
                }
                cursor.single(single, of_member, &mut geometry)?;
            }
        }
    }
    let has_vertices = !geometry.parts.is_empty();
    cursor.finish(has_vertices.then_some(geometry))
}

/// Byte order and dimension of a value.
#[derive(Clone, Copy, Debug)]
struct WkbForm {
    is_little: bool,
    has_z: bool,
}

struct WkbCursor<'a> {
    bytes: &'a [u8],
}

impl WkbCursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FileFault> {
        let Some((taken, rest)) = self.bytes.split_first_chunk::<N>() else {
            let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
            return Err(FileFault::Truncated {
                what: "a geometry",
                needed: length(N),
                left: length(self.bytes.len()),
            });
        };
        self.bytes = rest;
        Ok(*taken)
    }

    fn integer(&mut self, is_little: bool) -> Result<u32, FileFault> {
        let bytes = self.take()?;
        Ok(if is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    }

    /// Reads byte order and type. Returns the number of the type without its dimension.
    fn head(&mut self) -> Result<(u32, WkbForm), FileFault> {
        let is_little = match self.take::<1>()? {
            [0] => false,
            [1] => true,
            [other] => {
                let expected = "a geometry begins with its byte order, 0 or 1; the file is damaged";
                return Err(FileFault::field("the byte order", other, expected));
            }
        };
        let number = self.integer(is_little)?;
        if number & HAS_SRID != 0 {
            // The metadata of the file name the coordinate system.
            self.integer(is_little)?;
        }
        let flags = number & (HAS_Z | HAS_SRID);
        let number = number ^ flags;
        let iso_z = (1001..=1007).contains(&number);
        let has_z = iso_z || flags & HAS_Z != 0;
        let number = number.saturating_sub(if iso_z { 1000 } else { 0 });
        Ok((number, WkbForm { is_little, has_z }))
    }

    /// Checks that the value ends here.
    fn finish(self, found: Option<WkbGeometry>) -> Result<Option<WkbGeometry>, FileFault> {
        match self.bytes.len() {
            0 => Ok(found),
            left => Err(FileFault::Trailing(u64::try_from(left).unwrap_or(u64::MAX))),
        }
    }

    /// Reads a count of items of `size` bytes or more.
    fn count(&mut self, form: WkbForm, size: usize) -> Result<usize, FileFault> {
        let count = usize::try_from(self.integer(form.is_little)?).unwrap_or(usize::MAX);
        let needed = count.saturating_mul(size);
        if needed > self.bytes.len() {
            let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
            return Err(FileFault::Truncated {
                what: "a geometry",
                needed: length(needed),
                left: length(self.bytes.len()),
            });
        }
        Ok(count)
    }

    fn number(&mut self, form: WkbForm) -> Result<f64, FileFault> {
        let bytes = self.take()?;
        Ok(if form.is_little {
            f64::from_le_bytes(bytes)
        } else {
            f64::from_be_bytes(bytes)
        })
    }

    fn row(&mut self, form: WkbForm) -> Result<[f64; 3], FileFault> {
        let (x, y) = (self.number(form)?, self.number(form)?);
        let z = if form.has_z { self.number(form)? } else { 0.0 };
        Ok([x, y, z])
    }

    fn rows(&mut self, form: WkbForm) -> Result<Vec<[f64; 3]>, FileFault> {
        let count = self.count(form, if form.has_z { 24 } else { 16 })?;
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let row = self.row(form)?;
            if let Some(number) = row.into_iter().find(|number| !number.is_finite()) {
                return Err(FileFault::NotFinite(number));
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn single(
        &mut self,
        kind: WkbKind,
        form: WkbForm,
        geometry: &mut WkbGeometry,
    ) -> Result<(), FileFault> {
        match kind {
            WkbKind::Point | WkbKind::MultiPoint => {
                let row = self.row(form)?;
                // A point whose x and y are NaN is empty.
                if row.iter().take(2).all(|number| number.is_nan()) {
                    return Ok(());
                }
                if let Some(number) = row.into_iter().find(|number| !number.is_finite()) {
                    return Err(FileFault::NotFinite(number));
                }
                geometry.parts.push(vec![row]);
            }
            WkbKind::LineString | WkbKind::MultiLineString => {
                let rows = self.rows(form)?;
                if !rows.is_empty() {
                    geometry.parts.push(rows);
                }
            }
            WkbKind::Polygon | WkbKind::MultiPolygon => {
                let rings = self.count(form, 4)?;
                let before = geometry.parts.len();
                for _ in 0..rings {
                    let rows = self.rows(form)?;
                    if !rows.is_empty() {
                        geometry.parts.push(rows);
                    }
                }
                geometry
                    .rings
                    .push(geometry.parts.len().saturating_sub(before));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(write: impl FnOnce(WkbEncoder, &mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(WkbEncoder { has_z: true }, &mut bytes);
        bytes
    }

    #[test]
    fn values_are_parsed_and_every_prefix_is_refused() {
        let corners = [[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]];
        let lines = [[corners[0], corners[1]], [corners[1], corners[2]]];
        let all = [
            encoded(|it, into| it.point(corners[1], into)),
            encoded(|it, into| it.line(&corners, into)),
            encoded(|it, into| it.polygon(&corners, into)),
            encoded(|it, into| it.lines(&lines, into)),
        ];
        let kinds = [
            WkbKind::Point,
            WkbKind::LineString,
            WkbKind::Polygon,
            WkbKind::MultiLineString,
        ];
        for (bytes, kind) in all.iter().zip(kinds) {
            let found = parse(bytes).unwrap().unwrap();
            assert_eq!((found.kind, found.has_z), (kind, true));
            for length in 0..bytes.len() {
                assert!(parse(&bytes[..length]).is_err(), "{kind:?}, {length}");
            }
            assert!(parse(&[bytes.as_slice(), &[0]].concat()).is_err());
        }
        assert_eq!(parse(&all[2]).unwrap().unwrap().parts[0].len(), 4);
    }

    #[test]
    fn both_byte_orders_and_both_forms_of_z_are_read() {
        let mut big = vec![0];
        big.extend(1001_u32.to_be_bytes());
        big.extend([1.0_f64, 2.0, 3.0].iter().flat_map(|it| it.to_be_bytes()));
        let mut postgis = vec![1];
        postgis.extend(0x8000_0001_u32.to_le_bytes());
        postgis.extend([1.0_f64, 2.0, 3.0].iter().flat_map(|it| it.to_le_bytes()));
        let mut located = vec![1];
        located.extend((HAS_Z | HAS_SRID | 1).to_le_bytes());
        located.extend(4326_u32.to_le_bytes());
        located.extend(&postgis[5..]);
        for bytes in [big, postgis, located] {
            let found = parse(&bytes).unwrap().unwrap();
            assert_eq!((found.kind, found.has_z), (WkbKind::Point, true));
            assert_eq!(found.parts, [[[1.0, 2.0, 3.0]]]);
        }
    }

    /// A point whose x and y are NaN is empty, also as a member, and any other NaN is an error.
    #[test]
    fn empty_points_have_no_parts() {
        let point = |row: [f64; 3], has_z: bool| {
            let mut bytes = Vec::new();
            WkbEncoder { has_z }.point(row, &mut bytes);
            bytes
        };
        let nan = f64::NAN;
        for (row, has_z) in [([nan; 3], false), ([nan; 3], true), ([nan, nan, 5.0], true)] {
            let found = parse(&point(row, has_z)).unwrap();
            assert_eq!(found, None);
            let mut several = Vec::new();
            WkbEncoder { has_z }.head(WkbKind::MultiPoint, &mut several);
            several.extend(count(2));
            several.extend(point(row, has_z));
            several.extend(point([1.0, 2.0, 0.0], has_z));
            let found = parse(&several).unwrap().unwrap();
            assert_eq!(
                (found.has_z, found.parts),
                (has_z, vec![vec![[1.0, 2.0, 0.0]]])
            );
        }
        for row in [
            [nan, 1.0, 2.0],
            [1.0, nan, nan],
            [1.0, 2.0, nan],
            [f64::INFINITY, nan, 0.0],
        ] {
            let found = parse(&point(row, true));
            assert!(matches!(found, Err(FileFault::NotFinite(_))), "{row:?}");
        }
        let mut none = Vec::new();
        WkbEncoder { has_z: false }.head(WkbKind::MultiPoint, &mut none);
        none.extend(count(0));
        assert_eq!(parse(&none).unwrap(), None);
        // An empty collection, as GeoPandas writes it.
        for number in [COLLECTION, 1000 + COLLECTION, HAS_Z | COLLECTION] {
            let mut none = vec![1];
            none.extend(number.to_le_bytes());
            none.extend([0; 4]);
            assert_eq!(parse(&none).unwrap(), None, "{number}");
        }
    }

    #[test]
    fn absurd_counts_collections_and_measures_are_refused() {
        let mut bytes = vec![1];
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend(u32::MAX.to_le_bytes());
        assert!(matches!(parse(&bytes), Err(FileFault::Truncated { .. })));
        // A collection of a point, a point with a measure in both forms, and unknown types.
        for number in [COLLECTION, 2001, 3001, 0x4000_0001, 0, 8, 1000] {
            let mut bytes = vec![1];
            bytes.extend(number.to_le_bytes());
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend([0; 32]);
            let is_refused = matches!(parse(&bytes), Err(FileFault::Field { .. }));
            assert!(is_refused, "{number:#x}");
        }
    }
}
