//! Modules of a crate import each other in one direction only.
//!
//! Modules are compared with their siblings: a folder stands for all that is in it, and a parent
//! and its children may use each other. A cycle is reported with one import for each of its steps.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::modules::{self, Crate, ModulePath};

/// From each sibling to those it imports, with an import as evidence.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

pub(crate) fn findings() -> Result<Vec<String>> {
    let crates = modules::crates()?;
    Ok(crates.iter().flat_map(in_crate).collect())
}

fn in_crate(of: &Crate) -> Vec<String> {
    let mut findings = Vec::new();
    for (folder, mut graph) in siblings(of) {
        // Each cycle once: its last import is taken out, and what is left is searched again.
        while let Some(cycle) = shortest_cycle(&graph) {
            let place: Vec<String> = [&of.name].into_iter().chain(&folder).cloned().collect();
            findings.push(format!("{}: {}", place.join("::"), shown(&graph, &cycle)));
            if let [first, .., last] = cycle.as_slice()
                && let Some(imports) = graph.get_mut(last)
            {
                imports.remove(first);
            }
        }
    }
    findings
}

/// Imports between the children of each folder.
fn siblings(of: &Crate) -> BTreeMap<ModulePath, Graph> {
    let mut folders: BTreeMap<ModulePath, Graph> = BTreeMap::new();
    // The root only declares and re-exports.
    for (from, module) in of.modules.iter().filter(|(path, _)| !path.is_empty()) {
        for name in &module.names {
            let to = of.owner(name);
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (Some(child), Some(other)) = (from.get(shared), to.get(shared)) else {
                continue;
            };
            let graph = folders.entry(from[..shared].to_vec()).or_default();
            let evidence = format!("{} uses {}", module.file.display(), name.join("::"));
            let imports = graph.entry(child.clone()).or_default();
            imports.entry(other.clone()).or_insert(evidence);
        }
    }
    folders
}

/// Finds a cycle with as few modules as any, by a breadth-first search from each module.
fn shortest_cycle(graph: &Graph) -> Option<Vec<String>> {
    let cycles = graph.keys().filter_map(|start| cycle_through(graph, start));
    cycles.min_by_key(Vec::len)
}

fn cycle_through(graph: &Graph, start: &String) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut paths = vec![vec![start.clone()]];
    while !paths.is_empty() {
        let mut longer = Vec::new();
        for path in paths {
            let imports = path.last().and_then(|last| graph.get(last));
            for next in imports.into_iter().flat_map(BTreeMap::keys) {
                if next == start {
                    return Some(path);
                }
                if seen.insert(next.clone()) {
                    longer.push([path.as_slice(), std::slice::from_ref(next)].concat());
                }
            }
        }
        paths = longer;
    }
    None
}

fn shown(graph: &Graph, cycle: &[String]) -> String {
    let next = cycle.iter().cycle().skip(1);
    let mut text = format!("{} import each other", cycle.join(", "));
    for (from, to) in cycle.iter().zip(next) {
        let evidence = graph.get(from).and_then(|imports| imports.get(to));
        text.push_str("\n    ");
        text.push_str(evidence.map_or("", String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::modules::tests::krate, in_crate};

    #[test]
    fn siblings_that_import_each_other_are_found_once() {
        let krate = krate(&[
            ("a", "use crate::b::B;"),
            ("b", "use crate::c::C;"),
            ("c", "mod deep; pub struct C;"),
            ("c/deep", "use crate::a::A;"),
        ]);
        let found = in_crate(&krate);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("c: a, b, c import each other"));
        assert!(found[0].contains("crates/c/src/c/deep.rs uses a::A"));
    }

    #[test]
    fn a_parent_and_its_children_may_import_each_other() {
        let krate = krate(&[
            ("a", "mod b; use self::b::B;"),
            ("a/b", "use super::A; use crate::a::C;"),
        ]);
        assert!(in_crate(&krate).is_empty());
    }

    #[test]
    fn an_import_through_the_root_counts_as_the_module_that_defines_it() {
        let krate = krate(&[
            ("lib", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a", "use crate::B;"),
            ("b", "use crate::A;"),
        ]);
        assert_eq!(in_crate(&krate).len(), 1);
    }
}
