//! Construction of footers within the limits of the format.

use serde_json::{Map, Value, json};
use zvf_format::tetration::{FooterTail, FooterVersion};

use super::Dataset;
use crate::tet::{
    TetError,
    footer::{CHECKSUMS, SpillRef},
};

/// Maximum length of the JSON in a footer.
const MAX_JSON: usize = 65_536;
/// Maximum length of spilled metadata.
const MAX_SPILL: usize = 16 << 20;
/// Maximum number of datasets with metadata.
const MAX_DATASETS: usize = 256;
const MAX_ATTRIBUTES: usize = 64;
/// Maximum length of a text; empty texts are invalid.
const MAX_TEXT: usize = 1024;
const MAX_HISTORY: usize = 4096;

fn fault(key: String, fault: &'static str) -> TetError {
    TetError::FooterValue { key, fault }
}

/// Checks that the metadata of the datasets is within the limits.
pub(super) fn check(datasets: &[Dataset]) -> Result<(), TetError> {
    let is_text = |text: &str| (1..=MAX_TEXT).contains(&text.len());
    let declared = |dataset: &&Dataset| {
        !dataset.spec.attributes.is_empty() || dataset.spec.dimension_names.is_some()
    };
    if datasets.iter().filter(declared).count() > MAX_DATASETS {
        return Err(fault("datasets".to_owned(), "more than 256 have metadata"));
    }
    for dataset in datasets {
        let spec = &dataset.spec;
        let place = |key: &str| format!("datasets.{}.attrs.{key}", spec.name);
        if spec.attributes.len() > MAX_ATTRIBUTES {
            return Err(fault(place(""), "more than 64 attributes"));
        }
        for (key, value) in &spec.attributes {
            let text = value.as_str().filter(|text| is_text(text) && is_text(key));
            text.ok_or_else(|| fault(place(key), "not a text of 1 to 1024 bytes"))?;
        }
        if let Some(names) = &spec.dimension_names {
            let place = || format!("datasets.{}.dim_names", spec.name);
            if names.len() != spec.shape.len() {
                return Err(fault(place(), "not one for each axis"));
            }
            if !names.iter().all(|name| is_text(name)) {
                return Err(fault(place(), "not a text of 1 to 1024 bytes"));
            }
        }
    }
    Ok(())
}

/// Merges the metadata of the datasets into existing metadata.
pub(super) fn metadata(datasets: &[Dataset], before: Map<String, Value>) -> Map<String, Value> {
    let mut metadata = before;
    let mut of_datasets = match metadata.remove("datasets") {
        Some(Value::Object(of_datasets)) => of_datasets,
        _ => Map::new(),
    };
    for dataset in datasets {
        let spec = &dataset.spec;
        let mut declared = Map::new();
        if !spec.attributes.is_empty() {
            declared.insert("attrs".to_owned(), Value::Object(spec.attributes.clone()));
        }
        if let Some(names) = &spec.dimension_names {
            declared.insert("dim_names".to_owned(), json!(names));
        }
        if !declared.is_empty() {
            of_datasets.insert(spec.name.clone(), Value::Object(declared));
        }
    }
    if !of_datasets.is_empty() {
        metadata.insert("datasets".to_owned(), Value::Object(of_datasets));
    }
    metadata
}

/// A footer of version 1, complete except for the location of spilled metadata.
pub(super) struct Footer {
    json: Map<String, Value>,
    /// Metadata that does not fit in the footer.
    pub(super) spilled: Option<Vec<u8>>,
}

impl Footer {
    /// Creates a footer; `None` if it would be empty.
    pub(super) fn new(
        history: Vec<Value>,
        metadata: Map<String, Value>,
        checksums: Option<SpillRef>,
    ) -> Result<Option<Self>, TetError> {
        if history.len() > MAX_HISTORY {
            return Err(fault("history".to_owned(), "more than 4096 rows"));
        }
        let mut json = Map::new();
        if !history.is_empty() {
            json.insert("history".to_owned(), Value::Array(history));
        }
        if let Some(spill) = checksums {
            json.insert(CHECKSUMS.to_owned(), reference(spill));
        }
        let mut spilled = None;
        if !metadata.is_empty() {
            json.insert("metadata".to_owned(), Value::Object(metadata));
            if text(&json)?.len() > MAX_JSON
                && let Some(Value::Object(metadata)) = json.remove("metadata")
            {
                spilled = Some(text(&metadata)?).filter(|bytes| bytes.len() <= MAX_SPILL);
                let key = || "metadata".to_owned();
                spilled
                    .as_ref()
                    .ok_or_else(|| fault(key(), "more than 16 MiB"))?;
            }
        }
        let is_said = !json.is_empty() || spilled.is_some();
        Ok(is_said.then_some(Self { json, spilled }))
    }

    /// Encodes the JSON and the tail, given the location of spilled metadata.
    pub(super) fn finish(mut self, spilled: Option<SpillRef>) -> Result<Vec<u8>, TetError> {
        if let Some(spill) = spilled {
            self.json
                .insert("metadata_ref".to_owned(), reference(spill));
        }
        let mut bytes = text(&self.json)?;
        if bytes.len() > MAX_JSON {
            return Err(fault("history".to_owned(), "more than 65536 bytes"));
        }
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let tail = FooterTail::new(FooterVersion::V1, len)?;
        bytes.extend(tail.encode());
        Ok(bytes)
    }
}

fn reference(spill: SpillRef) -> Value {
    json!({ "offset": spill.offset, "len": spill.len })
}

fn text(json: &Map<String, Value>) -> Result<Vec<u8>, TetError> {
    serde_json::to_vec(json).map_err(TetError::FooterJson)
}
