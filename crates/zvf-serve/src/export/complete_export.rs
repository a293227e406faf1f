//! A planned export whose tasks are all done.

use std::collections::BTreeMap;

use bytes::Bytes;
use zvf::{Dataset, TaskPlanError};
use zvf_model::key::Key;

use super::{
    ExportError, ExportReport, annotations,
    output::ExportJob,
    planned_export::PlannedExport,
    planned_layer::{ShareResult, with_limits},
};
use crate::{layers::space::ViewerSpace, view::StoreView};

/// The results of all tasks.
pub(super) struct CompleteExport {
    planned: PlannedExport,
    /// Results of each layer.
    results: Vec<Vec<ShareResult>>,
    /// Sizes of all files.
    pub(super) files: BTreeMap<String, u64>,
}

impl CompleteExport {
    /// Reads the results, and checks that no two tasks have written one file.
    pub(super) async fn read(planned: PlannedExport, job: &ExportJob) -> Result<Self, ExportError> {
        let mut files = planned.files.clone();
        let mut results: Vec<Vec<ShareResult>> = Vec::new();
        results.resize_with(planned.layers.len(), Vec::new);
        for share in planned.shares() {
            let name = format!("results/{}", share.name);
            let mut result = job.get_parsed(&name, ShareResult::from_json).await?;
            for (file, size) in core::mem::take(&mut result.files) {
                if files.insert(file.clone(), size).is_some() {
                    return Err(job.problem(TaskPlanError::Twice(file)));
                }
            }
            if let Some(results) = results.get_mut(share.number) {
                results.push(result);
            }
        }
        Ok(Self {
            planned,
            results,
            files,
        })
    }

    /// Checks that the target has these files, and no others.
    pub(super) async fn check(&self, job: &ExportJob) -> Result<(), ExportError> {
        let found = job.files().await?;
        for (file, size) in &self.files {
            if found.get(file) != Some(size) {
                return Err(job.problem(TaskPlanError::File(file.clone())));
            }
        }
        match found
            .into_keys()
            .find(|file| !self.files.contains_key(file))
        {
            Some(file) => Err(job.problem(TaskPlanError::Foreign(file))),
            None => Ok(()),
        }
    }

    /// Returns the documents to publish.
    pub(super) async fn documents(
        &self,
        job: &ExportJob,
    ) -> Result<Vec<(Key, Bytes)>, ExportError> {
        let mut documents = job.documents().await?;
        for (layer, results) in self.planned.layers.iter().zip(&self.results) {
            let path = annotations::document();
            let found = documents.iter_mut().find(|(key, _)| key.as_str() == path);
            if let Some((_, document)) = found.filter(|_| layer.needs_limits()) {
                let limited = with_limits(document, results);
                *document = limited.ok_or_else(|| job.damaged_document(&path))?.into();
            }
        }
        Ok(documents)
    }

    /// Returns the summary of the export with its documents.
    pub(super) fn report(&self, dataset: &Dataset, documents: &[(Key, Bytes)]) -> ExportReport {
        let (mut layers, mut notes) = (Vec::new(), Vec::new());
        for (layer, results) in self.planned.layers.iter().zip(&self.results) {
            let finished = layer.finished(results);
            layers.push(finished.layer);
            notes.extend(finished.notes);
        }
        notes.extend(self.planned.notes.iter().cloned());
        notes.dedup();
        let count = self.files.len().saturating_add(documents.len());
        let own = documents
            .iter()
            .filter_map(|(_, bytes)| u64::try_from(bytes.len()).ok());
        let sizes = self.files.values().copied().chain(own);
        ExportReport {
            view: StoreView {
                layers,
                lower: self.planned.lower.clone(),
                upper: self.planned.upper.clone(),
                space: ViewerSpace::of(dataset),
            },
            files: u64::try_from(count).unwrap_or(u64::MAX),
            bytes: sizes.fold(0, u64::saturating_add),
            kept: 0,
            notes,
        }
    }
}
