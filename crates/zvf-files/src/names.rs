//! Names of attributes: identifiers in a store, any text in a file.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use zvf::Column;

/// Names given to attributes. Names that differ in case only count as equal, because they would
/// share a folder on some file systems.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttributeNames {
    /// In lower case.
    taken: HashSet<String>,
    /// For each name in lower case that was not free, the next number to try.
    numbers: HashMap<String, u32>,
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
        if self.taken.contains(&name.to_ascii_lowercase()) {
            let number = self.numbers.entry(name.to_ascii_lowercase()).or_insert(2);
            let base = name;
            loop {
                name = format!("{base}_{number}");
                *number = number.saturating_add(1);
                if !self.taken.contains(&name.to_ascii_lowercase()) {
                    break;
                }
            }
        }
        self.taken.insert(name.to_ascii_lowercase());
        if name != original {
            self.renamed.insert(name.clone(), json!(original));
        }
        name
    }

    /// Adds the original names of renamed attributes to a header.
    pub(crate) fn record(&self, header: &mut Map<String, Value>, key: &str) {
        if !self.renamed.is_empty() {
            header.insert(key.to_owned(), self.renamed.clone().into());
        }
    }
}

/// Names columns by identifiers, and adds the original names of renamed ones to a header.
pub(crate) fn rename(columns: &mut [Column], header: &mut Map<String, Value>, key: &str) {
    let mut names = AttributeNames::default();
    for column in columns {
        column.name = names.add(&column.name);
    }
    names.record(header, key);
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
        let given = ["fa", "mean fa", "FA", "2d", "", "mean_fa"].map(|name| names.add(name));
        assert_eq!(given, ["fa", "mean_fa", "FA_2", "_2d", "_", "mean_fa_2"]);
        let mut header = Map::new();
        names.record(&mut header, "names");
        assert_eq!(original(header.get("names"), "mean_fa"), "mean fa");
        assert_eq!(original(header.get("names"), "fa"), "fa");
    }

    /// Regression test: the time was cubic.
    #[test]
    fn many_equal_names_are_numbered() {
        let mut names = AttributeNames::default();
        let last = (0..100_000).map(|_| names.add("é")).last().unwrap();
        assert_eq!(last, "__100000");
    }
}
