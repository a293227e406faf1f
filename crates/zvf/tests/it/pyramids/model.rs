//! The stored content of a level, row by row, read without the code that builds levels.

use std::collections::{BTreeMap, BTreeSet};

use zvf::{Dataset, LevelChoice, Query};
use zvf_build::{Design, GeometryKind};
use zvf_catalog::Scope;
use zvf_format::{fragment::FragmentIndex, numeric::Kind, path::Delta};
use zvf_model::{
    array::{CellAttribute, Vertices},
    grid::ChunkCoord,
    key::Key,
    layout::ArrayRole,
    level::LevelId,
};
use zvf_query::ColumnValues;

/// A chunk and a row in it.
pub(super) type At = (ChunkCoord, u64);

/// A stored vertex.
#[derive(Clone, Debug)]
pub(super) struct Vertex {
    pub(super) at: At,
    pub(super) place: Vec<f64>,
    /// Stored bytes of its coordinates.
    pub(super) bits: Vec<u8>,
    /// Stored bytes of its attributes; chunks without the attribute have none.
    pub(super) values: BTreeMap<String, Vec<u8>>,
}

/// Properties of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttributeProperties {
    pub(super) kind: Kind,
    /// The code of a missing word, if values are dictionary codes.
    pub(super) missing: Option<i64>,
    pub(super) is_coded: bool,
    /// Number of channels, if the node declares it.
    pub(super) columns: Option<u64>,
}

/// A link and its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) ends: Vec<usize>,
    pub(super) values: BTreeMap<String, Vec<u8>>,
}

/// The content of a level.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) number: u32,
    pub(super) axes: usize,
    /// Size of a chunk.
    pub(super) chunk: Vec<f64>,
    /// Ordered by chunk and row.
    pub(super) vertices: Vec<Vertex>,
    pub(super) index: BTreeMap<At, usize>,
    pub(super) about: BTreeMap<String, AttributeProperties>,
    /// Ids in stored order, with the vertices that each object names.
    pub(super) objects: Option<Vec<(i64, Vec<usize>)>>,
    /// Vertices of fragments.
    pub(super) fragments: BTreeMap<(ChunkCoord, u32), Vec<usize>>,
    pub(super) links: Vec<Link>,
    pub(super) link_about: BTreeMap<String, AttributeProperties>,
    /// Objects name vertices in an order and may share them.
    pub(super) is_named: bool,
    pub(super) kind: Option<GeometryKind>,
    /// The order of ends is data.
    pub(super) is_directed: bool,
}

impl Level {
    /// Reads the stored content.
    pub(super) async fn read(dataset: &Dataset, number: u32, design: &Design) -> Self {
        let kind = design.kind;
        let (catalog, id) = (dataset.catalog(), LevelId::new(number));
        let metadata = dataset.level(id).await.unwrap();
        let mut level = Self {
            number,
            axes: dataset.root().axes.len(),
            chunk: metadata
                .effective_chunk_shape(dataset.root())
                .extents()
                .to_vec(),
            is_named: kind.is_paths() || metadata.shared_fragments,
            kind: Some(kind),
            is_directed: design.directed,
            ..Self::default()
        };
        level.vertices_of(dataset, id).await;
        let part = catalog
            .stored_array(id, &ArrayRole::VertexFragments)
            .await
            .unwrap()
            .unwrap();
        let cells = catalog.stored_cells(&part, part.chunks()).await;
        for (chunk, cell) in part.chunks().iter().zip(cells) {
            let cell = cell.unwrap();
            let index = FragmentIndex::parse(&cell).unwrap();
            for fragment in 0..index.len() {
                let rows = index
                    .rows(fragment)
                    .unwrap()
                    .iter()
                    .map(|row| level.index[&(chunk.clone(), row)])
                    .collect();
                level.fragments.insert((chunk.clone(), fragment), rows);
            }
        }
        if let Some(objects) = catalog.object_list(id).await.unwrap() {
            let all = (0..objects.len()).map(|place| {
                let pieces = objects.fragments(place).iter().map(|piece| {
                    let chunk = objects.chunk(piece.chunk).unwrap().clone();
                    level.fragments[&(chunk, piece.fragment)].as_slice()
                });
                (
                    objects.id(place).unwrap(),
                    pieces.collect::<Vec<_>>().concat(),
                )
            });
            level.objects = Some(all.collect());
        }
        if kind.is_linked() {
            level.links_of(dataset, id).await;
        }
        level
    }

    async fn vertices_of(&mut self, dataset: &Dataset, id: LevelId) {
        let catalog = dataset.catalog();
        let part = catalog.stored_array(id, &ArrayRole::Vertices).await;
        let Some(part) = part.unwrap() else { return };
        let says = Vertices::parse(part.node(), part.attributes()).unwrap();
        let kind = says.value.dtype.kind();
        let size = kind.size() * self.axes;
        let cells = catalog.stored_cells(&part, part.chunks()).await;
        for (chunk, cell) in part.chunks().iter().zip(cells) {
            for (row, bits) in (0..).zip(cell.unwrap().chunks_exact(size)) {
                let at = (chunk.clone(), row);
                self.index.insert(at.clone(), self.vertices.len());
                self.vertices.push(Vertex {
                    at,
                    place: bits.chunks_exact(kind.size()).map(float).collect(),
                    bits: bits.to_vec(),
                    values: BTreeMap::new(),
                });
            }
        }
        let names = catalog.attribute_list(id, Scope::Vertex).await.unwrap();
        for name in names.iter() {
            let part = catalog
                .stored_array(id, &ArrayRole::VertexAttribute(name))
                .await
                .unwrap()
                .unwrap();
            let says = CellAttribute::parse(part.node(), part.attributes()).unwrap();
            let dictionary = says.value.dictionary;
            let about = AttributeProperties {
                kind: says.value.dtype.kind(),
                missing: dictionary.as_ref().and_then(|words| words.fill),
                is_coded: dictionary.is_some(),
                columns: says.value.row_shape.map(|shape| shape.iter().product()),
            };
            let cells = catalog.stored_cells(&part, part.chunks()).await;
            for (chunk, cell) in part.chunks().iter().zip(cells) {
                let own: Vec<usize> = self.of_chunk(chunk).collect();
                let cell = cell.unwrap();
                let size = cell.len() / own.len();
                assert_eq!(size * own.len(), cell.len(), "{name} {chunk}");
                assert_eq!(size % about.kind.size(), 0, "{name} {chunk}: {about:?}");
                for (vertex, value) in own.into_iter().zip(cell.chunks_exact(size)) {
                    let values = &mut self.vertices[vertex].values;
                    values.insert(name.clone(), value.to_vec());
                }
            }
            self.about.insert(name.clone(), about);
        }
    }

    fn of_chunk(&self, chunk: &ChunkCoord) -> impl Iterator<Item = usize> {
        let from = (chunk.clone(), 0);
        let own = self
            .index
            .range(from..)
            .take_while(move |((at, _), _)| at == chunk);
        own.map(|(_, vertex)| *vertex)
    }

    /// Reads links as a query returns them, including those implied by the order of rows.
    async fn links_of(&mut self, dataset: &Dataset, id: LevelId) {
        let query = Query::new().level(LevelChoice::Number(id));
        let result = dataset.query(&query).await.unwrap();
        // Ordered by chunk, then by fragment, then within the fragment.
        let rows: Vec<usize> = self.fragments.values().flatten().copied().collect();
        assert_eq!(rows.len(), result.positions.len());
        let size = result.positions.row_size();
        for (row, bits) in rows.iter().zip(result.positions.bytes.chunks_exact(size)) {
            assert_eq!(self.vertices[*row].bits, bits);
        }
        let Some(links) = &result.links else { return };
        // In 0.8 only links between chunks declare the shape of a row.
        let files = dataset
            .store()
            .list_all(&Key::root(), 1 << 20)
            .await
            .unwrap();
        let declares = |name: &str| {
            let crossing = format!("0/cross_chunk_link_attributes/{name}/");
            dataset.detection().generation.is_current()
                || files.iter().any(|file| file.name.starts_with(&crossing))
        };
        let width = links.width as usize;
        for (at, ends) in links.ends.chunks_exact(width).enumerate() {
            let mut values = BTreeMap::new();
            for column in result.link.iter().filter(|column| !column.is_null(at)) {
                let ColumnValues::Numeric(numbers) = &column.values else {
                    continue;
                };
                let size = numbers.row_size();
                let value = numbers.bytes[at * size..(at + 1) * size].to_vec();
                let about = AttributeProperties {
                    kind: numbers.kind,
                    missing: None,
                    is_coded: false,
                    columns: declares(&column.name).then_some(numbers.width.into()),
                };
                self.link_about.insert(column.name.clone(), about);
                values.insert(column.name.clone(), value);
            }
            let ends = ends.iter().map(|end| rows[*end as usize]).collect();
            self.links.push(Link { ends, values });
        }
    }

    /// Returns the object of each vertex, in stores with at most one object per vertex.
    pub(super) fn owners(&self) -> Vec<Option<i64>> {
        let mut owners = vec![None; self.vertices.len()];
        for (id, own) in self.objects.iter().flatten() {
            for vertex in own {
                owners[*vertex] = Some(*id);
            }
        }
        owners
    }

    /// Returns the objects that have vertices.
    pub(super) fn present(&self) -> BTreeSet<i64> {
        let objects = self.objects.iter().flatten();
        let present = objects.filter(|(_, own)| !own.is_empty());
        present.map(|(id, _)| *id).collect()
    }

    /// Returns the vertices that an object names.
    pub(super) fn of(&self, id: i64) -> &[usize] {
        let mut objects = self.objects.iter().flatten();
        objects
            .find(|(own, _)| *own == id)
            .map_or(&[], |own| &own.1)
    }

    /// Returns the cell of this size that contains a vertex.
    pub(super) fn cell(&self, vertex: usize, extent: &[f64]) -> Vec<i64> {
        let place = self.vertices[vertex].place.iter().zip(extent);
        place
            .map(|(at, extent)| (at / extent).floor() as i64)
            .collect()
    }

    pub(super) fn place(&self, vertex: usize) -> &[f64] {
        &self.vertices[vertex].place
    }
}

/// Returns the links from vertices of a level to those of another, as stored on the first; `None`
/// if there are none.
pub(super) async fn between(
    dataset: &Dataset,
    from: &Level,
    to: &Level,
) -> Option<BTreeSet<(usize, usize)>> {
    let catalog = dataset.catalog();
    let delta = Delta::new(to.number as i32 - from.number as i32);
    let cells = catalog
        .all_link_cells(LevelId::new(from.number), delta)
        .await
        .unwrap()?;
    let wanted: Vec<usize> = (0..cells.len()).collect();
    let mut pairs = BTreeSet::new();
    for links in catalog.read_links(&cells, &wanted).await.unwrap() {
        for ends in links.ends.chunks_exact(2) {
            let at = |end: &(u32, u64)| (links.chunks[end.0 as usize].clone(), end.1);
            let pair = (from.index[&at(&ends[0])], to.index[&at(&ends[1])]);
            assert!(pairs.insert(pair), "{pair:?} are linked twice");
        }
    }
    Some(pairs)
}

fn float(bytes: &[u8]) -> f64 {
    match bytes.len() {
        4 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}
