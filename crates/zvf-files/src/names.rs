//! Names of attributes of files, which may repeat.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use zvf::Column;
use zvf_model::attribute_name;

/// The longest number that is added to a repeated name.
const NUMBER: &str = "_4294967295";

/// Distinct names given to attributes. Names that differ in case only count as equal, because they
/// would share a folder on some file systems.
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
    /// Returns the name of the attribute for a name of a file: the same, unless it is empty, too long, or
    /// that of another attribute.
    pub(crate) fn add(&mut self, original: &str) -> String {
        let mut name = match original {
            "" => "_".to_owned(),
            _ => original.to_owned(),
        };
        while attribute_name::problem(&format!("{name}{NUMBER}")).is_some() && name.pop().is_some()
        {
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

/// Gives columns distinct names, and adds the original names of renamed ones to a header.
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
    fn names_become_distinct() {
        let mut names = AttributeNames::default();
        let given = ["fa", "mean fa", "FA", "2d", "", "fa"].map(|name| names.add(name));
        assert_eq!(given, ["fa", "mean fa", "FA_2", "2d", "_", "fa_3"]);
        let mut header = Map::new();
        names.record(&mut header, "names");
        assert_eq!(original(header.get("names"), "fa_3"), "fa");
        assert_eq!(original(header.get("names"), "mean fa"), "mean fa");
        let long = names.add(&"é".repeat(1000));
        assert_eq!(attribute_name::problem(&long), None);
    }

    /// Regression test: the time was cubic.
    #[test]
    fn many_equal_names_are_numbered() {
        let mut names = AttributeNames::default();
        let last = (0..100_000).map(|_| names.add("é")).last().unwrap();
        assert_eq!(last, "é_100000");
    }
}
