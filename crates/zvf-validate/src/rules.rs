//! Every rule, by the depth it is checked at. A code is never used again for
//! something else.

use core::fmt::Write;

use crate::rule::{Depth, Remedy, Rule};

pub mod consistency;
pub mod metadata;
pub mod semantics;
pub mod structure;

/// All rules, by code.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let depths = [
        structure::ALL,
        metadata::ALL,
        consistency::ALL,
        semantics::ALL,
    ];
    depths.into_iter().flatten().copied()
}

/// The rule of a code.
pub fn find(code: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.code == code)
}

/// The page that lists them, `docs/rules.md`, as Markdown.
pub fn page() -> String {
    let mut page = PREFACE.to_owned();
    for depth in Depth::ALL {
        let (number, title) = (depth.number(), title(depth));
        // Writing to a String cannot fail.
        let _ = writeln!(page, "\n## L{number}: {title}");
        for rule in all().filter(|rule| rule.depth == depth) {
            let remedy = match rule.remedy {
                Remedy::Repair(text) => format!("`--repair`: {text}."),
                Remedy::Advice(text) => format!("To mend it: {text}."),
            };
            let _ = writeln!(
                page,
                "\n### {code}: {title}\n\n*{severity}.* {meaning}\n\n{remedy}",
                code = rule.code,
                title = rule.title,
                severity = rule.severity,
                meaning = rule.meaning.trim(),
            );
        }
    }
    page
}

fn title(depth: Depth) -> &'static str {
    match depth {
        Depth::Structure => "structure",
        Depth::Metadata => "metadata",
        Depth::Consistency => "consistency",
        Depth::Semantics => "semantics",
    }
}

const PREFACE: &str = "\
# Rules

What `zvf validate` checks, by depth. `cargo xtask rules` writes this page from the code. A code is never used for another rule.

An *error* means that something cannot be read, is lost, or would be answered wrongly. A *warning* means that answers are right, and
something that is said of the store is not, or other readers will trip over it. A *note* is right to the letter, and worth knowing.
";
