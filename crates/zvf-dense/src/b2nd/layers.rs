//! Metalayers defined by users.

use zvf_format::b2nd::Metalayer;

/// A metalayer: a name and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    name: String,
    body: Vec<u8>,
}

impl Layer {
    pub(super) fn new(name: &str, body: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            body,
        }
    }

    pub(super) fn copied(layer: Metalayer<'_>) -> Self {
        Self::new(layer.name, layer.body.to_vec())
    }
}

pub(super) fn pairs(layers: &[Layer]) -> impl Iterator<Item = (&str, &[u8])> {
    layers
        .iter()
        .map(|layer| (layer.name.as_str(), layer.body.as_slice()))
}
