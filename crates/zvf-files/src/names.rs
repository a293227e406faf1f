//! Names of attributes: identifiers in a store, any text in a file.

use serde_json::{Map, Value, json};

/// Names given to attributes. Names that differ in case only count as equal, because they would
/// share a folder on some file systems.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttributeNames {
    taken: Vec<String>,
    /// Original name of each attribute that has another.
    renamed: Map<String, Value>,
}

impl AttributeNames {
    /// Returns the identifier for a name of a file.
    pub(crate) fn add(&mut self, original: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = original.chars().take(190).map(letter).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            name.insert(0, '_');
        }
        let base = name.clone();
        let mut number = 2_u32;
        while self
            .taken
            .iter()
            .any(|other| other.eq_ignore_ascii_case(&name))
        {
            name = format!("{base}_{number}");
            number = number.saturating_add(1);
        }
        self.taken.push(name.clone());
        if name != original {
            self.renamed.insert(name.clone(), json!(original));
        }
        name
    }

    /// Returns the original names of renamed attributes.
    pub(crate) fn renamed(&self) -> &Map<String, Value> {
        &self.renamed
    }
}

/// Returns the original name of an attribute, which is in `names` if it was renamed.
pub(crate) fn original<'a>(names: Option<&'a Value>, name: &'a str) -> &'a str {
    let names = names.and_then(Value::as_object);
    let original = names.and_then(|names| names.get(name));
    original.and_then(Value::as_str).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_distinct_identifiers() {
        let mut names = AttributeNames::default();
        let given = ["fa", "mean fa", "FA", "2d", "", "mean_fa"];
        let given = given.map(|name| names.add(name));
        assert_eq!(given, ["fa", "mean_fa", "FA_2", "_2d", "_", "mean_fa_2"]);
        let renamed = json!(names.renamed());
        assert_eq!(original(Some(&renamed), "mean_fa"), "mean fa");
        assert_eq!(original(Some(&renamed), "fa"), "fa");
    }
}
