//! Random geometry, and random designs for storing it.

use std::collections::{BTreeMap, BTreeSet};

use zvf_build::{
    CellChecksums, CellCompression, Column, ColumnValues, Design, Geometry, GeometryBuilder,
    GeometryKind, NumericColumn, Profile, ShardingPolicy, StepLinks, VertexOwners,
};
use zvf_format::numeric::Kind;
use zvf_testkit::stores::Random;

/// Random geometry and a random design.
pub(crate) struct Case {
    pub(crate) geometry: GeometryBuilder,
    pub(crate) design: Design,
    axes: usize,
    double: bool,
    rich: bool,
    with_ids: bool,
    attribute_types: usize,
    next_tag: u64,
}

impl Case {
    /// Returns more geometry of the same kind, with object ids from `first_id` on.
    pub(crate) fn more(
        &mut self,
        random: &mut Random,
        size: usize,
        first_id: i64,
    ) -> GeometryBuilder {
        let mut generator = GeometryGenerator {
            random,
            design: &self.design,
            axes: self.axes,
            double: self.double,
            tag: self.next_tag,
            first_id,
            rich: self.rich,
            with_ids: self.with_ids,
            attribute_types: self.attribute_types,
        };
        let geometry = generator.geometry(size);
        self.next_tag = generator.tag;
        geometry
    }
}

/// Generates vertices from this tag on.
pub(crate) struct GeometryGenerator<'a> {
    pub(crate) random: &'a mut Random,
    pub(crate) design: &'a Design,
    pub(crate) axes: usize,
    pub(crate) double: bool,
    pub(crate) tag: u64,
    /// Least id of objects.
    pub(crate) first_id: i64,
    /// Adds attributes, objects and groups. Appended geometry must agree with the store.
    pub(crate) rich: bool,
    pub(crate) with_ids: bool,
    /// Selects the types of attributes. Appended geometry must agree with the store.
    pub(crate) attribute_types: usize,
}

pub(crate) fn case(seed: u64, kind: GeometryKind, profile: Profile) -> Case {
    let mut random = Random::new(seed);
    let design = design(&mut random, kind, profile);
    let axes = match kind {
        GeometryKind::Mesh => 2 + random.below(3),
        _ => 1 + random.below(5),
    };
    let mut design = design;
    design.chunk_shape = random.chance(85).then(|| {
        let extents = (0..axes).map(|_| 4.0 + random.below(12) as f64);
        extents.collect()
    });
    if random.chance(50) {
        let chunk = design.chunk_shape.iter().flatten();
        let bins: Vec<f64> = chunk
            .map(|extent| extent / (1 + random.below(3)) as f64)
            .collect();
        design.bin_shape = design.chunk_shape.is_some().then_some(bins);
    }
    if profile.is_current() && random.chance(30) {
        let shape = (0..axes).map(|_| 1 + random.below(3) as u64).collect();
        design.sharding = if random.chance(70) {
            ShardingPolicy::Shape(shape)
        } else {
            ShardingPolicy::Auto
        };
    }
    let double = random.chance(30);
    let rich = random.chance(70);
    let with_ids = random.chance(70);
    let size = 1 + random.below(120);
    let attribute_types = random.below(1000);
    let mut generator = GeometryGenerator {
        random: &mut random,
        design: &design,
        axes,
        double,
        tag: 0,
        first_id: 0,
        rich,
        with_ids,
        attribute_types,
    };
    let geometry = generator.geometry(size);
    let next_tag = generator.tag;
    Case {
        geometry,
        design,
        axes,
        double,
        rich,
        with_ids,
        attribute_types,
        next_tag,
    }
}

fn design(random: &mut Random, kind: GeometryKind, profile: Profile) -> Design {
    let mut design = Design::new(kind);
    design.profile = profile;
    let compressions = [
        CellCompression::None,
        CellCompression::None,
        CellCompression::Zstd(1),
        CellCompression::Gzip(3),
        CellCompression::Blosc,
        CellCompression::Auto,
    ];
    design.compression = *random.pick(&compressions);
    if random.chance(40) {
        design.checksums = if random.chance(50) {
            CellChecksums::On
        } else {
            CellChecksums::Off
        };
    }
    if profile.is_current() && kind.is_linked() {
        design.directed = random.chance(25);
        design.duplicate = random.chance(25);
    }
    if kind.is_paths() && random.chance(60) {
        design.step_links = if random.chance(50) {
            StepLinks::Between
        } else {
            StepLinks::All
        };
    }
    design
}

impl GeometryGenerator<'_> {
    pub(crate) fn geometry(&mut self, size: usize) -> GeometryBuilder {
        let kind = self.design.kind;
        let mut geometry = match kind {
            GeometryKind::Points => self.points(size),
            GeometryKind::Lines => self.paths(size, true),
            GeometryKind::Polylines | GeometryKind::Streamlines => self.paths(size, false),
            GeometryKind::Skeletons => self.trees(size),
            GeometryKind::Graphs => self.linked(size, 2),
            GeometryKind::Mesh => {
                // All links of a store have the same width.
                let width = 3 + self.design.chunk_shape.iter().flatten().count() % 3;
                self.linked(size, width)
            }
        };
        self.attributes(&mut geometry);
        geometry
    }

    fn place(&mut self) -> f64 {
        let steps = 8.0;
        (self.random.between(-160, 240) as f64) / steps
    }

    fn positions(&mut self, count: usize) -> NumericColumn {
        let values: Vec<f64> = (0..count * self.axes).map(|_| self.place()).collect();
        self.numbers(&values)
    }

    fn numbers(&self, values: &[f64]) -> NumericColumn {
        if self.double {
            NumericColumn::float64(self.axes as u32, values.iter().copied())
        } else {
            NumericColumn::float32(self.axes as u32, values.iter().map(|value| *value as f32))
        }
    }

    /// Returns distinct ids from the first on.
    fn ids(&mut self, count: usize) -> Vec<i64> {
        let mut ids = Vec::new();
        let mut next = self.first_id;
        let sparse = self.design.profile.is_current();
        for _ in 0..count {
            next += if sparse && self.random.chance(40) {
                1 + self.random.between(0, 1 << 40)
            } else {
                self.random.between(0, 2)
            };
            ids.push(next);
            next += 1;
        }
        if self.random.chance(40) {
            self.random.shuffle(&mut ids);
        }
        ids
    }

    fn points(&mut self, size: usize) -> GeometryBuilder {
        let mut geometry = Geometry::builder(self.positions(size));
        if self.with_ids {
            let objects = 1 + self.random.below(size / 3 + 1);
            let ids = self.ids(objects);
            geometry.owners =
                VertexOwners::Vertices((0..size).map(|_| *self.random.pick(&ids)).collect());
        }
        geometry
    }

    fn paths(&mut self, size: usize, lines: bool) -> GeometryBuilder {
        let mut offsets = vec![0u64];
        let mut values: Vec<f64> = Vec::new();
        let mut end = 0;
        while end < size as u64 {
            let length = if lines {
                2
            } else {
                self.random.below(14) as u64
            };
            let mut place: Vec<f64> = (0..self.axes).map(|_| self.place()).collect();
            for _ in 0..length {
                values.extend(&place);
                for value in &mut place {
                    *value += (self.random.between(-24, 24) as f64) / 8.0;
                }
            }
            end += length;
            offsets.push(end);
        }
        let parts = offsets.len() - 1;
        let geometry = Geometry::builder(self.numbers(&values));
        geometry.paths(offsets, self.with_ids.then(|| self.ids(parts)))
    }

    /// Returns vertices of objects, with neighbours close to each other.
    fn clumps(&mut self, size: usize) -> (GeometryBuilder, Vec<i64>) {
        let size = size.max(8);
        let mut geometry = Geometry::builder(self.positions(size));
        let objects = 1 + self.random.below(6);
        let ids = if self.with_ids {
            self.ids(objects)
        } else {
            vec![0]
        };
        let owners: Vec<i64> = (0..size).map(|_| *self.random.pick(&ids)).collect();
        if self.with_ids {
            geometry.owners = VertexOwners::Vertices(owners.clone());
        }
        (geometry, owners)
    }

    fn linked(&mut self, size: usize, width: usize) -> GeometryBuilder {
        let (mut geometry, _) = self.clumps(size);
        let vertices = geometry.vertices();
        geometry.links.width = width;
        for _ in 0..self.random.below(size + 1) {
            let first = self.random.below(vertices);
            let mut ends: Vec<i64> = (0..width)
                .map(|step| if self.random.chance(60) { (first + step) % vertices } else { self.random.below(vertices) } as i64)
                .collect();
            let mut distinct = ends.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if width > 2 && distinct.len() < width {
                continue;
            }
            self.random.shuffle(&mut ends);
            geometry.links.ends.extend(ends);
        }
        geometry
    }

    fn trees(&mut self, size: usize) -> GeometryBuilder {
        let (mut geometry, owners) = self.clumps(size);
        let mut seen: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (vertex, owner) in owners.iter().enumerate() {
            let before = seen.entry(*owner).or_default();
            if !before.is_empty() && self.random.chance(93) {
                let parent = if self.random.chance(70) {
                    before[before.len() - 1]
                } else {
                    *self.random.pick(before)
                };
                geometry.links.ends.extend([vertex as i64, parent as i64]);
            }
            before.push(vertex);
        }
        geometry
    }

    fn values(&mut self, rows: usize, text: bool) -> ColumnValues {
        let kinds = [
            Kind::Float32,
            Kind::Float64,
            Kind::UInt8,
            Kind::Int16,
            Kind::UInt64,
            Kind::Int32,
        ];
        if text {
            let words = ["axon", "dendrit\u{e9}", "", "soma \u{1f9e0}"];
            let some = self.attribute_types.is_multiple_of(2);
            let missing = |random: &mut Random| some && random.chance(20);
            let mut texts: Vec<Option<String>> = (0..rows)
                .map(|_| {
                    if missing(self.random) {
                        None
                    } else {
                        Some((*self.random.pick(&words)).to_owned())
                    }
                })
                .collect();
            // The first write decides whether a code for missing words exists.
            if let (true, Some(first)) = (some && self.tag == 0, texts.first_mut()) {
                *first = None;
            }
            return ColumnValues::text(texts);
        }
        let kind = kinds[self.attribute_types % kinds.len()];
        self.some(rows, kind, 1 + self.attribute_types % 3)
    }

    fn some(&mut self, rows: usize, kind: Kind, columns: usize) -> ColumnValues {
        let mut numbers = NumericColumn::new(kind, columns as u32);
        for _ in 0..rows * columns {
            let bytes = match kind {
                Kind::Float32 => (self.random.unit() as f32).to_le_bytes().to_vec(),
                Kind::Float64 => self.random.unit().to_le_bytes().to_vec(),
                _ => self.random.any().to_le_bytes()[..kind.size()].to_vec(),
            };
            numbers.bytes.extend(bytes);
        }
        ColumnValues::Numeric(numbers)
    }

    fn attributes(&mut self, geometry: &mut GeometryBuilder) {
        let vertices = geometry.vertices();
        let tags = (0..vertices as u64).map(|at| self.tag + at);
        let mut tag = NumericColumn::new(Kind::UInt64, 1);
        tag.bytes = tags.flat_map(u64::to_le_bytes).collect();
        geometry
            .vertex
            .push(attribute("tag", ColumnValues::Numeric(tag)));
        if self.rich {
            self.more_attributes(geometry);
        }
        self.tag += vertices as u64;
    }

    fn more_attributes(&mut self, geometry: &mut GeometryBuilder) {
        let vertices = geometry.vertices();
        let links = geometry.links.len();
        let words = self.values(vertices, true);
        geometry.vertex.push(attribute("word", words));
        let any = self.values(vertices, false);
        geometry.vertex.push(attribute("any", any));
        let flag = ColumnValues::Numeric(NumericColumn {
            bytes: (0..vertices)
                .map(|_| u8::from(self.random.chance(50)))
                .collect(),
            ..NumericColumn::new(Kind::Bool, 1)
        });
        geometry.vertex.push(attribute("flag", flag));
        let kind = self.design.kind;
        if matches!(kind, GeometryKind::Graphs | GeometryKind::Mesh) {
            let weight = self.values(links, false);
            geometry.link.push(attribute("weight", weight));
        }
        let objects = match &geometry.owners {
            VertexOwners::Paths { .. } => geometry.owners.paths(),
            VertexOwners::Vertices(ids) => ids.iter().collect::<BTreeSet<_>>().len(),
            VertexOwners::Unnamed => return,
        };
        let score = self.some(objects, Kind::Float32, 1);
        geometry.object.push(attribute("score", score));
        if self.design.profile.is_current() {
            let names = self.values(objects, true);
            // Objects have no empty text; it reads as missing.
            let names = match names {
                texts @ ColumnValues::Dictionary { .. } => ColumnValues::text(
                    texts
                        .texts()
                        .map(|text| text.filter(|text| !text.is_empty())),
                ),
                numbers @ ColumnValues::Numeric(_) => numbers,
            };
            geometry.object.push(attribute("name", names));
        }
        let ids = known(geometry);
        for group in 0..self.random.below(4) as u32 {
            if self.random.chance(75) {
                let members = (0..self.random.below(5)).map(|_| *self.random.pick(&ids));
                geometry.groups.insert(group, members.collect());
            }
        }
        let count = geometry
            .groups
            .keys()
            .next_back()
            .map_or(0, |last| *last as usize + 1);
        if count > 0 {
            let weights = self.some(count, Kind::Float64, 1);
            geometry.group.push(attribute("weight", weights));
        }
    }
}

/// Returns the objects of geometry.
fn known(geometry: &GeometryBuilder) -> Vec<i64> {
    let mut owners = geometry.owners.clone();
    owners.number_paths(0);
    owners.ids().map_or_else(|| vec![0], <[i64]>::to_vec)
}

pub(crate) fn attribute(name: &str, values: ColumnValues) -> Column {
    Column::new(name.to_owned(), values)
}
