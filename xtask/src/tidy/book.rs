//! The guide: `SUMMARY.md` lists every page, and no link of any page leads nowhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result};

use super::files;
use crate::workspace;

const SUMMARY: &str = "docs/SUMMARY.md";

pub(crate) fn findings() -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in files::all()? {
        if path.extension().is_some_and(|end| end == "md") {
            let text = std::fs::read_to_string(workspace::root().join(&path));
            pages.insert(
                path.clone(),
                text.with_context(|| path.display().to_string())?,
            );
        }
    }
    let summary = pages.get(Path::new(SUMMARY)).context(SUMMARY)?;
    let listed: BTreeSet<PathBuf> = links(summary)
        .filter_map(|link| target(Path::new(SUMMARY), link))
        .collect();
    let mut findings = Vec::new();
    for (path, text) in &pages {
        if path.starts_with("docs") && path != Path::new(SUMMARY) && !listed.contains(path) {
            findings.push(format!("{} is not in {SUMMARY}", path.display()));
        }
        for link in links(text) {
            if let Some(why) = broken(path, link, &pages) {
                findings.push(format!("{}: {link}: {why}", path.display()));
            }
        }
    }
    Ok(findings)
}

/// Why a link leads nowhere.
fn broken(page: &Path, link: &str, pages: &BTreeMap<PathBuf, String>) -> Option<String> {
    let file = target(page, link)?;
    let anchor = link.split_once('#').map(|(_, anchor)| anchor);
    match (pages.get(&file), anchor) {
        (Some(text), Some(anchor)) => {
            let is_there = anchors(text).any(|name| name == anchor);
            (!is_there).then(|| format!("{} has no heading {anchor}", file.display()))
        }
        (None, None) if workspace::root().join(&file).exists() => None,
        (Some(_), None) => None,
        (None, _) => Some("there is no such file".to_owned()),
    }
}

/// The file that a link means, below the root; `None` of other places.
fn target(page: &Path, link: &str) -> Option<PathBuf> {
    let path = link.split('#').next().unwrap_or_default();
    if path.contains(':') {
        return None;
    }
    if path.is_empty() {
        return Some(page.to_path_buf());
    }
    let mut file = PathBuf::new();
    for part in page.parent()?.join(path).components() {
        match part {
            Component::ParentDir => drop(file.pop()),
            part => file.push(part),
        }
    }
    Some(file)
}

/// Where the links of a page lead.
fn links(text: &str) -> impl Iterator<Item = &str> {
    prose(text).flat_map(|line| {
        let after = line.split("](").skip(1);
        after.filter_map(|rest| rest.split(')').next())
    })
}

/// What links to headings of a page are called, as code hosts do.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    prose(text).filter_map(move |line| {
        let heading = line.strip_prefix('#')?.trim_start_matches('#').trim();
        let kept = heading.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        });
        let name = kept.collect::<String>().to_lowercase();
        let count = seen.entry(name.clone()).or_insert(0);
        *count += 1;
        Some(match *count {
            1 => name,
            more => format!("{name}-{}", more - 1),
        })
    })
}

/// Lines that are in no fenced block.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_found_outside_of_code() {
        let text =
            "# A `b` c\n[x](y.md#z) and ![p](q.svg)\n```text\n# no\n[n](o)\n```\n## A b, c\n";
        assert_eq!(links(text).collect::<Vec<_>>(), ["y.md#z", "q.svg"]);
        assert_eq!(anchors(text).collect::<Vec<_>>(), ["a-b-c", "a-b-c-1"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let pages = ["docs/a.md", "docs/sub/b.md"].map(|path| (path.into(), "# Here\n".to_owned()));
        let pages = BTreeMap::from(pages);
        let why = |link| broken(Path::new("docs/sub/b.md"), link, &pages);
        assert_eq!(why("../a.md#here"), None);
        assert_eq!(why("#here"), None);
        assert_eq!(why("https://example.org"), None);
        assert!(why("../a.md#there").is_some());
        assert!(why("a.md").is_some());
    }
}
