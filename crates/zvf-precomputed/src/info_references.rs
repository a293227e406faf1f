//! Members of `info` documents that several formats have.

use serde_json::{Map, Value};

use crate::ShardingSpec;

/// Adds the folder of the properties of segments and the sharding, as far as there are any.
pub(crate) fn add_references(
    info: &mut Map<String, Value>,
    segment_properties: Option<&str>,
    sharding: Option<&ShardingSpec>,
) {
    if let Some(folder) = segment_properties {
        info.insert("segment_properties".to_owned(), folder.into());
    }
    if let Some(sharding) = sharding {
        info.insert("sharding".to_owned(), sharding.to_json());
    }
}
