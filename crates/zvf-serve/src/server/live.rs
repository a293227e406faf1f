//! The layers of one state of a store.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use tokio::sync::OnceCell;
use zvf::Dataset;
use zvf_model::level::LevelId;
use zvf_query::LevelChoice;

use super::{
    cells::LiveAnnotations,
    encoding_cost::EncodingCost,
    live_meshes::{MeshRequest, encoded_mesh},
    live_skeletons::{SegmentRead, encoded_skeleton},
    object_cache::ObjectCache,
    object_sizes::{ObjectSize, ObjectSizes},
};
use crate::{
    layers::{
        Layer, LayerError, LayerKind, Reading, Report,
        annotations::{AnnotationPlan, IdScheme},
        levels::usable_levels,
        meshes::{MeshLevels, mesh_info},
        segments::{ONLY, PROPERTIES},
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
    /// Sizes of the objects of each level, counted at the first request for an object.
    sizes: HashMap<LevelId, OnceCell<ObjectSizes>>,
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
    /// The levels that may be shown, the finest first. A coarser one stands for an object that is too
    /// large.
    levels: Vec<LevelId>,
    layer: SkeletonLayer,
}

/// The content of the segments of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentKind {
    Objects,
    Groups,
}

/// The way to encode a segment within the memory.
struct SegmentPlan {
    read: SegmentRead,
    level: LevelId,
    /// Bytes of memory that it takes.
    bytes: u64,
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
        let reading = Reading::new(&dataset, None, &space, report);
        let mut notes = space.notes.clone();
        let survey = survey::survey(&reading, &mut notes).await?;
        let mut made = Made {
            coarse_cells: context.coarse_cells,
            ..Made::default()
        };
        for kind in LayerKind::of(&dataset) {
            made.add(kind, &reading, &survey, &mut notes).await?;
        }
        notes.dedup();
        let levels = [LevelId::FULL].into_iter();
        let levels = levels.chain(dataset.levels().iter().copied());
        let sizes = levels.map(|level| (level, OnceCell::new())).collect();
        let Made {
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
            sizes,
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

    /// Returns whether the response for a path is worth a place in the cache. Objects have caches of
    /// their own.
    pub(super) fn is_cached(&self, path: &[&str]) -> bool {
        let annotations = self.annotations.as_ref();
        let is_prepared = annotations.is_some_and(LiveAnnotations::is_prepared);
        matches!(path, ["annotations", ..]) && !is_prepared
    }

    /// Returns the object at a path; `None` if there is none.
    pub(super) async fn response(&self, path: &[&str]) -> Result<Option<Bytes>, LayerError> {
        if let Some(document) = self.documents.get(&path.join("/")) {
            return Ok(Some(document.clone()));
        }
        match path {
            ["annotations", "info"] => match &self.annotations {
                Some(annotations) => annotations.info(&self.dataset).await.map(Some),
                None => Ok(None),
            },
            ["annotations", index, name] => self.annotation(index, name).await,
            ["meshes", name] => self.mesh(name).await,
            [folder, id] => match self.skeletons.get(*folder).zip(decimal(id)) {
                Some((skeletons, id)) => self.skeleton(folder, skeletons, id).await,
                None => Ok(None),
            },
            _ => Ok(None),
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
        &self,
        folder: &str,
        skeletons: &LiveSkeletons,
        id: u64,
    ) -> Result<Option<Bytes>, LayerError> {
        let objects = &self.context.objects;
        let name = format!("{}{folder}/{id}", self.context.prefix);
        if let Some(known) = objects.known(&name) {
            return Ok(known.into());
        }
        let _held = objects.lock(&name).await;
        if let Some(known) = objects.known(&name) {
            return Ok(known.into());
        }
        let bytes = self.encoded_skeleton(skeletons, id).await?;
        let response = objects.put(name, bytes, "a skeleton").await?;
        Ok(response.into())
    }

    async fn encoded_skeleton(
        &self,
        skeletons: &LiveSkeletons,
        id: u64,
    ) -> Result<Option<Vec<u8>>, LayerError> {
        let layer = &skeletons.layer;
        let cost = EncodingCost::of_skeleton(layer);
        let plan = self.plan(skeletons.segments, id, &skeletons.levels, &cost);
        let Some(plan) = plan.await? else {
            return Ok(None);
        };
        let _turn = self.context.objects.turn(plan.bytes).await;
        encoded_skeleton(layer, &self.dataset, &plan.read, id, self.has_objects).await
    }

    /// Returns the fragments of an object, `<id>`, or its manifest, `<id>.index`.
    async fn mesh(&self, file: &str) -> Result<Option<Bytes>, LayerError> {
        let id = decimal(file.strip_suffix(".index").unwrap_or(file));
        let (Some(levels), Some(id)) = (&self.meshes, id) else {
            return Ok(None);
        };
        let objects = &self.context.objects;
        let data_name = format!("{}meshes/{id}", self.context.prefix);
        let index_name = format!("{data_name}.index");
        let name = format!("{}meshes/{file}", self.context.prefix);
        if let Some(known) = objects.known(&name) {
            return Ok(known.into());
        }
        let _held = objects.lock(&data_name).await;
        if let Some(known) = objects.known(&name) {
            return Ok(known.into());
        }
        let possible: Vec<LevelId> = [LevelId::FULL]
            .into_iter()
            .chain(levels.coarser().iter().copied())
            .collect();
        let plan = self.plan(SegmentKind::Objects, id, &possible, &EncodingCost::MESH);
        let (index, data) = match plan.await? {
            None => (None, None),
            Some(plan) => {
                let _turn = objects.turn(plan.bytes).await;
                let mut reads = vec![plan.read];
                for level in possible.iter().filter(|level| **level > plan.level) {
                    if let Some(query) = self.query_of(SegmentKind::Objects, id, *level) {
                        reads.extend(self.read_of(query, id, *level).await?);
                    }
                }
                let request = MeshRequest { id, reads };
                encoded_mesh(levels, &self.dataset, request)
                    .await?
                    .map(|mesh| (mesh.manifest, mesh.data))
                    .unzip()
            }
        };
        let index = objects.put(index_name, index, MESH).await?;
        let data = objects.put(data_name.clone(), data, MESH).await?;
        Ok(if name == data_name { data } else { index }.into())
    }

    /// Returns the query for a segment; `None` if no segment has this id.
    fn query_of(&self, segments: SegmentKind, id: u64, level: LevelId) -> Option<zvf::Query> {
        let query = zvf::Query::new().level(LevelChoice::Number(level));
        match (segments, self.has_objects) {
            (SegmentKind::Groups, _) => Some(query.groups([id])),
            (SegmentKind::Objects, true) => Some(query.objects([i64::try_from(id).ok()?])),
            (SegmentKind::Objects, false) => (id == ONLY).then_some(query),
        }
    }

    async fn count(&self, query: &zvf::Query) -> Result<u64, LayerError> {
        match self.dataset.count(query).await {
            Ok(counts) => Ok(counts.vertices),
            Err(error) if error.is_not_found() => Ok(0),
            Err(error) => Err(error.into()),
        }
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
        let sizes = self.sizes(level).await?;
        Ok(sizes.and_then(|sizes| {
            let size = sizes.of(id)?;
            Some(match sizes.has_one_object() {
                true => {
                    let object = self.has_objects.then(|| i64::try_from(id).ok()).flatten();
                    let query = zvf::Query::new().level(LevelChoice::Number(level));
                    SegmentRead::Streamed {
                        query,
                        object,
                        size,
                    }
                }
                false => SegmentRead::Selected { query, size },
            })
        }))
    }

    /// Returns the way to encode a segment on the finest level on which it is not too large; `None` if
    /// no segment has this id or vertices.
    async fn plan(
        &self,
        segments: SegmentKind,
        id: u64,
        levels: &[LevelId],
        cost: &EncodingCost,
    ) -> Result<Option<SegmentPlan>, LayerError> {
        let most = self.context.objects.most_encoding();
        let mut too_large = None;
        for (level, coarser) in levels.iter().zip(1..) {
            let Some(query) = self.query_of(segments, id, *level) else {
                return Ok(None);
            };
            let read = match cost.is_counted(segments == SegmentKind::Groups) {
                true => Some(SegmentRead::Selected {
                    size: ObjectSize {
                        vertices: self.count(&query).await?,
                        links: 0,
                    },
                    query,
                })
                .filter(|read| read.size().vertices > 0),
                false => self.read_of(query, id, *level).await?,
            };
            let Some(read) = read else {
                match too_large {
                    None => return Ok(None),
                    Some(_) => continue,
                }
            };
            let mut bytes = cost.of(&read);
            if cost.has_all_levels {
                for level in levels.iter().skip(coarser) {
                    let sizes = self.sizes(*level).await?;
                    let size = sizes.and_then(|sizes| sizes.of(id));
                    bytes = bytes.saturating_add(cost.of_further(size.unwrap_or_default()));
                }
            }
            if bytes <= most {
                return Ok(Some(SegmentPlan {
                    read,
                    level: *level,
                    bytes,
                }));
            }
            too_large.get_or_insert(LayerError::TooManyVertices {
                vertices: read.size().vertices,
                bytes,
                most,
            });
        }
        too_large.map_or(Ok(None), Err)
    }
}

const MESH: &str = "an encoded mesh";

/// Layers that were planned so far.
#[derive(Default)]
struct Made {
    /// Bytes of the coarse cells of annotations that are kept.
    coarse_cells: usize,
    layers: Vec<Layer>,
    documents: HashMap<String, Bytes>,
    annotations: Option<LiveAnnotations>,
    skeletons: HashMap<String, LiveSkeletons>,
    meshes: Option<MeshLevels>,
}

impl Made {
    async fn add(
        &mut self,
        kind: LayerKind,
        reading: &Reading<'_>,
        survey: &StoreSurvey,
        notes: &mut Vec<String>,
    ) -> Result<(), LayerError> {
        let folder = kind.folder();
        let objects = u64::try_from(survey.segments.ids.len()).unwrap_or(u64::MAX);
        let layer = match kind {
            LayerKind::Annotations if !survey.has_annotations(notes) => return Ok(()),
            LayerKind::Annotations => {
                let plan = AnnotationPlan::new(reading, survey, IdScheme::Stored, notes).await?;
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
                let usable = usable_levels(reading.dataset, survey.has_objects).await?;
                let levels: Vec<LevelId> =
                    [LevelId::FULL].into_iter().chain(usable.chosen).collect();
                self.skeletons(reading, survey, levels, notes)?;
                for (reading, survey) in coarser(reading, survey, notes).await? {
                    self.skeletons(&reading, &survey, vec![reading.level], notes)?;
                }
                return Ok(());
            }
            LayerKind::Meshes => {
                let info = mesh_info(reading, survey)?;
                self.meshes = Some(MeshLevels::new(reading.dataset, survey, notes).await?);
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
                self.groups(reading, survey).await?
            }
            LayerKind::Volume => return Ok(()),
        };
        self.layers.push(layer);
        Ok(())
    }

    /// Adds the groups: skeletons of their paths, or their properties alone.
    async fn groups(
        &mut self,
        reading: &Reading<'_>,
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
            let usable = usable_levels(reading.dataset, true).await?;
            let skeletons = LiveSkeletons {
                segments: SegmentKind::Groups,
                levels: [LevelId::FULL].into_iter().chain(usable.chosen).collect(),
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
        reading: &Reading<'_>,
        survey: &StoreSurvey,
        levels: Vec<LevelId>,
        notes: &mut Vec<String>,
    ) -> Result<(), LayerError> {
        let level = reading.level;
        let layer = SkeletonLayer::new(reading, survey, notes)?;
        let folder = LayerKind::Skeletons.folder_of(level);
        self.document(format!("{folder}/info"), layer.info.to_json());
        self.properties(&folder, survey);
        let objects = u64::try_from(survey.segments.ids.len()).unwrap_or(u64::MAX);
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
                levels,
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
