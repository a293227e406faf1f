//! One type name means one thing in the workspace.

use std::collections::BTreeMap;

use anyhow::Result;

use super::modules;

const PLATFORMS: &str = "one definition for browsers, and one for all other platforms";
/// Names that several types may have, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("BoxFuture", PLATFORMS),
    (
        "Dataset",
        "`zvf::blocking` has the names of what it wraps, as other crates do",
    ),
    ("MaybeSend", PLATFORMS),
    ("MaybeSync", PLATFORMS),
    (
        "Sealed",
        "the conventional name of a supertrait that seals a trait",
    ),
];

pub(crate) fn findings() -> Result<Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for of in modules::crates()? {
        for module in of.modules.values() {
            for name in &module.types {
                let file = module.file.display().to_string();
                places.entry(name.clone()).or_default().push(file);
            }
        }
    }
    let mut findings = Vec::new();
    let allowed: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    for name in &allowed {
        if places.get(*name).is_none_or(|files| files.len() < 2) {
            findings.push(format!(
                "`{name}` is allowed twice but is defined once or never"
            ));
        }
    }
    for (name, files) in places {
        if files.len() > 1 && !allowed.contains(&name.as_str()) {
            findings.push(format!("`{name}` is defined in {}", files.join(", ")));
        }
    }
    Ok(findings)
}
