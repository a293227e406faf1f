//! Members of `info` documents.

use serde_json::Value;

/// The reason why a document is not the `info` of a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InfoError {
    /// The text is not JSON.
    #[error("the info document is not JSON")]
    Json(#[from] serde_json::Error),
    /// A member is missing or of another form.
    #[error("{path} of the info document is not {wanted}")]
    Field {
        /// Path of the member.
        path: String,
        /// The form that is needed.
        wanted: &'static str,
    },
}

/// An object of a document, with its path for errors.
#[derive(Clone, Debug)]
pub(crate) struct InfoNode<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> InfoNode<'a> {
    /// Checks the `@type` of a document.
    pub(crate) fn document(value: &'a Value, kind: &'static str) -> Result<Self, InfoError> {
        let node = Self {
            path: String::new(),
            value,
        };
        match value.get("@type").and_then(Value::as_str) {
            Some(found) if found == kind => Ok(node),
            _ => Err(node.fault("@type", kind)),
        }
    }

    /// Starts at a value below a document.
    pub(crate) fn below(value: &'a Value, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            value,
        }
    }

    pub(crate) fn fault(&self, key: &str, wanted: &'static str) -> InfoError {
        InfoError::Field {
            path: self.join(key),
            wanted,
        }
    }

    fn join(&self, key: &str) -> String {
        match (self.path.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{key}", self.path),
        }
    }

    /// Returns a member that is present and not null.
    pub(crate) fn get(&self, key: &str) -> Option<InfoNode<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Self {
            path: self.join(key),
            value,
        })
    }

    pub(crate) fn need(&self, key: &str, wanted: &'static str) -> Result<InfoNode<'a>, InfoError> {
        self.get(key).ok_or_else(|| self.fault(key, wanted))
    }

    pub(crate) fn items(&self) -> Result<Vec<InfoNode<'a>>, InfoError> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.fault("", "a list"))?
            .iter()
            .enumerate()
            .map(|(index, value)| InfoNode {
                path: format!("{}[{index}]", self.path),
                value,
            });
        Ok(items.collect())
    }

    pub(crate) fn text(&self) -> Result<&'a str, InfoError> {
        let text = self.value.as_str();
        text.ok_or_else(|| self.fault("", "a text"))
    }

    pub(crate) fn number(&self) -> Result<f64, InfoError> {
        let number = self.value.as_f64();
        number.ok_or_else(|| self.fault("", "a number"))
    }

    pub(crate) fn unsigned(&self) -> Result<u64, InfoError> {
        let number = self.value.as_u64();
        number.ok_or_else(|| self.fault("", "a number of 0 or more"))
    }

    /// Returns the text of an optional member.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<String>, InfoError> {
        let text = self.get(key).map(|node| node.text().map(str::to_owned));
        text.transpose()
    }

    pub(crate) fn numbers(&self) -> Result<Vec<f64>, InfoError> {
        self.items()?.iter().map(InfoNode::number).collect()
    }

    /// Reads 12 numbers, three rows of four.
    pub(crate) fn transform(&self) -> Result<[f64; 12], InfoError> {
        let numbers = self.numbers()?;
        let numbers = <[f64; 12]>::try_from(numbers);
        numbers.map_err(|_| self.fault("", "12 numbers, three rows of four"))
    }
}
