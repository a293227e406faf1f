//! The content of a store of any generation.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use zvf::Dataset;
use zvf_catalog::{Scope, Selection};
use zvf_format::path::Delta;
use zvf_model::{
    array::{CellAttribute, Vertices},
    grid::ChunkCoord,
    layout::ArrayRole,
    level::LevelId,
    metadata::Attributes,
    root::LinksConvention,
    word::Word,
};
use zvf_query::{Column, ColumnValues};

/// An array with a cell for each chunk: the type of its values, and the payloads.
type Cells = (Json, BTreeMap<ChunkCoord, Vec<u8>>);
/// Chunk and row of each end, and the values of all attributes.
pub(super) type Record = (Vec<(ChunkCoord, u64)>, BTreeMap<String, String>);

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Content {
    pub(super) root: BTreeMap<&'static str, Json>,
    pub(super) levels: BTreeMap<u32, Level>,
    pub(super) parametric: String,
    pub(super) headers: BTreeMap<String, Attributes>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Level {
    pub(super) says: BTreeMap<&'static str, Json>,
    pub(super) cells: BTreeMap<String, Cells>,
    /// The manifest of each id; an object without pieces has none.
    pub(super) manifests: Option<BTreeMap<i64, Vec<u8>>>,
    /// Values of each object attribute, by id.
    pub(super) objects: BTreeMap<String, BTreeMap<i64, String>>,
    pub(super) groups: Vec<Vec<i64>>,
    pub(super) group_columns: BTreeMap<String, Vec<String>>,
    /// Number of copies of each record, by delta and number of ends.
    pub(super) links: BTreeMap<(Delta, u32), BTreeMap<Record, usize>>,
    pub(super) composite: Vec<String>,
}

/// Formats a value in a form common to all generations.
fn value(column: &Column, row: usize) -> String {
    if column.nulls.as_ref().is_some_and(|missing| missing[row]) {
        return "absent".to_owned();
    }
    match &column.values {
        ColumnValues::Numeric(rows) => {
            let size = rows.row_size();
            format!("{:?}", &rows.bytes[row * size..(row + 1) * size])
        }
        ColumnValues::Dictionary { codes, words } => words[codes[row] as usize].clone(),
    }
}

fn column(column: &Column) -> Vec<String> {
    (0..column.values.len())
        .map(|row| value(column, row))
        .collect()
}

impl Content {
    pub(super) async fn of(dataset: &Dataset) -> Self {
        let root = dataset.root();
        let says = |value: &dyn core::fmt::Debug| json!(format!("{value:?}"));
        let mut content = Self {
            root: BTreeMap::new(),
            ..Self::default()
        };
        content.root = BTreeMap::from([
            ("axes", says(&root.axes)),
            ("bounds", says(&root.bounds)),
            ("chunk_shape", says(&root.chunk_shape)),
            ("kinds", says(&root.geometry_kinds)),
            ("convention", says(&root.links_convention)),
            ("bins", says(&root.base_bin_shape)),
            ("crs", says(&root.crs)),
            ("depth", says(&root.cross_level_depth)),
            ("storage", says(&root.cross_level_storage)),
            ("unknown", json!(root.unknown)),
        ]);
        // From 0.10 on the levels have their bins, and the root only names the levels.
        let mut datasets = root.datasets.clone();
        if dataset.layout().generation.is_preview() {
            for own in &mut datasets {
                let level = dataset.level(own.level).await.unwrap();
                *own = level.dataset(root);
            }
        }
        content.root.insert("datasets", says(&datasets));
        for id in dataset.levels() {
            let level = Level::of(dataset, *id).await;
            content.levels.insert(id.number(), level);
        }
        let catalog = dataset.catalog();
        if let Some(parametric) = catalog.parametric().await.unwrap() {
            let names = |columns: &Option<Vec<Column>>| {
                let columns = columns.as_deref().unwrap_or_default().iter();
                columns
                    .map(|own| (own.name.clone(), column(own)))
                    .collect::<Vec<_>>()
            };
            let groups = parametric.groups.as_ref().map(members);
            content.parametric = format!(
                "{:?} {:?} {:?} {:?} {:?}",
                parametric.types,
                parametric.objects,
                names(&parametric.attributes),
                groups,
                names(&parametric.group_attributes)
            );
        }
        for header in catalog.headers().await.unwrap() {
            content.headers.insert(header.format, header.attributes);
        }
        content
    }
}

fn members(groups: &zvf_catalog::GroupList) -> Vec<Vec<i64>> {
    let groups = (0..groups.len()).map(|group| groups.members(group));
    groups
        .map(|members| members.unwrap().iter().collect())
        .collect()
}

impl Level {
    async fn of(dataset: &Dataset, id: LevelId) -> Self {
        let catalog = dataset.catalog();
        let metadata = dataset.level(id).await.unwrap();
        let mut level = Self::default();
        let mut other = metadata.other.clone();
        other.remove("zarr_conventions");
        let says = |value: &dyn core::fmt::Debug| json!(format!("{value:?}"));
        level.says = BTreeMap::from([
            ("sparsity", says(&metadata.object_sparsity)),
            ("method", says(&metadata.coarsening_method)),
            ("parent", says(&metadata.parent_level)),
            ("chunk_shape", says(&metadata.chunk_shape)),
            ("chunking", says(&metadata.attribute_chunking)),
            ("preserves", says(&metadata.preserves_object_ids)),
            ("bins", says(&metadata.bin_shape)),
            ("ratio", says(&metadata.bin_ratio)),
            ("other", json!(other)),
        ]);
        // Where the id of an object is its row, missing ids are rows too.
        let mut inherited = says(&metadata.inherited_num_objects);
        if let Some(parent) = metadata.parent_level {
            let index = catalog.stored_manifests(parent).await.unwrap();
            let rows = index.map(|index| index.rows());
            if rows.is_some() && rows == metadata.inherited_num_objects {
                inherited = json!("all rows of the parent");
            }
        }
        level.says.insert("inherited", inherited);
        level.read_cells(dataset, id).await;
        if let Some(manifests) = catalog.stored_manifests(id).await.unwrap() {
            let rows = catalog
                .manifest_rows(&manifests, 0..manifests.rows())
                .await
                .unwrap();
            assert_eq!(rows.len() as u64, manifests.rows());
            let rows = (0..)
                .zip(rows)
                .map(|(row, blob)| (manifests.id(row).unwrap(), blob))
                .filter(|(_, blob)| blob.iter().any(|byte| *byte != 0));
            level.manifests = Some(rows.map(|(id, blob)| (id, blob.to_vec())).collect());
        }
        let index = catalog.stored_manifests(id).await.unwrap();
        for name in catalog
            .attribute_list(id, Scope::Object)
            .await
            .unwrap()
            .iter()
        {
            let values = catalog.object_values(id, name, None).await.unwrap();
            let id_of = |row: u64| match &index {
                Some(index) => index.id(row).unwrap_or(i64::MAX),
                None => i64::try_from(row).unwrap(),
            };
            let values = (0..)
                .zip(column(&values))
                .map(|(row, value)| (id_of(row), value))
                .filter(|(_, value)| value != "absent");
            level.objects.insert(name.clone(), values.collect());
        }
        if let Some(groups) = catalog.group_list(id).await.unwrap() {
            level.groups = members(&groups);
        }
        for name in catalog
            .attribute_list(id, Scope::Group)
            .await
            .unwrap()
            .iter()
        {
            let values = catalog.group_values(id, name, None).await.unwrap();
            level.group_columns.insert(name.clone(), column(&values));
        }
        for delta in catalog.stored_link_deltas(id).await.unwrap() {
            // The chunks of another level are in the metadata of that level.
            let target = id.offset(delta.levels());
            if !target.is_some_and(|target| dataset.levels().contains(&target)) {
                continue;
            }
            level.read_links(dataset, id, delta).await;
        }
        let further = catalog.composite(id).await.unwrap();
        for geometry in &further {
            let links = catalog
                .stored_composite_links(id, &geometry.kind)
                .await
                .unwrap();
            let links = links.map(|links| (links.width, links.ends));
            level.composite.push(format!("{geometry:?} {links:?}"));
        }
        level
    }

    async fn read_cells(&mut self, dataset: &Dataset, id: LevelId) {
        let catalog = dataset.catalog();
        let mut parts = vec![
            ("vertices".to_owned(), ArrayRole::Vertices),
            ("vertex_fragments".to_owned(), ArrayRole::VertexFragments),
            ("link_fragments".to_owned(), ArrayRole::LinkFragments),
        ];
        let vertex = catalog.attribute_list(id, Scope::Vertex).await.unwrap();
        let fragment = catalog.attribute_list(id, Scope::Fragment).await.unwrap();
        for name in vertex.iter() {
            parts.push((format!("vertex {name}"), ArrayRole::VertexAttribute(name)));
        }
        for name in fragment.iter() {
            parts.push((
                format!("fragment {name}"),
                ArrayRole::FragmentAttribute(name),
            ));
        }
        let kinds: Vec<String> = {
            let further = catalog.composite(id).await.unwrap().into_iter();
            further.map(|geometry| geometry.kind).collect()
        };
        for kind in &kinds {
            parts.push((
                format!("further {kind}"),
                ArrayRole::CompositeVertices(kind),
            ));
        }
        for (name, part) in parts {
            let Some(stored) = catalog.stored_array(id, &part).await.unwrap() else {
                continue;
            };
            let cells = catalog.stored_cells(&stored, stored.chunks()).await;
            let cells = stored
                .chunks()
                .iter()
                .cloned()
                .zip(cells)
                .map(|(chunk, cell)| (chunk, cell.unwrap().to_vec()));
            // An empty cell equals a missing one.
            let cells: BTreeMap<_, _> = cells.filter(|(_, cell)| !cell.is_empty()).collect();
            let (node, says) = (stored.node(), stored.attributes());
            let says = match part {
                ArrayRole::Vertices | ArrayRole::CompositeVertices(_) => {
                    let vertices = Vertices::parse(node, says).unwrap().value;
                    json!(format!("{:?} {:?}", vertices.dtype, vertices.encoding))
                }
                ArrayRole::VertexAttribute(_) | ArrayRole::FragmentAttribute(_) => {
                    let own = CellAttribute::parse(node, says).unwrap().value;
                    json!(format!(
                        "{:?} {:?} {:?}",
                        own.dtype, own.dictionary, own.channel_names
                    ))
                }
                _ => Json::Null,
            };
            if !cells.is_empty() || !name.starts_with("link") {
                self.cells.insert(name, (says, cells));
            }
        }
    }

    async fn read_links(&mut self, dataset: &Dataset, id: LevelId, delta: Delta) {
        let catalog = dataset.catalog();
        let stored = catalog
            .stored_links(id, delta, &Selection::All, false)
            .await;
        let Some(stored) = stored.unwrap() else {
            return;
        };
        // Links between chunks of directed skeletons of 0.9 name the parent first.
        let is_skeleton = delta == Delta::INTRA
            && dataset.layout().generation.is_current()
            && dataset.root().links_convention
                == Some(Word::Known(LinksConvention::ImplicitWithBranches));
        for family in &stored.families {
            for link in 0..family.len() {
                let mut ends: Vec<_> = family
                    .ends_of(link)
                    .map(|(chunk, row)| (chunk.clone(), row))
                    .collect();
                if is_skeleton && family.directed && ends[0].0 != ends[1].0 {
                    ends.reverse();
                }
                let values = family
                    .attributes
                    .iter()
                    .map(|own| (own.name.clone(), value(own, link)))
                    .filter(|(_, value)| value != "absent")
                    .collect();
                let records = self.links.entry((delta, family.width)).or_default();
                *records.entry((ends, values)).or_default() += 1;
            }
        }
    }
}

/// Renumbers objects by their former ids, which the new store has as an attribute.
pub(super) fn renamed(mut content: Content) -> Content {
    for level in content.levels.values_mut() {
        let Some(ids) = level.objects.remove("object_id") else {
            continue;
        };
        let id = |row: i64| {
            let bytes: Vec<u8> = serde_json::from_str(&ids[&row]).unwrap();
            i64::from_le_bytes(bytes.try_into().unwrap())
        };
        let manifests = level.manifests.take().unwrap().into_iter();
        level.manifests = Some(manifests.map(|(row, blob)| (id(row), blob)).collect());
        for values in level.objects.values_mut() {
            let rows = core::mem::take(values).into_iter();
            *values = rows.map(|(row, value)| (id(row), value)).collect();
        }
        for members in &mut level.groups {
            for member in members {
                *member = id(*member);
            }
        }
    }
    content
}

/// Asserts equality with a short message.
#[track_caller]
pub(super) fn same(found: &Content, expected: &Content, at: &str) {
    assert_eq!(found.root, expected.root, "{at}");
    assert_eq!(found.parametric, expected.parametric, "{at}");
    assert_eq!(found.headers, expected.headers, "{at}");
    let convention = json!(format!(
        "{:?}",
        Some(Word::Known(LinksConvention::ImplicitSequential))
    ));
    let are_paths = expected.root["convention"] == convention;
    let levels = |content: &Content| content.levels.keys().copied().collect::<Vec<_>>();
    assert_eq!(levels(found), levels(expected), "{at}");
    for (number, expected) in &expected.levels {
        let (found, at) = (&found.levels[number], format!("{at}/{number}"));
        assert_eq!(found.says, expected.says, "{at}");
        let names = |level: &Level| level.cells.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(found), names(expected), "{at}");
        for (name, cells) in &expected.cells {
            assert_eq!(&found.cells[name], cells, "{at} {name}");
        }
        assert_eq!(found.manifests, expected.manifests, "{at}");
        assert_eq!(found.objects, expected.objects, "{at}");
        assert_eq!(found.groups, expected.groups, "{at}");
        assert_eq!(found.group_columns, expected.group_columns, "{at}");
        let mut links = found.links.clone();
        // Stores of paths before 0.9 always have the steps between chunks as links.
        if are_paths && !expected.links.contains_key(&(Delta::INTRA, 2)) {
            links.remove(&(Delta::INTRA, 2));
        }
        assert_eq!(links, expected.links, "{at}");
        assert_eq!(found.composite, expected.composite, "{at}");
    }
}
