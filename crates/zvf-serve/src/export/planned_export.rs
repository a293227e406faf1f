//! The description of a planned export, which its tasks share.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use zvf::Dataset;
use zvf_model::json::member;

use super::{
    ExportError, ExportOptions, LayerReceiver, add_layers,
    output::{ExportJob, ExportOutput},
    planned_layer::{LayerPlanner, LayerShare, PlannedLayer},
};
use crate::layers::{LayerKind, Report};

/// The object of the job that describes the export.
const DESCRIPTION: &str = "plan.json";

/// The description of a planned export.
pub(super) struct PlannedExport {
    /// The state of the store, and the options.
    pub(super) source: Value,
    pub(super) layers: Vec<PlannedLayer>,
    /// Notes after the last layer.
    pub(super) notes: Vec<String>,
    /// Sizes of the files that the plan has written.
    pub(super) files: BTreeMap<String, u64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
}

/// A share of a layer.
pub(super) struct PlannedShare<'a> {
    /// Index of the layer.
    pub(super) number: usize,
    pub(super) layer: &'a PlannedLayer,
    pub(super) share: &'a LayerShare,
    /// The name of its result.
    pub(super) name: String,
}

impl PlannedExport {
    /// Plans the layers, and writes what they have in common.
    pub(super) async fn plan(
        dataset: &Dataset,
        job: &ExportJob,
        source: Value,
        kinds: Vec<LayerKind>,
        options: &ExportOptions,
        tasks: usize,
        report: &Report<'_>,
    ) -> Result<Self, ExportError> {
        let output = ExportOutput::reserved(job.address())?;
        let layers = Vec::new();
        let mut planner = LayerPlanner { job, tasks, layers };
        let mut receiver = LayerReceiver::Planned(&mut planner);
        let added = add_layers(dataset, kinds, options, &output, report, &mut receiver);
        let (survey, notes) = added.await?;
        let mut files = output.take_written()?;
        files.retain(|name, _| !ExportJob::is_own(name));
        for (key, bytes) in output.take_documents() {
            job.put_document(key.as_str(), bytes).await?;
        }
        Ok(Self {
            source,
            layers: planner.layers,
            notes,
            files,
            lower: survey.lower,
            upper: survey.upper,
        })
    }

    /// Writes the description.
    pub(super) async fn write(&self, job: &ExportJob) -> Result<(), ExportError> {
        let layers = self.layers.iter().map(PlannedLayer::to_json);
        let export = json!({
            "layers": layers.collect::<Value>(),
            "notes": self.notes,
            "files": self.files,
            "lower": self.lower,
            "upper": self.upper,
        });
        let description = json!({ "source": self.source, "export": export });
        job.put(DESCRIPTION, description.to_string().into()).await
    }

    /// Reads the description.
    pub(super) async fn read(job: &ExportJob) -> Result<Self, ExportError> {
        job.get_parsed(DESCRIPTION, Self::from_json).await
    }

    fn from_json(json: &Value) -> Option<Self> {
        let export = json.get("export")?;
        let layers = export.get("layers")?.as_array()?.iter();
        Some(Self {
            source: member(json, "source")?,
            layers: layers.map(PlannedLayer::from_json).collect::<Option<_>>()?,
            notes: member(export, "notes")?,
            files: member(export, "files")?,
            lower: member(export, "lower")?,
            upper: member(export, "upper")?,
        })
    }

    /// Returns the names of the attributes that are exported; all if `None`.
    pub(super) fn properties(&self) -> Option<Vec<String>> {
        member(&self.source, "properties")?
    }

    /// Returns the shares of all layers, in the order of the layers.
    pub(super) fn shares(&self) -> impl Iterator<Item = PlannedShare<'_>> {
        let layers = self.layers.iter().enumerate();
        layers.flat_map(|(number, layer)| {
            layer.shares().iter().map(move |share| PlannedShare {
                number,
                layer,
                share,
                name: format!("{number}-{}.json", share.task),
            })
        })
    }

    /// Returns the shares that are not done.
    pub(super) async fn missing(
        &self,
        job: &ExportJob,
    ) -> Result<Vec<PlannedShare<'_>>, ExportError> {
        let done = job.results().await?;
        let is_missing = |share: &PlannedShare<'_>| !done.contains(&share.name);
        Ok(self.shares().filter(is_missing).collect())
    }

    /// Returns the tasks that are not done, ascending.
    pub(super) async fn missing_tasks(&self, job: &ExportJob) -> Result<Vec<usize>, ExportError> {
        let missing = self.missing(job).await?;
        let tasks: BTreeSet<usize> = missing.iter().map(|missing| missing.share.task).collect();
        Ok(tasks.into_iter().collect())
    }
}
