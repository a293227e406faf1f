//! Public items that the documentation hides have a reason.

use std::collections::BTreeMap;

use anyhow::Result;

use super::files;

/// The attribute, in two parts so that this file has none.
const ATTRIBUTE: &str = concat!("#[doc(", "hidden)]");

const DRIVER: &str = "the driver in `zvf` calls it; `zvf` exports the type for its other methods";
const MACRO: &str = "macros of other crates are exported, or not at all";
const TESTS: &str = "tests shrink a limit or slow down a store";

/// Files or folders with hidden items, how many they have, and why.
const HIDDEN: &[(&str, usize, &str)] = &[
    ("crates/zvf-build/src/coarsen/", 19, DRIVER),
    ("crates/zvf-model/src/setters.rs", 1, MACRO),
    ("crates/zvf-serve/src/export.rs", 1, TESTS),
    (
        "crates/zvf-store/src/backend/simulated_network.rs",
        1,
        TESTS,
    ),
    ("crates/zvf-store/src/lib.rs", 1, TESTS),
    ("crates/zvf-store/src/store.rs", 7, DRIVER),
    ("crates/zvf-store/src/store/options.rs", 2, TESTS),
    ("crates/zvf-store/src/store/sealed.rs", 7, DRIVER),
    ("crates/zvf-store/src/transaction/", 9, DRIVER),
];

pub(crate) fn findings() -> Result<Vec<String>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut findings = Vec::new();
    for (file, text) in files::sources(&["crates"])? {
        let count = text.matches(ATTRIBUTE).count();
        let file = file.display().to_string();
        let allowed = HIDDEN.iter().find(|(place, ..)| file.starts_with(place));
        match allowed {
            Some((place, ..)) => *counts.entry(place).or_default() += count,
            None if count > 0 => {
                findings.push(format!("{file} hides {count} items without a reason"));
            }
            None => {}
        }
    }
    for (place, count, reason) in HIDDEN {
        let found = counts.get(place).copied().unwrap_or_default();
        if found != *count {
            findings.push(format!(
                "{place} hides {found} items, not {count}: {reason}"
            ));
        }
    }
    Ok(findings)
}
