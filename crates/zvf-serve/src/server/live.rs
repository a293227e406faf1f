//! The layers of one state of a store.

use std::collections::HashMap;

use bytes::Bytes;
use zvf::Dataset;

use super::{cells::LiveAnnotations, live_meshes::LiveMeshes};
use crate::{
    layers::{
        Layer, LayerError, LayerKind, Reading, Report,
        annotations::{AnnotationPlan, IdScheme},
        meshes::{MeshLevels, mesh_info},
        segments::{ONLY, PROPERTIES},
        shapes::{ObjectShape, shapes},
        skeletons::SkeletonLayer,
        space::ViewerSpace,
        survey::{self, StoreSurvey},
    },
    view::StoreView,
};

/// Vertices of an object that is drawn at once.
const MOST_VERTICES: u64 = 4 << 20;

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
    skeletons: Option<SkeletonLayer>,
    meshes: Option<LiveMeshes>,
    has_objects: bool,
}

impl LiveLayers {
    /// Reads a store once for its bounds and the ranges of its attributes, and once for the density
    /// of its positions.
    pub(super) async fn new(
        dataset: Dataset,
        coarse_cells: usize,
        report: &Report<'_>,
    ) -> Result<Self, LayerError> {
        let space = ViewerSpace::of(&dataset);
        let reading = Reading {
            dataset: &dataset,
            properties: None,
            space: &space,
            report,
            vertices: 0,
        };
        let mut notes = space.notes.clone();
        let survey = survey::survey(&reading, &mut notes).await?;
        let mut made = Made {
            coarse_cells,
            ..Made::default()
        };
        for kind in LayerKind::of(&dataset) {
            made.add(kind, &reading, &survey, &mut notes).await?;
        }
        notes.dedup();
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
        })
    }

    /// Computes what the first requests need.
    pub(super) async fn warm(&self) -> Result<(), LayerError> {
        match &self.annotations {
            Some(annotations) => annotations.warm(&self.dataset).await,
            None => Ok(()),
        }
    }

    /// Returns the object at a path; `None` if there is none.
    pub(super) async fn answer(&self, path: &[&str]) -> Result<Option<Bytes>, LayerError> {
        if let Some(document) = self.documents.get(&path.join("/")) {
            return Ok(Some(document.clone()));
        }
        match path {
            ["annotations", "info"] => match &self.annotations {
                Some(annotations) => annotations.info(&self.dataset).await.map(Some),
                None => Ok(None),
            },
            ["annotations", index, name] => self.annotation(index, name).await,
            ["skeletons", id] => match decimal(id) {
                Some(id) => self.skeleton(id).await,
                None => Ok(None),
            },
            ["meshes", name] => self.mesh(name).await,
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
            ("by_id", Some(id)) => annotations.by_id(dataset, id).await,
            ("related_object", Some(object)) if self.has_objects => {
                annotations.related(dataset, object).await
            }
            _ => Ok(None),
        }
    }

    async fn skeleton(&self, id: u64) -> Result<Option<Bytes>, LayerError> {
        let Some(layer) = &self.skeletons else {
            return Ok(None);
        };
        let Some(batch) = self.object(id).await? else {
            return Ok(None);
        };
        let skeleton = match layer.is_path {
            true => Some(layer.of_paths(&batch)?),
            false => self
                .shape(&batch, id)
                .and_then(|shape| layer.of_shape(&batch, &shape)),
        };
        let skeleton = skeleton.filter(|skeleton| !skeleton.positions.is_empty());
        let bytes = skeleton.map(|skeleton| skeleton.encode(&layer.info.vertex_attributes));
        Ok(bytes.transpose()?.map(Bytes::from))
    }

    /// Returns the fragments of an object, `<id>`, or its manifest, `<id>.index`.
    async fn mesh(&self, name: &str) -> Result<Option<Bytes>, LayerError> {
        let id = decimal(name.strip_suffix(".index").unwrap_or(name));
        let (Some(meshes), Some(id)) = (&self.meshes, id) else {
            return Ok(None);
        };
        if let Some(known) = meshes.known(name) {
            return Ok(known.into());
        }
        let _held = meshes.lock(id).await;
        if let Some(known) = meshes.known(name) {
            return Ok(known.into());
        }
        let query = self.query_within_limits(id).await?;
        meshes.encode(&self.dataset, id, query).await?;
        Ok(meshes.known(name).and_then(Into::into))
    }

    fn shape(&self, batch: &zvf::QueryResult, id: u64) -> Option<ObjectShape> {
        let mut dropped = 0;
        let mut shapes = shapes(batch, self.has_objects, &mut dropped).into_iter();
        shapes.find(|shape| shape.object == id)
    }

    /// Returns the query for an object; `None` if no object has this id.
    fn query_of(&self, id: u64) -> Option<zvf::Query> {
        let query = zvf::Query::new();
        match self.has_objects {
            true => Some(query.objects([i64::try_from(id).ok()?])),
            false => (id == ONLY).then_some(query),
        }
    }

    async fn count(&self, query: &zvf::Query) -> Result<u64, LayerError> {
        match self.dataset.count(query).await {
            Ok(counts) => Ok(counts.vertices),
            Err(error) if error.is_not_found() => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the query for an object; `None` if no object has this id or vertices.
    async fn query_within_limits(&self, id: u64) -> Result<Option<zvf::Query>, LayerError> {
        let Some(query) = self.query_of(id) else {
            return Ok(None);
        };
        let vertices = self.count(&query).await?;
        if vertices > MOST_VERTICES {
            let most = usize::try_from(MOST_VERTICES).unwrap_or(usize::MAX);
            return Err(LayerError::TooManyVertices(vertices, most));
        }
        Ok((vertices > 0).then_some(query))
    }

    /// Reads an object.
    async fn object(&self, id: u64) -> Result<Option<zvf::QueryResult>, LayerError> {
        match self.query_within_limits(id).await? {
            Some(query) => Ok(Some(self.dataset.query(&query).await?)),
            None => Ok(None),
        }
    }
}

/// Layers that were planned so far.
#[derive(Default)]
struct Made {
    /// Bytes of the coarse cells of annotations that are kept.
    coarse_cells: usize,
    layers: Vec<Layer>,
    documents: HashMap<String, Bytes>,
    annotations: Option<LiveAnnotations>,
    skeletons: Option<SkeletonLayer>,
    meshes: Option<LiveMeshes>,
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
        let shown = || match survey.has_objects {
            true => survey.segments.shown(),
            false => vec![ONLY],
        };
        let layer = match kind {
            LayerKind::Annotations => {
                let plan = AnnotationPlan::new(reading, survey, IdScheme::Stored, notes).await?;
                let layer = Layer {
                    kind,
                    items: plan.count,
                    shader: plan.shader.clone(),
                    shown: Vec::new(),
                    is_related: survey.has_objects,
                };
                let dimensions = &reading.space.dimensions;
                let annotations = LiveAnnotations::new(plan, dimensions, self.coarse_cells);
                self.annotations = Some(annotations);
                layer
            }
            LayerKind::Skeletons => {
                let skeletons = SkeletonLayer::new(reading, survey, notes)?;
                self.document(format!("{folder}/info"), skeletons.info.to_json());
                let layer = Layer {
                    kind,
                    items: objects.max(1),
                    shader: skeletons.shader.clone(),
                    shown: shown(),
                    is_related: false,
                };
                self.properties(folder, survey);
                self.skeletons = Some(skeletons);
                layer
            }
            LayerKind::Meshes => {
                let info = mesh_info(reading, survey)?;
                let levels = MeshLevels::new(reading.dataset, survey, notes).await?;
                self.meshes = Some(LiveMeshes::new(levels));
                self.properties(folder, survey);
                self.document(format!("{folder}/info"), info.to_json());
                Layer {
                    kind,
                    items: objects.max(1),
                    shader: None,
                    shown: shown(),
                    is_related: false,
                }
            }
            LayerKind::Segments => {
                let Some(json) = survey.segments.to_json() else {
                    return Ok(());
                };
                self.document(format!("{folder}/info"), json);
                Layer {
                    kind,
                    items: objects,
                    shader: None,
                    shown: Vec::new(),
                    is_related: false,
                }
            }
            LayerKind::Volume => return Ok(()),
        };
        self.layers.push(layer);
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
