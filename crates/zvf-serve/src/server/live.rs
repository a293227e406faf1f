//! The layers of one state of a store.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use tokio::sync::{Mutex, OnceCell};
use zvf::Dataset;
use zvf_model::level::{LevelId, Refinement};
use zvf_precomputed::AnnotationKind;
use zvf_query::LevelChoice;

use super::{
    cache::CachedResponse,
    cells::LiveAnnotations,
    encoding_cost::EncodingCost,
    live_meshes::{MeshRequest, encoded_mesh},
    live_skeletons::{SegmentRead, encoded_skeleton},
    object_cache::ObjectCache,
    object_sizes::{ObjectSize, ObjectSizes},
    stored_mesh::stored_mesh,
    stored_skeleton::stored_skeleton,
};
use crate::{
    layers::{
        Layer, LayerError, LayerInput, LayerKind, Report,
        annotations::{AnnotationPlan, IdScheme},
        check_undamaged,
        meshes::{MeshLevels, mesh_info},
        segments::{MAX_SEGMENTS, ONLY_SEGMENT, PROPERTIES},
        skeletons::{SkeletonLayer, coarser, draws_groups, group_layer},
        space::ViewerSpace,
        survey::{self, StoreSurvey},
    },
    view::StoreView,
};

/// The layers of a store at one transaction.
#[derive(Debug)]
pub(super) struct LiveLayers {
    pub(super) dataset: Dataset,
    pub(super) view: StoreView,
    /// Things that a user should know, such as rounded values.
    pub(super) notes: Vec<String>,
    /// Documents by path.
    documents: HashMap<String, Bytes>,
    annotations: Option<LiveAnnotations>,
    skeletons: HashMap<String, LiveSkeletons>,
    meshes: Option<MeshLevels>,
    has_objects: bool,
    is_path: bool,
    /// Sizes of the objects of each level, counted at the first request for an object.
    sizes: HashMap<LevelId, OnceCell<ObjectSizes>>,
    /// Held while the cells of annotations are prepared.
    preparing: Arc<Mutex<()>>,
    context: LiveContext,
}

/// State shared by all versions of a store.
#[derive(Debug)]
pub(super) struct LiveContext {
    /// Prefix of the names of encoded objects.
    pub(super) prefix: String,
    /// Bytes of the coarse cells of annotations that are kept.
    pub(super) coarse_cells: usize,
    pub(super) objects: Arc<ObjectCache>,
}

/// The skeletons of objects or groups.
#[derive(Debug)]
struct LiveSkeletons {
    segments: SegmentKind,
    level: LevelId,
    layer: SkeletonLayer,
}

/// The content of the segments of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentKind {
    Objects,
    Groups,
}

impl LiveLayers {
    /// Reads a store once for its bounds and the ranges of its attributes, and once for the density
    /// of its positions.
    pub(super) async fn new(
        dataset: Dataset,
        context: LiveContext,
        report: &Report<'_>,
    ) -> Result<Self, LayerError> {
        let space = ViewerSpace::of(&dataset);
        let reading = LayerInput {
            max_ids: MAX_SEGMENTS,
            ..LayerInput::new(&dataset, None, &space, report)
        };
        let mut notes = space.notes.clone();
        let survey = survey::survey(&reading, &mut notes).await?;
        let mut made = PlannedLayers {
            coarse_cells: context.coarse_cells,
            ..PlannedLayers::default()
        };
        for kind in LayerKind::of(&dataset) {
            made.add(kind, &reading, &survey, &mut notes).await?;
        }
        notes.dedup();
        let levels = [LevelId::FULL].into_iter();
        let levels = levels.chain(dataset.levels().iter().copied());
        let sizes = levels.map(|level| (level, OnceCell::new())).collect();
        let PlannedLayers {
            layers,
            documents,
            annotations,
            skeletons,
            meshes,
            ..
        } = made;
        Ok(Self {
            view: StoreView {
                layers,
                lower: survey.lower,
                upper: survey.upper,
                space,
            },
            dataset,
            notes,
            documents,
            annotations,
            skeletons,
            meshes,
            has_objects: survey.has_objects,
            is_path: survey.is_path,
            sizes,
            preparing: Arc::default(),
            context,
        })
    }

    /// Computes what the first requests need.
    pub(super) async fn warm(&self) -> Result<(), LayerError> {
        match &self.annotations {
            Some(annotations) => annotations.warm(&self.dataset).await,
            None => Ok(()),
        }
    }

    /// Prepares the cells of annotations, unless that was done. This goes on if the client disconnects.
    async fn prepare(self: &Arc<Self>) -> Result<(), LayerError> {
        let is_prepared = |layers: &Self| {
            let annotations = layers.annotations.as_ref();
            annotations.is_none_or(|annotations| !annotations.is_pending())
        };
        if is_prepared(self) {
            return Ok(());
        }
        let held = Arc::clone(&self.preparing).lock_owned().await;
        if is_prepared(self) {
            return Ok(());
        }
        let layers = Arc::clone(self);
        let work = async move {
            let _held = held;
            layers.warm().await
        };
        to_its_end(work).await
    }

    /// Returns whether the response for a path is worth a place in the cache. Objects have caches of
    /// their own.
    pub(super) fn is_cached(&self, path: &[&str]) -> bool {
        let annotations = self.annotations.as_ref();
        let is_prepared = annotations.is_some_and(LiveAnnotations::is_prepared);
        matches!(path, ["annotations", ..]) && !is_prepared
    }

    /// Returns the object at a path.
    pub(super) async fn response(
        self: &Arc<Self>,
        path: &[&str],
    ) -> Result<CachedResponse, LayerError> {
        if let Some(document) = self.documents.get(&path.join("/")) {
            return Ok(CachedResponse::Bytes(document.clone()));
        }
        match path {
            ["annotations", "info"] => match &self.annotations {
                Some(annotations) => {
                    self.prepare().await?;
                    let info = annotations.info(&self.dataset).await?;
                    Ok(CachedResponse::Bytes(info))
                }
                None => Ok(CachedResponse::Nothing),
            },
            ["annotations", index, name] => {
                self.prepare().await?;
                Ok(self.annotation(index, name).await?.into())
            }
            ["meshes", name] => self.mesh(name).await,
            [folder, id] => match self.skeletons.get(*folder).zip(decimal(id)) {
                Some((skeletons, id)) => self.skeleton(folder, skeletons, id).await,
                None => Ok(CachedResponse::Nothing),
            },
            _ => Ok(CachedResponse::Nothing),
        }
    }

    async fn annotation(&self, index: &str, name: &str) -> Result<Option<Bytes>, LayerError> {
        let Some(annotations) = &self.annotations else {
            return Ok(None);
        };
        let dataset = &self.dataset;
        if let Some(level) = index.strip_prefix("spatial").and_then(decimal) {
            let cell: Option<Vec<u64>> = name.split('_').map(decimal).collect();
            let level = usize::try_from(level).unwrap_or(usize::MAX);
            return match cell {
                Some(cell) => annotations.cell(dataset, level, cell).await,
                None => Ok(None),
            };
        }
        match (index, decimal(name)) {
            (_, None) => Ok(None),
            ("by_id", Some(id)) => annotations.by_id(dataset, id).await,
            (folder, Some(segment)) => annotations.related(dataset, folder, segment).await,
        }
    }

    async fn skeleton(
        self: &Arc<Self>,
        folder: &str,
        skeletons: &LiveSkeletons,
        id: u64,
    ) -> Result<CachedResponse, LayerError> {
        let objects = &self.context.objects;
        let name = format!("{}{folder}/{id}", self.context.prefix);
        if let Some(known) = objects.known(&name) {
            return Ok(known);
        }
        let held = objects.lock(&name).await;
        if let Some(known) = objects.known(&name) {
            return Ok(known);
        }
        let layer = &skeletons.layer;
        let cost = EncodingCost::of_skeleton(layer);
        let is_counted = cost.is_counted(skeletons.segments == SegmentKind::Groups);
        let query = self.query_of(skeletons.segments, id, skeletons.level);
        let read = match (query, is_counted) {
            (None, _) => None,
            (Some(query), true) => self.counted(query).await?,
            (Some(query), false) => self.read_of(query, id, skeletons.level).await?,
        };
        let Some(read) = read else {
            return objects.put(name, None).await;
        };
        let bytes = cost.of(&read);
        if bytes <= objects.max_encoding_bytes() {
            let _permit = objects.acquire(bytes).await;
            let encoded = encoded_skeleton(layer, &self.dataset, &read, id, self.has_objects);
            return objects.put(name, encoded.await?).await;
        }
        drop(held);
        let (layers, folder) = (Arc::clone(self), folder.to_owned());
        let stored = async move {
            let objects = &layers.context.objects;
            let _held = objects.lock(&name).await;
            if let Some(known) = objects.known(&name) {
                return Ok(known);
            }
            let Some(skeletons) = layers.skeletons.get(&folder) else {
                return Ok(CachedResponse::Nothing);
            };
            let _permit = objects.acquire(objects.max_encoding_bytes()).await;
            let read = layers.whole_level(read, id, skeletons.level);
            match stored_skeleton(&skeletons.layer, &layers.dataset, &read).await? {
                Some(stored) => Ok(objects.put_stored(name, stored)),
                None => objects.put(name, None).await,
            }
        };
        to_its_end(stored).await
    }

    /// Returns the fragments of an object, `<id>`, or its manifest, `<id>.index`.
    async fn mesh(self: &Arc<Self>, file: &str) -> Result<CachedResponse, LayerError> {
        let id = decimal(file.strip_suffix(".index").unwrap_or(file));
        let (Some(levels), Some(id)) = (&self.meshes, id) else {
            return Ok(CachedResponse::Nothing);
        };
        let objects = &self.context.objects;
        let names = MeshNames::new(&self.context.prefix, id);
        let name = format!("{}meshes/{file}", self.context.prefix);
        if let Some(known) = objects.known(&name) {
            return Ok(known);
        }
        let held = objects.lock(&names.data).await;
        if let Some(known) = objects.known(&name) {
            return Ok(known);
        }
        let mut reads = Vec::new();
        let all = [LevelId::FULL].into_iter();
        for level in all.chain(levels.coarser().iter().copied()) {
            if let Some(query) = self.query_of(SegmentKind::Objects, id, level) {
                let read = self.read_of(query, id, level).await?;
                // An object that level 0 lacks does not exist.
                if read.is_none() && reads.is_empty() {
                    break;
                }
                reads.extend(read.map(|read| LevelRead { level, read }));
            }
        }
        let bytes = EncodingCost::MESH.of_levels(reads.iter().map(|level| &level.read));
        if bytes <= objects.max_encoding_bytes() {
            let _permit = objects.acquire(bytes).await;
            let reads = reads.into_iter().map(|level| level.read).collect();
            let request = MeshRequest { id, reads };
            let encoded = encoded_mesh(levels, &self.dataset, request).await?;
            let (index, data) = encoded.map(|mesh| (mesh.manifest, mesh.data)).unzip();
            let is_data = name == names.data;
            let index = objects.put(names.index, index).await?;
            let data = objects.put(names.data, data).await?;
            return Ok(if is_data { data } else { index });
        }
        drop(held);
        let layers = Arc::clone(self);
        let stored = async move {
            let objects = &layers.context.objects;
            let _held = objects.lock(&names.data).await;
            if let Some(known) = objects.known(&name) {
                return Ok(known);
            }
            let _permit = objects.acquire(objects.max_encoding_bytes()).await;
            let reads: Vec<SegmentRead> = reads
                .into_iter()
                .map(|level| layers.whole_level(level.read, id, level.level))
                .collect();
            let is_data = name == names.data;
            let (index, data) = match stored_mesh(&layers.dataset, &reads).await? {
                Some(mesh) => (
                    objects.put(names.index, Some(mesh.manifest)).await?,
                    objects.put_stored(names.data, mesh.data),
                ),
                None => (
                    objects.put(names.index, None).await?,
                    objects.put(names.data, None).await?,
                ),
            };
            Ok(if is_data { data } else { index })
        };
        to_its_end(stored).await
    }

    /// Returns the query for a segment; `None` if no segment has this id.
    fn query_of(&self, segments: SegmentKind, id: u64, level: LevelId) -> Option<zvf::Query> {
        let query = whole(level);
        match (segments, self.has_objects) {
            // Members that the store lacks are left out.
            (SegmentKind::Groups, _) => Some(query.groups([id]).keep_going(true)),
            (SegmentKind::Objects, true) => Some(query.objects([i64::try_from(id).ok()?])),
            (SegmentKind::Objects, false) => (id == ONLY_SEGMENT).then_some(query),
        }
    }

    async fn count(&self, query: &zvf::Query) -> Result<u64, LayerError> {
        match self.dataset.count(query).await {
            Ok(counts) => check_undamaged(&counts.skipped).map(|()| counts.vertices),
            Err(error) if error.is_not_found() => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts the vertices of a segment with a query, and returns the way to read the segment;
    /// `None` if it has no vertices.
    async fn counted(&self, query: zvf::Query) -> Result<Option<SegmentRead>, LayerError> {
        let vertices = self.count(&query).await?;
        let size = ObjectSize { vertices, links: 0 };
        Ok((vertices > 0).then_some(SegmentRead::Selected { query, size }))
    }

    async fn sizes(&self, level: LevelId) -> Result<Option<&ObjectSizes>, LayerError> {
        let Some(cell) = self.sizes.get(&level) else {
            return Ok(None);
        };
        let read = || ObjectSizes::read(&self.dataset, level, self.has_objects);
        cell.get_or_try_init(read).await.map(Some)
    }

    /// Returns the way to read an object of a level; `None` if the level lacks it.
    async fn read_of(
        &self,
        query: zvf::Query,
        id: u64,
        level: LevelId,
    ) -> Result<Option<SegmentRead>, LayerError> {
        let Some(sizes) = self.sizes(level).await? else {
            return Ok(None);
        };
        let size = if sizes.is_partial() {
            let vertices = self.count(&query).await?;
            (vertices > 0).then(|| sizes.of_vertices(vertices))
        } else {
            sizes.of(id)
        };
        let Some(size) = size else { return Ok(None) };
        let read = SegmentRead::Selected { query, size };
        Ok(Some(if sizes.has_one_object() {
            self.whole_level(read, id, level)
        } else {
            read
        }))
    }

    /// Returns the way to read an object from the batches of its whole level. Paths are still read
    /// by their query.
    fn whole_level(&self, read: SegmentRead, id: u64, level: LevelId) -> SegmentRead {
        match read {
            SegmentRead::Selected { size, .. } if !self.is_path => SegmentRead::Streamed {
                query: whole(level),
                object: self.has_objects.then(|| i64::try_from(id).ok()).flatten(),
                size,
            },
            read => read,
        }
    }
}

/// Returns the query for a level, with faces as viewers expect them.
fn whole(level: LevelId) -> zvf::Query {
    let level = LevelChoice::Number(level);
    zvf::Query::new().level(level).counter_clockwise(true)
}

/// The names of the parts of a mesh.
struct MeshNames {
    index: String,
    data: String,
}

impl MeshNames {
    fn new(prefix: &str, id: u64) -> Self {
        let data = format!("{prefix}meshes/{id}");
        Self {
            index: format!("{data}.index"),
            data,
        }
    }
}

/// The way to read an object of a level.
struct LevelRead {
    level: LevelId,
    read: SegmentRead,
}

/// Runs work that goes on if the client disconnects, so that another request finds its result.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, LayerError>> + Send + 'static,
) -> Result<T, LayerError> {
    tokio::spawn(work).await.map_err(|_| LayerError::Ended)?
}

/// Layers that were planned so far.
#[derive(Default)]
struct PlannedLayers {
    /// Bytes of the coarse cells of annotations that are kept.
    coarse_cells: usize,
    layers: Vec<Layer>,
    documents: HashMap<String, Bytes>,
    annotations: Option<LiveAnnotations>,
    skeletons: HashMap<String, LiveSkeletons>,
    meshes: Option<MeshLevels>,
}

impl PlannedLayers {
    async fn add(
        &mut self,
        kind: LayerKind,
        reading: &LayerInput<'_>,
        survey: &StoreSurvey,
        notes: &mut Vec<String>,
    ) -> Result<(), LayerError> {
        let folder = kind.folder();
        let objects = u64::try_from(survey.segments.count).unwrap_or(u64::MAX);
        let layer = match kind {
            LayerKind::Annotations if !survey.has_annotations(notes) => return Ok(()),
            LayerKind::Annotations => {
                let plan = AnnotationPlan::new(reading, survey, IdScheme::Stored, notes).await?;
                let full = reading.dataset.level(LevelId::FULL).await?;
                let is_additive = full.refinement == Refinement::Add;
                if plan.kind == AnnotationKind::Point && is_additive {
                    return Err(LayerError::Additive);
                }
                let layer = Layer {
                    kind,
                    level: LevelId::FULL,
                    items: plan.count,
                    shader: plan.shader.clone(),
                    shown: Vec::new(),
                    is_related: survey.has_objects,
                    transform: None,
                };
                let dimensions = &reading.space.dimensions;
                let annotations = LiveAnnotations::new(plan, dimensions, self.coarse_cells);
                self.annotations = Some(annotations);
                layer
            }
            LayerKind::Skeletons => {
                self.skeletons(reading, survey, notes)?;
                for (reading, survey) in coarser(reading, survey, notes).await? {
                    self.skeletons(&reading, &survey, notes)?;
                }
                return Ok(());
            }
            LayerKind::Meshes => {
                let info = mesh_info(reading, survey)?;
                survey.note_objects(folder, notes);
                self.meshes =
                    Some(MeshLevels::new(reading.dataset, survey.has_objects, notes).await?);
                self.properties(folder, survey);
                self.document(format!("{folder}/info"), info.to_json());
                Layer {
                    kind,
                    level: LevelId::FULL,
                    items: objects.max(1),
                    shader: None,
                    shown: survey.shown(),
                    is_related: false,
                    transform: None,
                }
            }
            LayerKind::Segments => {
                let Some(json) = survey.segments.to_json() else {
                    return Ok(());
                };
                self.document(format!("{folder}/info"), json);
                Layer {
                    kind,
                    level: LevelId::FULL,
                    items: objects,
                    shader: None,
                    shown: Vec::new(),
                    is_related: false,
                    transform: None,
                }
            }
            LayerKind::Groups => {
                if survey.groups.is_empty() {
                    return Ok(());
                }
                self.groups(reading, survey)?
            }
            LayerKind::Volume => return Ok(()),
        };
        self.layers.push(layer);
        Ok(())
    }

    /// Adds the groups: skeletons of their paths, or their properties alone.
    fn groups(
        &mut self,
        reading: &LayerInput<'_>,
        survey: &StoreSurvey,
    ) -> Result<Layer, LayerError> {
        let folder = LayerKind::Groups.folder();
        let table = &survey.groups.segments;
        let mut shader = None;
        if draws_groups(reading, survey) {
            let layer = SkeletonLayer::of_groups(reading, survey)?;
            shader.clone_from(&layer.shader);
            self.document(format!("{folder}/info"), layer.info.to_json());
            if let Some(json) = table.to_json() {
                self.document(format!("{folder}/{PROPERTIES}/info"), json);
            }
            let skeletons = LiveSkeletons {
                segments: SegmentKind::Groups,
                level: LevelId::FULL,
                layer,
            };
            self.skeletons.insert(folder.to_owned(), skeletons);
        } else if let Some(json) = table.to_json() {
            self.document(format!("{folder}/info"), json);
        }
        Ok(group_layer(survey, shader))
    }

    /// Adds the skeletons of a level.
    fn skeletons(
        &mut self,
        reading: &LayerInput<'_>,
        survey: &StoreSurvey,
        notes: &mut Vec<String>,
    ) -> Result<(), LayerError> {
        let level = reading.level;
        let layer = SkeletonLayer::new(reading, survey, notes)?;
        let folder = LayerKind::Skeletons.folder_of(level);
        survey.note_objects(&folder, notes);
        self.document(format!("{folder}/info"), layer.info.to_json());
        self.properties(&folder, survey);
        let objects = u64::try_from(survey.segments.count).unwrap_or(u64::MAX);
        self.layers.push(Layer {
            kind: LayerKind::Skeletons,
            level,
            items: objects.max(1),
            shader: layer.shader.clone(),
            shown: survey.shown(),
            is_related: false,
            transform: None,
        });
        self.skeletons.insert(
            folder,
            LiveSkeletons {
                segments: SegmentKind::Objects,
                level,
                layer,
            },
        );
        Ok(())
    }

    fn document(&mut self, path: String, json: String) {
        self.documents.insert(path, json.into());
    }

    /// Adds the properties of segments, if there are any.
    fn properties(&mut self, folder: &str, survey: &StoreSurvey) {
        if let Some(json) = survey.segments.to_json() {
            self.document(format!("{folder}/{PROPERTIES}/info"), json);
        }
    }
}

/// Reads a number in the form in which paths hold it.
fn decimal(digits: &str) -> Option<u64> {
    let is_plain = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    is_plain.then(|| digits.parse().ok()).flatten()
}
