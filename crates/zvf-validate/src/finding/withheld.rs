//! Fixes whose value may derive from damaged data, which are withheld.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Fix};
use crate::{
    rule::{Depth, Rule, Severity},
    rules::{consistency, metadata},
};

/// Rules about lists of chunks. Their fixes derive from the names of stored files only.
const LISTS: [&Rule; 2] = [&consistency::CHUNK_LIST, &consistency::CELL_UNLISTED];

/// Findings at an array that show that the chunks of its files are uncertain.
const MOVED: [&Rule; 3] = [
    &consistency::CHUNK_LIST,
    &consistency::CELL_OUTSIDE,
    &consistency::OUTSIDE_CHUNK,
];

/// A fix that is not applied before another finding is resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WithheldFix {
    pub(super) fix: Fix,
    /// The code and path of the other finding.
    pub(super) obstacle: String,
}

/// Withholds each fix whose value may derive from data that another finding shows to be damaged, and
/// gives the others back. Applied, such a fix would overwrite what is left of the truth.
pub(super) fn update(findings: &mut [Finding]) {
    for finding in findings.iter_mut() {
        if let Some(withheld) = finding.withheld.take() {
            finding.fix = Some(withheld.fix);
        }
    }
    let obstacles = Obstacles::of(findings);
    let found: Vec<Option<String>> = findings.iter().map(|f| obstacles.before(f)).collect();
    for (finding, obstacle) in findings.iter_mut().zip(found) {
        if let Some(obstacle) = obstacle
            && let Some(fix) = finding.fix.take()
        {
            finding.withheld = Some(WithheldFix { fix, obstacle });
        }
    }
}

/// Codes of rules by the paths of their findings.
type Paths = BTreeMap<String, &'static str>;

/// Findings that have to be resolved before fixes that derive from the same data.
#[derive(Debug, Default)]
struct Obstacles {
    /// Concern all data of the store.
    store: Option<String>,
    /// Show that a file is not the one that was written. Concern all fixes of a level.
    exchanged: Paths,
    /// Of nodes and their metadata.
    nodes: Paths,
    /// Of lists of chunks.
    lists: Paths,
    /// All of the above, and those of cells.
    all: Paths,
}

impl Obstacles {
    fn of(findings: &[Finding]) -> Self {
        // A fix of a whole list resolves all findings about it.
        let fixed: BTreeSet<(&str, &str)> = findings
            .iter()
            .filter(|finding| finding.fix.is_some())
            .map(|finding| (finding.rule.code, finding.path.as_str()))
            .collect();
        let mut obstacles = Self::default();
        for finding in findings {
            let (rule, path) = (finding.rule, finding.path.as_str());
            let is_open = rule.severity == Severity::Error && !fixed.contains(&(rule.code, path));
            // A cell outside the grid may show that the grid is wrong.
            if rule.depth > Depth::Consistency || !(is_open || *rule == consistency::CELL_OUTSIDE) {
                continue;
            }
            let add = |paths: &mut Paths| {
                paths.entry(path.to_owned()).or_insert(rule.code);
            };
            let is_file = *rule == consistency::INVENTORY;
            let is_unknown = *rule == consistency::CELL_NOT_CHECKED && path.is_empty();
            if is_unknown || is_file && is_of_store(path) {
                obstacles.store.get_or_insert_with(|| name(rule.code, path));
            }
            if is_file || *rule == metadata::NODE_COPY {
                add(&mut obstacles.exchanged);
            }
            let is_node = rule.depth < Depth::Consistency;
            if is_node {
                add(&mut obstacles.nodes);
            }
            if is_node || MOVED.contains(&rule) {
                add(&mut obstacles.lists);
            }
            add(&mut obstacles.all);
        }
        obstacles
    }

    /// Returns the code and path of the first finding that concerns the data from which the fix of a
    /// finding derives.
    fn before(&self, finding: &Finding) -> Option<String> {
        let target = finding.fix.as_ref()?.target().as_str();
        // The number of objects of the parent is that of another level.
        let target = if *finding.rule == metadata::INHERITED {
            ""
        } else {
            target
        };
        let level = target.split('/').next().unwrap_or_default();
        let of_rule = || match finding.rule {
            rule if LISTS.contains(&rule) => self.lists.get_key_value(target).map(named),
            rule if rule.depth < Depth::Consistency => below(&self.nodes, target),
            _ => below(&self.all, level),
        };
        let store = self.store.clone();
        store
            .or_else(|| below(&self.exchanged, level))
            .or_else(of_rule)
    }
}

/// Returns the name of the first finding about a folder or about anything below it.
fn below(paths: &Paths, folder: &str) -> Option<String> {
    if folder.is_empty() {
        return paths.first_key_value().map(named);
    }
    let inside = format!("{folder}/");
    let at = paths.get_key_value(folder).or_else(|| {
        let next = paths.range(inside.clone()..).next();
        next.filter(|(path, _)| path.starts_with(&inside))
    });
    at.map(named)
}

fn named((path, code): (&String, &&'static str)) -> String {
    name(code, path)
}

fn name(code: &str, path: &str) -> String {
    match path {
        "" => format!("{code} of the root"),
        path => format!("{code} of {path}"),
    }
}

/// Returns whether a file describes the whole store: the root, or a leaf of its inventory.
fn is_of_store(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    ["zarr.json", ".zvf"].contains(&first)
}
