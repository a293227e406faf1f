//! All rules, by level. The code of a removed rule is never reused.

use core::fmt::Write;

use crate::rule::{Depth, Remedy, Rule};

pub mod consistency;
pub mod metadata;
pub mod semantics;
pub mod structure;

/// Returns all rules, by code.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let depths = [
        structure::ALL,
        metadata::ALL,
        consistency::ALL,
        semantics::ALL,
    ];
    depths.into_iter().flatten().copied()
}

/// Returns the rule with a code.
pub fn find(code: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.code == code)
}

/// Returns the page `docs/rules.md`, which lists all rules, as Markdown.
pub fn page() -> String {
    let mut page = PREFACE.to_owned();
    for depth in Depth::ALL {
        let (number, title) = (depth.number(), title(depth));
        // Writing to a String cannot fail.
        let _ = writeln!(page, "\n## L{number}: {title}");
        for rule in all().filter(|rule| rule.depth == depth) {
            let remedy = match rule.remedy {
                Remedy::Repair(text) => format!("`--repair` {text}."),
                Remedy::Advice(text) => format!("To fix it: {text}."),
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

The rules that `zvf validate` checks, by level. `cargo xtask rules` generates this page from the code. The code of a removed rule
is never reused.

An *error* means that data are lost or unreadable, or that results would be wrong. A *warning* means that results are right, but
metadata are wrong or other readers may fail. A *note* affects no reader.
";
