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

/// Parses a value.
///
/// # Errors
///
/// [`FileFault::Field`] for other types, [`FileFault::Truncated`], [`FileFault::Trailing`] and
/// [`FileFault::NotFinite`].
pub(super) fn parse(bytes: &[u8]) -> Result<WkbGeometry, FileFault> {
    let mut cursor = WkbCursor { bytes };
    let (kind, has_z) = cursor.head(None)?;
    let mut geometry = WkbGeometry {
        kind,
        has_z: has_z.has_z,
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
        None => cursor.single(kind, has_z, &mut geometry)?,
        Some(single) => {
            // A member has 9 bytes or more.
            let members = cursor.count(has_z, 9)?;
            for _ in 0..members {
                let (_, form) = cursor.head(Some((single, has_z.has_z)))?;
                cursor.single(single, form, &mut geometry)?;
            }
        }
    }
    match cursor.bytes.len() {
        0 => Ok(geometry),
        left => Err(FileFault::Trailing(u64::try_from(left).unwrap_or(u64::MAX))),
    }
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

    /// Reads byte order and type. Those of a member must be the `required` ones of its collection.
    fn head(&mut self, required: Option<(WkbKind, bool)>) -> Result<(WkbKind, WkbForm), FileFault> {
        let is_little = match self.take::<1>()? {
            [0] => false,
            [1] => true,
            [other] => {
                let expected = "a geometry begins with its byte order, 0 or 1; the file is damaged";
                return Err(FileFault::field("the byte order", other, expected));
            }
        };
        let number = self.integer(is_little)?;
        // The high bit is the z of PostGIS, which some programs write.
        let has_z = number & 0x8000_0000 != 0 || (1001..=1006).contains(&number);
        let base = (number & 0x7fff_ffff).checked_sub(if number > 1000 && number < 2000 {
            1000
        } else {
            0
        });
        let kind = base.and_then(WkbKind::of).ok_or_else(|| {
            let expected = "points, lines and polygons are read, without measures; convert other geometry first";
            FileFault::field("the type of a geometry", number, expected)
        })?;
        if required.is_some_and(|required| required != (kind, has_z)) {
            let expected =
                "the members of a collection have its type and its dimension; the file is damaged";
            return Err(FileFault::field("the type of a geometry", number, expected));
        }
        Ok((kind, WkbForm { is_little, has_z }))
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
            let found = parse(bytes).unwrap();
            assert_eq!((found.kind, found.has_z), (kind, true));
            for length in 0..bytes.len() {
                assert!(parse(&bytes[..length]).is_err(), "{kind:?}, {length}");
            }
            assert!(parse(&[bytes.as_slice(), &[0]].concat()).is_err());
        }
        assert_eq!(parse(&all[2]).unwrap().parts[0].len(), 4);
    }

    #[test]
    fn both_byte_orders_and_both_forms_of_z_are_read() {
        let mut big = vec![0];
        big.extend(1001_u32.to_be_bytes());
        big.extend([1.0_f64, 2.0, 3.0].iter().flat_map(|it| it.to_be_bytes()));
        let mut postgis = vec![1];
        postgis.extend(0x8000_0001_u32.to_le_bytes());
        postgis.extend([1.0_f64, 2.0, 3.0].iter().flat_map(|it| it.to_le_bytes()));
        let found = [parse(&big).unwrap(), parse(&postgis).unwrap()];
        assert_eq!(found[0], found[1]);
        assert_eq!(found[0].parts, [[[1.0, 2.0, 3.0]]]);
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
            assert_eq!((found.has_z, found.parts.len()), (has_z, 0));
            let mut several = Vec::new();
            WkbEncoder { has_z }.head(WkbKind::MultiPoint, &mut several);
            several.extend(count(2));
            several.extend(point(row, has_z));
            several.extend(point([1.0, 2.0, 0.0], has_z));
            assert_eq!(parse(&several).unwrap().parts, [[[1.0, 2.0, 0.0]]]);
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
        assert!(parse(&none).unwrap().parts.is_empty());
    }

    #[test]
    fn absurd_counts_and_nested_collections_are_refused() {
        let mut bytes = vec![1];
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend(u32::MAX.to_le_bytes());
        assert!(matches!(parse(&bytes), Err(FileFault::Truncated { .. })));
        let mut bytes = vec![1];
        bytes.extend(7_u32.to_le_bytes());
        assert!(matches!(parse(&bytes), Err(FileFault::Field { .. })));
    }
}
