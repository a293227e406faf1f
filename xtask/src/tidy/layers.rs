//! The layers of the architecture: the dependencies that each crate may have.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::metadata;

/// A crate of the workspace, the other crates that it may use, and the external packages. Lists are
/// names, separated by spaces.
type Rule = (&'static str, &'static str, External);

/// The external packages that a crate may use. A name stands for its whole family: `arrow` includes
/// `arrow-array`.
enum External {
    /// Only these.
    Only(&'static str),
    /// All except the first list; the second list only behind a feature.
    Without(&'static str, &'static str),
}

const LAYERS_0_1: &str = "zvf-format zvf-model";
const LAYERS_0_2: &str =
    "zvf-catalog zvf-format zvf-model zvf-query zvf-validate zvf-build zvf-store";
/// Within layer 3, writers are over open datasets, levels and migrations over writers, and the façade
/// over all.
const WRITE: &str = "zvf-catalog zvf-dataset zvf-format zvf-model zvf-query zvf-build zvf-store";
const DRIVER: &str =
    "zvf-catalog zvf-dataset zvf-format zvf-model zvf-query zvf-build zvf-store zvf-write";
const FACADE: &str = "zvf-catalog zvf-dataset zvf-format zvf-migrate zvf-model zvf-pyramid zvf-query \
    zvf-validate zvf-build zvf-store zvf-write";
/// Layer 4: programs over the façade, which use what it does not re-export directly.
const ABOVE_FACADE: &str =
    "zvf zvf-catalog zvf-format zvf-model zvf-query zvf-validate zvf-build zvf-store";
/// Tables of Arrow and arrays of NumPy are among the tables.
const TABLES: &str = "zvf zvf-arrow zvf-dense zvf-format zvf-model";
/// Files of Neuroglancer are among the file formats, and folders of Zarr.
const FILES: &str = "zvf zvf-arrow zvf-codecs zvf-format zvf-model zvf-precomputed zvf-tables";
/// Benchmarks use the façade, and the kernels of the layers below.
const BENCH: &str = "zvf zvf-codecs zvf-dense zvf-format zvf-model zvf-query zvf-validate \
    zvf-build zvf-store";
/// The server shows dense arrays beside stores.
const SERVE: &str =
    "zvf zvf-catalog zvf-dense zvf-format zvf-model zvf-precomputed zvf-query zvf-store";
/// The Python package offers the crates beside the façade as well.
const PYTHON: &str = "zvf-catalog zvf-format zvf-model zvf-query zvf-validate zvf-build \
    zvf-store zvf zvf-arrow zvf-dense zvf-files zvf-render zvf-serve zvf-cli";
const LAYERS_0_4: &str = "zvf-catalog zvf-format zvf-model zvf-query zvf-validate zvf-build \
    zvf-store zvf zvf-arrow zvf-dense zvf-precomputed zvf-render zvf-files zvf-serve";

/// Plans and models perform no I/O and name no runtime.
const PURE: External = External::Without(
    "tokio object_store zarrs arrow parquet icechunk reqwest anyhow miette",
    "",
);
/// Only `zvf-store` names the libraries below it.
const ABOVE_STORE: External =
    External::Without("object_store zarrs icechunk anyhow miette", "arrow");
const PROGRAM: External = External::Without("object_store zarrs icechunk", "");
const LIBRARY: External = External::Without("anyhow miette", "");
const ANYTHING: External = External::Without("", "");
const PRECOMPUTED: External = External::Only("draco-core flate2 serde_core serde_json thiserror");

const RULES: &[Rule] = &[
    ("zvf-format", "", External::Only("zerocopy thiserror half")),
    ("zvf-model", "zvf-format", PURE),
    ("zvf-pages", "", External::Only("libc")),
    ("zvf-catalog", "zvf-format zvf-model zvf-pages", PURE),
    (
        "zvf-query",
        "zvf-catalog zvf-format zvf-model zvf-pages",
        PURE,
    ),
    ("zvf-validate", LAYERS_0_1, PURE),
    ("zvf-build", LAYERS_0_1, PURE),
    ("zvf-codecs", LAYERS_0_1, PURE),
    ("zvf-store", "zvf-format zvf-model zvf-codecs", LIBRARY),
    ("zvf-dataset", LAYERS_0_2, ABOVE_STORE),
    ("zvf-write", WRITE, ABOVE_STORE),
    ("zvf-pyramid", DRIVER, ABOVE_STORE),
    ("zvf-migrate", DRIVER, ABOVE_STORE),
    ("zvf", FACADE, ABOVE_STORE),
    (
        "zvf-dense",
        "zvf-format zvf-model zvf-codecs zvf-pages zvf-store",
        LIBRARY,
    ),
    ("zvf-precomputed", "", PRECOMPUTED),
    ("zvf-arrow", ABOVE_FACADE, LIBRARY),
    ("zvf-render", ABOVE_FACADE, LIBRARY),
    ("zvf-tables", TABLES, LIBRARY),
    ("zvf-files", FILES, LIBRARY),
    ("zvf-python", PYTHON, LIBRARY),
    ("zvf-serve", SERVE, PROGRAM),
    ("zvf-cli", LAYERS_0_4, PROGRAM),
    (TESTKIT, LAYERS_0_2, ANYTHING),
    ("zvf-bench", BENCH, ANYTHING),
    ("xtask", "", ANYTHING),
];

/// Every crate may use it as a dev-dependency.
const TESTKIT: &str = "zvf-testkit";

/// Further dependencies that only tests have. Rules of validation are tested on the cells of whole
/// stores, which `zvf-store` decodes. Examples in the documentation of what the façade re-exports use
/// its names, as programs do.
const TEST_ONLY: &[(&str, &str)] = &[
    ("zvf-validate", "zvf-store"),
    ("zvf-dataset", "zvf"),
    ("zvf-write", "zvf"),
    ("zvf-pyramid", "zvf"),
    ("zvf-migrate", "zvf"),
];

pub(crate) fn findings() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for package in metadata::members()? {
        let name = package["name"].as_str().context("a package without name")?;
        let edges = package["dependencies"].as_array();
        for edge in edges.context("a package without dependencies")? {
            findings.extend(edge_finding(name, &Edge::read(edge)?));
        }
        if rule(name).is_none() {
            findings.push(format!("{name} is not in the table of layers.rs"));
        }
    }
    Ok(findings)
}

/// A dependency in a manifest.
struct Edge<'a> {
    to: &'a str,
    ours: bool,
    dev: bool,
    optional: bool,
}

impl<'a> Edge<'a> {
    fn read(edge: &'a Value) -> Result<Self> {
        Ok(Self {
            to: edge["name"].as_str().context("a nameless dependency")?,
            ours: edge["path"].is_string(),
            dev: edge["kind"] == "dev",
            optional: edge["optional"] == true,
        })
    }
}

fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|(of, ..)| *of == name)
}

fn contains(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|listed| listed == name)
}

fn edge_finding(from: &str, edge: &Edge<'_>) -> Option<String> {
    let (_, uses, external) = rule(from)?;
    let to = edge.to;
    if edge.ours {
        let is_test_only = to == TESTKIT || TEST_ONLY.contains(&(from, to));
        let allowed = contains(uses, to) || edge.dev && is_test_only;
        return (!allowed).then(|| format!("{from} may not use {to}: it is not in a layer below"));
    }
    if edge.dev {
        return None;
    }
    match external {
        External::Only(names) if !contains(names, to) => {
            Some(format!("{from} may not use {to}, only {names}"))
        }
        External::Without(never, _) if any_family(never, to) => {
            Some(format!("{from} may not use {to}"))
        }
        External::Without(_, behind) if any_family(behind, to) && !edge.optional => {
            Some(format!("{from} may use {to} behind a feature only"))
        }
        External::Only(_) | External::Without(..) => None,
    }
}

fn any_family(families: &str, name: &str) -> bool {
    families.split_whitespace().any(|family| {
        let rest = name.strip_prefix(family);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(to: &str) -> Edge<'_> {
        Edge {
            to,
            ours: to.starts_with("zvf"),
            dev: false,
            optional: false,
        }
    }

    #[track_caller]
    fn check(from: &str, edge: &Edge<'_>, allowed: bool) {
        assert_eq!(edge_finding(from, edge).is_none(), allowed);
    }

    #[test]
    fn edges_go_down_only() {
        check("zvf-query", &edge("zvf-model"), true);
        check("zvf-query", &edge("zvf-catalog"), true);
        check("zvf-catalog", &edge("zvf-query"), false);
        check("zvf-query", &edge("zvf-store"), false);
        check("zvf-model", &edge("zvf"), false);
        check("zvf-format", &edge("zvf-model"), false);
        check("zvf", &edge("zvf-store"), true);
        check("zvf-files", &edge("zvf-tables"), true);
        check("zvf-tables", &edge("zvf-files"), false);
        check("zvf-files", &edge("zvf-python"), false);
        check("zvf-cli", &edge("zvf-files"), true);
    }

    #[test]
    fn every_crate_tests_with_the_testkit_and_none_ships_it() {
        let dev = Edge {
            dev: true,
            ..edge("zvf-testkit")
        };
        for (name, ..) in RULES {
            check(name, &dev, true);
            check(name, &edge("zvf-testkit"), false);
        }
        let dev = Edge {
            dev: true,
            ..edge("zvf-store")
        };
        check("zvf-query", &dev, false);
        check("zvf-validate", &dev, true);
        check("zvf-validate", &edge("zvf-store"), false);
    }

    #[test]
    fn packages_from_elsewhere_are_limited_by_layer() {
        check("zvf-format", &edge("zerocopy"), true);
        check("zvf-format", &edge("serde"), false);
        check("zvf-model", &edge("serde_json"), true);
        for io in ["tokio", "object_store", "zarrs_storage", "arrow-array"] {
            check("zvf-model", &edge(io), false);
        }
        check("zvf-store", &edge("zarrs"), true);
        check("zvf", &edge("zarrs"), false);
        check("zvf", &edge("arrow-array"), false);
        let optional = Edge {
            optional: true,
            ..edge("arrow-array")
        };
        check("zvf", &optional, true);
        check("zvf-model", &edge("arrowhead"), true);
    }

    #[test]
    fn rules_name_only_crates_of_the_table_and_have_no_cycle() {
        for (name, uses, _) in RULES {
            for used in uses.split_whitespace() {
                let (_, below, _) = rule(used).unwrap();
                assert!(!contains(below, name), "{name} ↔ {used}");
            }
        }
    }
}
