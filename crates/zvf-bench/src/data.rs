//! Generated geometry, identical on every machine, and its queries.

use std::{fs, path::Path, str::FromStr};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use zvf::{Column, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn};

use crate::random::NamedRandom;

mod graph;
mod mesh;
mod points;
mod skeletons;
mod streamlines;

/// A kind of generated geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// A cloud of clusters.
    Points,
    /// Bundles of smooth paths of about 100 vertices.
    Streamlines,
    /// Trees of 2000 nodes.
    Skeletons,
    /// One closed surface.
    Mesh,
    /// A network similar to blood vessels.
    Graph,
}

impl Workload {
    pub(crate) const ALL: [Self; 5] = [
        Self::Points,
        Self::Streamlines,
        Self::Skeletons,
        Self::Mesh,
        Self::Graph,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Streamlines => "streamlines",
            Self::Skeletons => "skeletons",
            Self::Mesh => "mesh",
            Self::Graph => "graph",
        }
    }

    pub(crate) fn geometry(self) -> GeometryKind {
        match self {
            Self::Points => GeometryKind::Points,
            Self::Streamlines => GeometryKind::Streamlines,
            Self::Skeletons => GeometryKind::Skeletons,
            Self::Mesh => GeometryKind::Mesh,
            Self::Graph => GeometryKind::Graphs,
        }
    }
}

impl FromStr for Workload {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        let Some(kind) = found else {
            bail!("no kind {name}")
        };
        Ok(kind)
    }
}

/// A column.
pub(crate) enum DataColumn {
    Float(&'static str, Vec<f32>),
    Whole(&'static str, Vec<i32>),
}

impl DataColumn {
    fn name(&self) -> &'static str {
        match self {
            Self::Float(name, _) | Self::Whole(name, _) => name,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Float(_, values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::Whole(_, values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Float(_, values) => values.len() * 4,
            Self::Whole(_, values) => values.len() * 4,
        }
    }

    fn attribute(&self) -> Column {
        let kind = match self {
            Self::Float(..) => zvf::numeric::Kind::Float32,
            Self::Whole(..) => zvf::numeric::Kind::Int32,
        };
        let numbers = NumericColumn {
            bytes: self.bytes(),
            ..NumericColumn::new(kind, 1)
        };
        Column::new(self.name().to_owned(), numbers)
    }
}

/// Generated geometry.
pub(crate) struct Data {
    pub(crate) kind: Workload,
    /// The bounds are 0 to this value along each axis.
    pub(crate) side: f64,
    pub(crate) positions: Vec<[f32; 3]>,
    /// Start of each object, and the end of the last.
    pub(crate) offsets: Option<Vec<u64>>,
    pub(crate) link_width: usize,
    pub(crate) links: Vec<i64>,
    pub(crate) vertex: Vec<DataColumn>,
    pub(crate) link: Vec<DataColumn>,
    pub(crate) object: Vec<DataColumn>,
}

/// The volume of boxes, as shares of the whole.
pub(crate) const SHARES: [(&str, f64); 3] = [("0.1", 0.001), ("1", 0.01), ("10", 0.1)];
/// Number of boxes of each share.
const BOXES: usize = 5;
/// Coordinates are integer multiples of 1/256, so that LAZ represents the same values.
const GRID: f64 = 256.0;

/// Lower and upper corner of a box.
pub(crate) type BoxCorners = [[f64; 3]; 2];

impl Data {
    /// Generates approximately this many vertices.
    pub(crate) fn new(kind: Workload, vertices: usize) -> Self {
        match kind {
            Workload::Points => points::generate(vertices),
            Workload::Streamlines => streamlines::generate(vertices),
            Workload::Skeletons => skeletons::generate(vertices),
            Workload::Mesh => mesh::generate(vertices),
            Workload::Graph => graph::generate(vertices),
        }
    }

    /// Creates data with a kind and a size only.
    fn of(kind: Workload, side: f64) -> Self {
        Self {
            kind,
            side,
            positions: Vec::new(),
            offsets: None,
            link_width: 2,
            links: Vec::new(),
            vertex: Vec::new(),
            link: Vec::new(),
            object: Vec::new(),
        }
    }

    pub(crate) fn objects(&self) -> usize {
        self.offsets.as_ref().map_or(0, |offsets| offsets.len() - 1)
    }

    /// Returns the size of all columns in memory.
    pub(crate) fn raw_bytes(&self) -> usize {
        let columns: usize = self
            .vertex
            .iter()
            .chain(&self.link)
            .chain(&self.object)
            .map(DataColumn::size)
            .sum();
        let offsets = self.offsets.as_ref().map_or(0, Vec::len) * 8;
        self.positions.len() * 12 + columns + offsets + self.links.len() * 8
    }

    /// Returns the geometry to write.
    pub(crate) fn geometry(&self) -> GeometryBuilder {
        let positions = NumericColumn {
            bytes: self.position_bytes(),
            ..NumericColumn::new(zvf::numeric::Kind::Float32, 3)
        };
        let attributes =
            |columns: &[DataColumn]| columns.iter().map(DataColumn::attribute).collect();
        let geometry = Geometry::builder(positions)
            .vertex(attributes(&self.vertex))
            .link(attributes(&self.link))
            .object(attributes(&self.object))
            .links(self.link_width, self.links.clone());
        match (&self.offsets, self.object_of_each()) {
            (Some(offsets), _) if self.kind == Workload::Streamlines => {
                geometry.paths(offsets.clone(), None)
            }
            (_, Some(ids)) => geometry.object_ids(ids),
            (_, None) => geometry,
        }
    }

    /// Returns the default design.
    pub(crate) fn design(&self) -> Design {
        let mut design = Design::new(self.kind.geometry());
        design.bounds = Some((vec![0.0; 3], vec![self.side; 3]));
        design
    }

    fn position_bytes(&self) -> Vec<u8> {
        let values = self.positions.iter().flatten();
        values.flat_map(|value| value.to_le_bytes()).collect()
    }

    fn object_of_each(&self) -> Option<Vec<i64>> {
        let offsets = self.offsets.as_ref()?;
        let pairs = offsets.windows(2).zip(0_i64..);
        let repeated = pairs.flat_map(|(ends, object)| {
            let [from, to] = [ends[0], ends[1]].map(|end| end as usize);
            std::iter::repeat_n(object, to - from)
        });
        Some(repeated.collect())
    }

    /// Returns boxes of a share of the volume around vertices, so that none is empty.
    pub(crate) fn boxes(&self, share: f64) -> Vec<BoxCorners> {
        let mut random = NamedRandom::new(share.to_bits(), self.kind.name());
        let length = self.side * share.cbrt();
        let mut around = || {
            let centre = self.positions[random.below(self.positions.len())];
            let low = centre.map(|c| (f64::from(c) - length / 2.0).clamp(0.0, self.side - length));
            [low, low.map(|c| c + length)]
        };
        (0..BOXES).map(|_| around()).collect()
    }

    /// Returns the ids of a hundred objects in ascending order, or of all if there are fewer.
    pub(crate) fn hundred_objects(&self) -> Vec<i64> {
        let objects = self.objects();
        let mut random = NamedRandom::new(100, self.kind.name());
        let mut chosen = std::collections::BTreeSet::new();
        while chosen.len() < objects.min(100) {
            chosen.insert(random.below(objects) as i64);
        }
        chosen.into_iter().collect()
    }

    /// Counts the vertices in a box.
    pub(crate) fn inside(&self, [low, high]: &BoxCorners) -> usize {
        let is_inside = |at: &&[f32; 3]| {
            let mut axes = at.iter().zip(low).zip(high);
            axes.all(|((at, low), high)| *low <= f64::from(*at) && f64::from(*at) <= *high)
        };
        self.positions.iter().filter(is_inside).count()
    }

    /// Writes all columns as `.npy` files with `meta.json`, for other programs.
    pub(crate) fn export(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let write = |name: &str, dtype: &str, columns: usize, bytes: &[u8]| {
            let size: usize = if dtype.ends_with('8') { 8 } else { 4 };
            let rows = bytes.len() / size / columns;
            let shape = match columns {
                1 => format!("({rows},)"),
                _ => format!("({rows}, {columns})"),
            };
            fs::write(
                folder.join(name).with_extension("npy"),
                npy(dtype, &shape, bytes),
            )
        };
        let bytes = self.position_bytes();
        write("positions", "<f4", 3, &bytes)?;
        if let Some(offsets) = &self.offsets {
            let bytes: Vec<u8> = offsets.iter().flat_map(|v| v.to_le_bytes()).collect();
            write("offsets", "<i8", 1, &bytes)?;
        }
        if !self.links.is_empty() {
            let bytes: Vec<u8> = self.links.iter().flat_map(|v| v.to_le_bytes()).collect();
            write("links", "<i8", self.link_width, &bytes)?;
        }
        let scopes = [
            ("vertex", &self.vertex),
            ("link", &self.link),
            ("object", &self.object),
        ];
        for (scope, columns) in scopes {
            for column in columns {
                let dtype = if matches!(column, DataColumn::Float(..)) {
                    "<f4"
                } else {
                    "<i4"
                };
                write(
                    &format!("{scope}_{}", column.name()),
                    dtype,
                    1,
                    &column.bytes(),
                )?;
            }
        }
        fs::write(folder.join("meta.json"), self.queries().to_string())?;
        Ok(())
    }

    /// Returns the queries for other programs, and the sizes of the data.
    fn queries(&self) -> Value {
        let boxes = SHARES.iter().map(|(name, share)| {
            let boxes = self.boxes(*share);
            let vertices: Vec<usize> = boxes.iter().map(|corners| self.inside(corners)).collect();
            (
                (*name).to_owned(),
                json!({"corners": boxes, "vertices": vertices}),
            )
        });
        json!({
            "kind": self.kind.name(),
            "side": self.side,
            "vertices": self.positions.len(),
            "objects": self.objects(),
            "raw_bytes": self.raw_bytes(),
            "boxes": boxes.collect::<serde_json::Map<_, _>>(),
            "ids": self.hundred_objects(),
        })
    }
}

/// Encodes a `.npy` file of version 1.
fn npy(dtype: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}");
    let unpadded = 10 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}

/// Rounds a position to the grid, within the bounds.
fn placed(at: [f64; 3], side: f64) -> [f32; 3] {
    at.map(|c| ((c.clamp(0.0, side - 1.0 / GRID) * GRID).round() / GRID) as f32)
}

fn plus(a: [f64; 3], b: [f64; 3], times: f64) -> [f64; 3] {
    [0, 1, 2].map(|axis| a[axis] + b[axis] * times)
}
