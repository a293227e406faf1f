//! The parts of `deny.toml` that tidy checks, and the packages they apply to.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{metadata, workspace};

/// The contents of `deny.toml`.
pub(crate) struct Policy {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<Entry>,
    pub(crate) skip: Vec<Entry>,
}

/// An entry for a package.
pub(crate) struct Entry {
    pub(crate) spec: Spec,
    pub(crate) reason: String,
    /// Packages that may use it nevertheless.
    pub(crate) wrappers: Vec<String>,
}

impl Policy {
    pub(crate) fn read() -> Result<Self> {
        let path = workspace::root().join("deny.toml");
        let text = std::fs::read_to_string(path).context("cannot read deny.toml")?;
        Self::parse(&text).context("deny.toml")
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = toml::from_str(text)?;
        let at = |section: &str, key: &str| table.get(section).and_then(|t| t.get(key));
        Ok(Self {
            allow: texts(at("licenses", "allow").context("`licenses.allow` is missing")?),
            deny: entries(at("bans", "deny"))?,
            skip: entries(at("bans", "skip"))?,
        })
    }
}

fn texts(list: &toml::Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = list.iter().filter_map(toml::Value::as_str);
    texts.map(str::to_owned).collect()
}

fn entries(list: Option<&toml::Value>) -> Result<Vec<Entry>> {
    let list = list.and_then(toml::Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let entry = |entry: &toml::Value| {
        let text = |key: &str| entry.get(key).and_then(toml::Value::as_str);
        let spec = text("crate").context("an entry has no `crate`")?;
        let reason = text("reason").with_context(|| format!("{spec} has no reason"))?;
        Ok(Entry {
            spec: Spec::parse(spec),
            reason: reason.to_owned(),
            wrappers: entry.get("wrappers").map(texts).unwrap_or_default(),
        })
    };
    list.iter().map(entry).collect()
}

/// A specification `name` or `name@version`, where `1` stands for every 1.x.
pub(crate) struct Spec {
    pub(crate) name: String,
    version: Option<String>,
}

impl Spec {
    fn parse(text: &str) -> Self {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (text, None),
        };
        Self {
            name: name.to_owned(),
            version,
        }
    }

    pub(crate) fn matches(&self, name: &str, version: &str) -> bool {
        let wanted = self.version.as_deref().unwrap_or_default();
        let rest = version.strip_prefix(wanted);
        let ends = |rest: &str| rest.is_empty() || wanted.is_empty() || rest.starts_with('.');
        self.name == name && rest.is_some_and(ends)
    }
}

/// A package in the dependency graph.
pub(crate) struct Package<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    pub(crate) licence: Option<&'a str>,
}

/// Lists every package in the dependency graph: normal, build and dev, on every platform.
pub(crate) fn packages() -> Result<Vec<Package<'static>>> {
    let packages = metadata::read()?["packages"].as_array();
    let read = |package: &'static Value| {
        let text = |key: &str| package[key].as_str().context("a package is incomplete");
        Ok(Package {
            id: text("id")?,
            name: text("name")?,
            version: text("version")?,
            licence: package["license"].as_str(),
        })
    };
    let packages = packages.context("cargo metadata has no packages")?;
    packages.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_stands_for_a_line_of_versions() {
        let spec = Spec::parse("syn@2");
        assert!(spec.matches("syn", "2.0.119") && spec.matches("syn", "2"));
        assert!(!spec.matches("syn", "20.1.0") && !spec.matches("synstructure", "2.0.0"));
        assert!(Spec::parse("syn").matches("syn", "3.0.9"));
        assert!(!Spec::parse("object_store@0.13").matches("object_store", "0.14.2"));
    }

    #[test]
    fn an_entry_needs_a_reason() {
        let text = "[licenses]\nallow = [\"MIT\"]\n[bans]\nskip = [{ crate = \"syn@2\" }]";
        assert!(Policy::parse(text).is_err());
        let text = text.replace(" }", ", reason = \"old\" }");
        let policy = Policy::parse(&text).unwrap();
        assert_eq!(policy.allow, ["MIT"]);
        assert_eq!(policy.skip[0].reason, "old");
    }
}
