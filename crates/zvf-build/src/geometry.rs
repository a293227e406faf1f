//! Geometry as it comes in: columns.

use std::{borrow::Cow, collections::BTreeMap};

use zvf_format::numeric::Kind;

/// What a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GeometryKind {
    /// Vertices that stand alone.
    Points,
    /// Paths of two vertices.
    Lines,
    /// Paths.
    Polylines,
    /// Paths, as tractography has them.
    Streamlines,
    /// Trees: links are (child, parent).
    Skeletons,
    /// Vertices and edges.
    Graphs,
    /// Vertices and faces.
    Mesh,
}

impl GeometryKind {
    /// Every kind there is.
    pub const ALL: [Self; 7] = [
        Self::Points,
        Self::Lines,
        Self::Polylines,
        Self::Streamlines,
        Self::Skeletons,
        Self::Graphs,
        Self::Mesh,
    ];

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Lines => "lines",
            Self::Polylines => "polylines",
            Self::Streamlines => "streamlines",
            Self::Skeletons => "skeletons",
            Self::Graphs => "graphs",
            Self::Mesh => "mesh",
        }
    }

    /// As the root's `geometry_types` has it.
    pub fn geometry_type(self) -> &'static str {
        match self {
            Self::Points => "point_cloud",
            Self::Lines => "line",
            Self::Polylines => "polyline",
            Self::Streamlines => "streamline",
            Self::Skeletons => "skeleton",
            Self::Graphs => "graph",
            Self::Mesh => "mesh",
        }
    }

    /// As the root's `links_convention` has it.
    pub fn convention(self) -> &'static str {
        match self {
            Self::Graphs | Self::Mesh => "explicit",
            Self::Skeletons => "implicit_sequential_with_branches",
            _ => "implicit_sequential",
        }
    }

    /// Whether objects are paths.
    pub fn is_paths(self) -> bool {
        matches!(self, Self::Lines | Self::Polylines | Self::Streamlines)
    }

    /// Whether links come with the vertices.
    pub fn is_linked(self) -> bool {
        matches!(self, Self::Skeletons | Self::Graphs | Self::Mesh)
    }
}

/// Rows of numbers, the least significant byte first.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// What a number is.
    pub kind: Kind,
    /// Numbers of a row, at least one.
    pub columns: usize,
    /// The numbers, row by row.
    pub bytes: Vec<u8>,
}

impl Numbers {
    /// No rows.
    pub fn new(kind: Kind, columns: usize) -> Self {
        let columns = columns.max(1);
        let bytes = Vec::new();
        Self {
            kind,
            columns,
            bytes,
        }
    }

    /// Rows of 32-bit floats.
    pub fn float32(columns: usize, values: impl IntoIterator<Item = f32>) -> Self {
        let bytes = values.into_iter().flat_map(f32::to_le_bytes).collect();
        Self {
            bytes,
            ..Self::new(Kind::Float32, columns)
        }
    }

    /// Rows of 64-bit floats.
    pub fn float64(columns: usize, values: impl IntoIterator<Item = f64>) -> Self {
        let bytes = values.into_iter().flat_map(f64::to_le_bytes).collect();
        Self {
            bytes,
            ..Self::new(Kind::Float64, columns)
        }
    }

    /// Bytes of a row.
    pub fn row_size(&self) -> usize {
        self.kind.size() * self.columns.max(1)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.row_size()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes of a row; empty past the end.
    pub fn row(&self, row: usize) -> &[u8] {
        let size = self.row_size();
        self.bytes
            .get(row * size..(row + 1) * size)
            .unwrap_or_default()
    }

    /// The bytes of these rows, one behind the other.
    pub(crate) fn gathered(&self, rows: impl ExactSizeIterator<Item = usize>) -> Vec<u8> {
        // Copies of a size that is known are a move or two.
        match self.row_size() {
            1 => self.gathered_of::<1>(rows),
            2 => self.gathered_of::<2>(rows),
            4 => self.gathered_of::<4>(rows),
            8 => self.gathered_of::<8>(rows),
            12 => self.gathered_of::<12>(rows),
            16 => self.gathered_of::<16>(rows),
            24 => self.gathered_of::<24>(rows),
            size => {
                let mut bytes = Vec::with_capacity(rows.len() * size);
                rows.for_each(|row| bytes.extend_from_slice(self.row(row)));
                bytes
            }
        }
    }

    fn gathered_of<const N: usize>(&self, rows: impl ExactSizeIterator<Item = usize>) -> Vec<u8> {
        let (all, _) = self.bytes.as_chunks::<N>();
        // All rows are there: what names them was checked.
        let row = |row: usize| all.get(row).copied().unwrap_or([0; N]);
        let rows: Vec<[u8; N]> = rows.map(row).collect();
        rows.into_flattened()
    }
}

/// The values of an attribute, a row for each thing it is of.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers.
    Numbers(Numbers),
    /// Text, or none.
    Text(Vec<Option<String>>),
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Text(texts) => texts.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These rows, in this order.
    #[must_use]
    pub fn gather(&self, rows: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Numbers(numbers) => {
                let mut bytes = Vec::new();
                rows.for_each(|row| bytes.extend_from_slice(numbers.row(row)));
                Self::Numbers(Numbers {
                    bytes,
                    ..Numbers::new(numbers.kind, numbers.columns)
                })
            }
            Self::Text(texts) => {
                Self::Text(rows.map(|row| texts.get(row).cloned().flatten()).collect())
            }
        }
    }
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name: an identifier.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// Geometry to write. What a kind does not use stays empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Vertices: a row of coordinates each.
    pub positions: Numbers,
    /// Where each path starts in `positions`, and where the last ends: one number
    /// more than there are paths. `None` for other geometry.
    pub part_offsets: Option<Vec<u64>>,
    /// The object of each path; from 0 on when absent.
    pub part_objects: Option<Vec<i64>>,
    /// The object of each vertex, of other geometry than paths.
    pub object_ids: Option<Vec<i64>>,
    /// Ends of a link.
    pub link_width: usize,
    /// Links: rows of `positions`, `link_width` numbers each; of skeletons (child,
    /// parent).
    pub links: Vec<i64>,
    /// Attributes of vertices.
    pub vertex: Vec<Attribute>,
    /// Attributes of links.
    pub link: Vec<Attribute>,
    /// Attributes of fragments: a row for each object in `objects`, which all its
    /// fragments get.
    pub fragment: Vec<Attribute>,
    /// The objects that rows of `object` and `fragment` are of. When absent, those
    /// there are, ascending; for paths in the order of the paths.
    pub objects: Option<Vec<i64>>,
    /// Attributes of objects.
    pub object: Vec<Attribute>,
    /// Members of groups, by the number of the group.
    pub groups: BTreeMap<u32, Vec<i64>>,
    /// Attributes of groups: a row for each number up to the greatest.
    pub group: Vec<Attribute>,
}

impl<'a> From<&'a Geometry> for Cow<'a, Geometry> {
    fn from(geometry: &'a Geometry) -> Self {
        Self::Borrowed(geometry)
    }
}

impl From<Geometry> for Cow<'_, Geometry> {
    fn from(geometry: Geometry) -> Self {
        Self::Owned(geometry)
    }
}

impl Geometry {
    /// Vertices and nothing else.
    pub fn new(positions: Numbers) -> Self {
        Self {
            positions,
            part_offsets: None,
            part_objects: None,
            object_ids: None,
            link_width: 2,
            links: Vec::new(),
            vertex: Vec::new(),
            link: Vec::new(),
            fragment: Vec::new(),
            objects: None,
            object: Vec::new(),
            groups: BTreeMap::new(),
            group: Vec::new(),
        }
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.positions.len()
    }

    /// Number of axes.
    pub fn axes(&self) -> usize {
        self.positions.columns
    }

    /// Number of links.
    pub fn link_count(&self) -> usize {
        self.links.len() / self.link_width.max(1)
    }
}
