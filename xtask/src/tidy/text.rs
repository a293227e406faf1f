//! No file contains a path of a particular machine, or unfinished work without an issue.

use anyhow::Result;

use super::files;
use crate::workspace;

pub(crate) fn findings() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for file in files::all()? {
        let bytes = std::fs::read(workspace::root().join(&file))?;
        // Files that are not UTF-8 are data.
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        for (number, line) in (1..).zip(text.lines()) {
            let found = complaints(line);
            let place = |why: &String| format!("{}:{number}: {why}", file.display());
            findings.extend(found.iter().map(place));
        }
    }
    Ok(findings)
}

fn complaints(line: &str) -> Vec<String> {
    let machine = ["tmp", "work", "root", "home"].map(|folder| format!("/{folder}/"));
    let paths = machine
        .into_iter()
        .filter(|path| starts_a_path(line, path))
        .map(|path| format!("a path of some machine, {path}"));
    let unfinished = [concat!("TO", "DO"), concat!("FIX", "ME")]
        .into_iter()
        .filter(|word| stands_alone(line, word) && !names_an_issue(line))
        .map(|word| format!("{word} without an issue number"));
    paths.chain(unfinished).collect()
}

/// Returns whether `line` contains `path` at the start of a path.
fn starts_a_path(line: &str, path: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || "._-$}~*".contains(c);
    line.match_indices(path)
        .any(|(at, _)| !line[..at].ends_with(part))
}

fn stands_alone(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let after = &line[at + word.len()..];
        !line[..at].ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    })
}

fn names_an_issue(line: &str) -> bool {
    line.match_indices('#')
        .any(|(at, _)| line[at + 1..].starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_of_a_machine_but_not_parts_of_paths() {
        let home = ["", "home", "me", "x"].join("/");
        assert_eq!(complaints(&format!("see {home}")).len(), 1);
        assert_eq!(complaints(&format!("\"file://{home}\"")).len(), 1);
        assert!(complaints(&format!("https://example.org{home}")).is_empty());
        assert!(complaints(&format!("crates{home}")).is_empty());
    }

    #[test]
    fn unfinished_work_names_its_issue() {
        let word = concat!("TO", "DO");
        assert_eq!(complaints(&format!("// {word}: later")).len(), 1);
        assert!(complaints(&format!("// {word}(#12): later")).is_empty());
        assert!(complaints(&format!("mas{word}n")).is_empty());
        // `CONTRIBUTING.md` may explain the rule.
        assert!(complaints(&format!("a `{word}` names its issue: `{word}(#12)`")).is_empty());
    }
}
