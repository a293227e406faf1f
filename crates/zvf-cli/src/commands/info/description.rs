//! The description of a store, gathered from its metadata.

use std::error::Error;

use serde_json::Value;
use zvf::{
    AttributeInfo, Dataset, ErrorKind, GeometryKind, LevelId, LinkInfo, StoreInfo, ValueRange, Word,
};
use zvf_model::{
    array::{VertexEncoding, Vertices},
    error_chain::error_chain,
    layout::ArrayRole,
    metadata::Attributes,
    root::{Axis, LinksConvention, RootMetadata},
    word::Vocabulary,
    zarr::{Array, Codecs},
};

/// The description of a store.
#[derive(Debug)]
pub(super) struct StoreDescription {
    pub(super) info: StoreInfo,
    /// Version of the format that the root declares.
    pub(super) version: Option<String>,
    /// Number of the last transaction; `None` if another program wrote the store.
    pub(super) transaction: Option<u64>,
    /// Formats of the files that the store was converted from.
    pub(super) source_formats: Vec<String>,
    pub(super) name: Option<String>,
    /// Order of the corners of faces; `None` without meshes.
    pub(super) winding: Option<String>,
    /// True if the edges of graphs have a direction; `None` without graphs.
    pub(super) directed: Option<bool>,
    pub(super) crs: Option<Value>,
    pub(super) axes: Vec<Axis>,
    /// Extents of chunks and bins of the finest level.
    pub(super) chunk_shape: Vec<f64>,
    pub(super) bin_shape: Vec<f64>,
    pub(super) positions: Option<Positions>,
    /// Attributes of the finest level, with their ranges once computed.
    pub(super) attributes: Vec<(AttributeInfo, Option<ValueRange>)>,
    /// Number of groups; `None` if the finest level has none.
    pub(super) groups: Option<u64>,
    /// Links of each level as queries return them, once counted; `None` for points and paths.
    pub(super) logical_links: Option<Vec<Option<u64>>>,
    /// Links of each level by delta, once listed.
    pub(super) link_lists: Option<Vec<Vec<LinkInfo>>>,
    /// Names and words of the conventions that the root declares, or their defaults.
    pub(super) conventions: [(&'static str, String); 4],
    /// Declared capabilities.
    pub(super) capabilities: Vec<String>,
    /// Capabilities that a reader must have.
    pub(super) required_capabilities: Vec<String>,
    /// True if the order of rows implies links.
    pub(super) has_implied_links: bool,
}

/// The stored form of positions.
#[derive(Debug)]
pub(super) struct Positions {
    pub(super) dtype: &'static str,
    /// Names of the codecs of a cell, in the order of encoding; empty if each chunk is an array of
    /// its own.
    pub(super) codecs: Vec<String>,
    /// Chunks in a shard along each axis.
    pub(super) shard_shape: Option<Vec<u64>>,
}

impl StoreDescription {
    /// Reads the metadata of a store, and counts its contents.
    pub(super) async fn read(dataset: &Dataset) -> Result<Self, Box<dyn Error>> {
        let mut info = dataset.info().await?;
        // Damage of one part must not hide the rest of the store.
        let mut notes = Vec::new();
        let root = dataset.root();
        let finest = info.levels.first().map(|level| level.level);
        let (mut chunk_shape, mut bin_shape) = (&root.chunk_shape, root.bin_shape());
        let (mut positions, mut attributes, mut groups) = (None, Vec::new(), None);
        let mut directed = None;
        let metadata;
        if let Some(level) = finest {
            metadata = dataset.level(level).await?;
            chunk_shape = metadata.effective_chunk_shape(root);
            bin_shape = metadata.effective_bin_shape(root);
            let read = Positions::read(dataset, level).await;
            positions = or_note(read, "the form of positions", &mut notes);
            let read = dataset.attributes(level).await.map_err(Into::into);
            attributes = or_note(read, "attributes", &mut notes);
            let list = dataset.catalog().group_list(level).await;
            let read = list.map(|list| list.map(|groups| groups.len()));
            groups = or_note(read.map_err(Into::into), "groups", &mut notes);
            if root.holds(GeometryKind::Graphs) {
                let found = dataset.catalog().has_directed_links(level).await;
                let found_or_error = found.map(Some).map_err(Into::into);
                directed = or_note(found_or_error, "the direction of links", &mut notes);
            }
        }
        let read = dataset.source_formats().await.map_err(Into::into);
        let source_formats = or_note(read, "headers", &mut notes);
        info.notes.extend(notes);
        let shared = shared_vertices(dataset, &info).await?;
        info.notes.extend(shared);
        let ome_name = root.other.get("ome").and_then(|ome| ome.get("name"));
        Ok(Self {
            version: root.version.map(|version| version.to_string()),
            transaction: transaction(&root.other),
            source_formats,
            name: ome_name.and_then(Value::as_str).map(str::to_owned),
            winding: root.kinds().any(GeometryKind::has_faces).then(|| {
                let declared = root.winding_order.as_ref();
                declared
                    .map_or(root.winding().as_str(), Word::as_str)
                    .to_owned()
            }),
            directed,
            crs: root.crs.clone().filter(|crs| !crs.is_null()),
            axes: root.axes.clone(),
            chunk_shape: chunk_shape.extents().to_vec(),
            bin_shape: bin_shape.extents().to_vec(),
            positions,
            attributes: attributes.into_iter().map(|info| (info, None)).collect(),
            groups,
            logical_links: None,
            link_lists: None,
            conventions: conventions(root),
            capabilities: root.capabilities.clone(),
            required_capabilities: root.required_capabilities.clone(),
            has_implied_links: root.links_convention
                == Some(Word::Known(LinksConvention::ImplicitWithBranches)),
            info,
        })
    }

    /// Counts the links that queries return.
    pub(super) async fn count_links(&mut self, dataset: &Dataset) -> Result<(), zvf::Error> {
        let mut links = Vec::with_capacity(self.info.levels.len());
        for level in &self.info.levels {
            links.push(dataset.count_links(level.level).await?);
        }
        self.logical_links = Some(links);
        Ok(())
    }

    /// Lists the links of all levels by delta.
    pub(super) async fn list_links(&mut self, dataset: &Dataset) -> Result<(), zvf::Error> {
        let mut lists = Vec::with_capacity(self.info.levels.len());
        for level in &self.info.levels {
            lists.push(dataset.link_info(level.level).await?);
        }
        self.link_lists = Some(lists);
        Ok(())
    }

    /// Computes the ranges of all attributes from their values. Returns false, and adds notes, if some
    /// are damaged.
    pub(super) async fn compute_ranges(&mut self, dataset: &Dataset) -> Result<bool, zvf::Error> {
        let Some(finest) = self.info.levels.first() else {
            return Ok(true);
        };
        // A note has the reason.
        if self.attributes.is_empty() && dataset.attributes(finest.level).await.is_err() {
            return Ok(false);
        }
        let attributes: Vec<AttributeInfo> = self
            .attributes
            .iter()
            .map(|(info, _)| info.clone())
            .collect();
        let ranges = match dataset.attribute_ranges(finest.level, &attributes).await {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let notes = &mut self.info.notes;
                readable_ranges(dataset, finest.level, &attributes, notes).await?
            }
            ranges => ranges?.into_iter().map(Some).collect(),
        };
        let is_whole = ranges.iter().all(Option::is_some);
        for ((info, range), found) in self.attributes.iter_mut().zip(ranges) {
            info.channels = info
                .channels
                .or(found.as_ref().and_then(|found| found.channels));
            *range = found;
        }
        Ok(is_whole)
    }
}

/// Returns the conventions of a root; an absent one has its default.
fn conventions(root: &RootMetadata) -> [(&'static str, String); 4] {
    fn word<T: Vocabulary + Default>(word: Option<&Word<T>>) -> String {
        word.map_or_else(
            || T::default().word().to_owned(),
            |word| word.as_str().to_owned(),
        )
    }
    [
        ("links_convention", word(root.links_convention.as_ref())),
        (
            "object_index_convention",
            word(root.object_index_convention.as_ref()),
        ),
        (
            "cross_chunk_strategy",
            word(root.cross_chunk_strategy.as_ref()),
        ),
        (
            "cross_level_storage",
            root.cross_level_storage
                .as_ref()
                .map_or("explicit", Word::as_str)
                .to_owned(),
        ),
    ]
}

/// Computes the range of each attribute that is not damaged, and adds notes about the others.
async fn readable_ranges(
    dataset: &Dataset,
    level: LevelId,
    attributes: &[AttributeInfo],
    notes: &mut Vec<String>,
) -> Result<Vec<Option<ValueRange>>, zvf::Error> {
    let mut ranges = Vec::with_capacity(attributes.len());
    for info in attributes {
        match dataset
            .attribute_ranges(level, std::slice::from_ref(info))
            .await
        {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let (scope, name, why) = (info.scope.name(), &info.name, error_chain(&error));
                notes.push(format!("{scope}.{name} cannot be read: {why}"));
                ranges.push(None);
            }
            range => ranges.extend(range?.into_iter().map(Some)),
        }
    }
    Ok(ranges)
}

/// Describes the levels whose vertices lie on several paths or belong to several objects.
async fn shared_vertices(
    dataset: &Dataset,
    info: &StoreInfo,
) -> Result<Option<String>, zvf::Error> {
    let is_paths = dataset.root().kinds().any(GeometryKind::is_paths);
    let mut shared = Vec::new();
    for level in &info.levels {
        let metadata = dataset.level(level.level).await?;
        let recipe = metadata.other.get("zvf_pyramid");
        let member = |name: &str| recipe.and_then(|recipe| recipe.get(name));
        // The name of the method `bins` in metadata.
        let is_merged = member("method").and_then(Value::as_str) == Some("per_object");
        let is_shared = member("share") == Some(&Value::Bool(true));
        if is_merged && (is_paths || is_shared) {
            shared.push(level.level.to_string());
        }
    }
    if shared.is_empty() {
        return Ok(None);
    }
    let (noun, verb) = match shared.as_slice() {
        [_] => ("level", "stores"),
        _ => ("levels", "store"),
    };
    let levels = shared.join(", ");
    Ok(Some(format!(
        "{noun} {levels} {verb} shared vertices once; queries return them for each path or object"
    )))
}

/// Returns the default, and adds a note, if `what` cannot be read.
fn or_note<T: Default>(read: Result<T, Box<dyn Error>>, what: &str, notes: &mut Vec<String>) -> T {
    read.unwrap_or_else(|error| {
        notes.push(format!("{what} cannot be read: {}", error_chain(&*error)));
        T::default()
    })
}

impl Positions {
    async fn read(dataset: &Dataset, level: LevelId) -> Result<Option<Self>, Box<dyn Error>> {
        let catalog = dataset.catalog();
        let Some(stored) = catalog.stored_array(level, &ArrayRole::Vertices).await? else {
            return Ok(None);
        };
        let metadata = Vertices::parse(stored.node(), stored.attributes())?.value;
        let mut positions = Self {
            dtype: metadata.dtype.kind().name(),
            codecs: Vec::new(),
            shard_shape: None,
        };
        if let Some(array) = stored.array() {
            positions.add_codecs(array.metadata());
        }
        if metadata.encoding != VertexEncoding::Raw {
            positions.codecs.insert(0, "draco".to_owned());
        }
        Ok(Some(positions))
    }

    fn add_codecs(&mut self, array: &Array) {
        let names = |codecs: &Codecs| codecs.iter().map(|codec| codec.name.clone()).collect();
        match array.codecs.sharding() {
            Some(sharding) => {
                self.codecs = names(&sharding.codecs);
                self.shard_shape = Some(array.chunk_shape.clone());
            }
            None => self.codecs = names(&array.codecs),
        }
    }
}

/// Returns the number of the last transaction that this program committed.
fn transaction(other: &Attributes) -> Option<u64> {
    let of = |member: &str| other.get(member)?.get("transaction")?.as_u64();
    of("zvf").or_else(|| of("zvf_nodes"))
}
