//! The programs of `examples/outside`: their length, and their text in the guide.

use std::{env, fs};

use anyhow::{Context, Result};

use crate::workspace;

/// The page that shows the programs, each in a block after a comment with its path.
const PAGE: &str = "docs/library.md";
const PROGRAMS: [&str; 5] = [
    "examples/outside/facade/src/lib.rs",
    "examples/outside/fetch/src/lib.rs",
    "examples/outside/decoder/src/lib.rs",
    "examples/outside/browser/src/lib.rs",
    "examples/outside/runner.py",
];
const MAX_LINES: usize = 80;
/// The variable with which tests rewrite what they compare.
const UPDATE: &str = "ZVF_UPDATE_SNAPSHOTS";

/// Compares the page with the programs, or rewrites it.
pub(crate) fn findings() -> Result<Vec<String>> {
    let root = workspace::root();
    let page = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let mut current = page.clone();
    let mut findings = Vec::new();
    for path in PROGRAMS {
        let program = fs::read_to_string(root.join(path)).context(path)?;
        let lines = program.lines().count();
        if lines > MAX_LINES {
            findings.push(format!("{path} has {lines} lines; at most {MAX_LINES}"));
        }
        match shown(&current, path, &program) {
            Some(text) => current = text,
            None => findings.push(format!("{PAGE} has no block after `{}`", mark(path))),
        }
    }
    if current != page {
        if env::var_os(UPDATE).is_some() {
            fs::write(root.join(PAGE), current)?;
        } else {
            findings.push(format!(
                "{PAGE} shows other programs than examples/outside; run `{UPDATE}=1 cargo xtask \
                 tidy`"
            ));
        }
    }
    Ok(findings)
}

fn mark(path: &str) -> String {
    format!("<!-- {path} -->\n")
}

/// Returns the page with `program` as the block of `path`, or `None` if it has no such block.
fn shown(page: &str, path: &str, program: &str) -> Option<String> {
    let (before, rest) = page.split_once(&mark(path))?;
    let (fence, rest) = rest.split_once('\n')?;
    let (_, after) = fence
        .starts_with("```")
        .then(|| rest.split_once("\n```\n"))??;
    let program = program.trim_end();
    let mark = mark(path);
    Some(format!("{before}{mark}{fence}\n{program}\n```\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_after_the_mark_shows_the_program() {
        let page = "a\n<!-- b.rs -->\n```rust,ignore\nold\n```\nc\n```\nd\n```\n";
        let new = page.replace("old", "new\n\nlines");
        assert_eq!(shown(page, "b.rs", "new\n\nlines\n"), Some(new));
    }

    #[test]
    fn a_page_without_the_block_is_found() {
        assert_eq!(shown("a\n", "b.rs", "new\n"), None);
        assert_eq!(shown("<!-- b.rs -->\ntext\n", "b.rs", "new\n"), None);
    }
}
