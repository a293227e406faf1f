//! The guide: `SUMMARY.md` lists every page once, and every link has a target, both in the repository
//! and in the book that `mdbook` builds from `docs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result};

use super::files;
use crate::workspace;

/// The folder of the book; `mdbook` copies nothing else.
const BOOK: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";

/// The text of each page, by its path.
type Pages = BTreeMap<PathBuf, String>;

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
    of(&pages)
}

fn of(pages: &Pages) -> Result<Vec<String>> {
    let summary = pages.get(Path::new(SUMMARY)).context(SUMMARY)?;
    let mut listed = BTreeSet::new();
    let mut findings = Vec::new();
    for page in links(summary).filter_map(|link| target(Path::new(SUMMARY), link)) {
        if let Some(twice) = listed.replace(page) {
            findings.push(format!("{} is in {SUMMARY} twice", twice.display()));
        }
    }
    for (path, text) in pages {
        if path.starts_with(BOOK) && path != Path::new(SUMMARY) && !listed.contains(path) {
            findings.push(format!("{} is not in {SUMMARY}", path.display()));
        }
        for link in links(text) {
            if let Some(why) = broken(path, link, pages) {
                findings.push(format!("{}: {link}: {why}", path.display()));
            }
        }
    }
    Ok(findings)
}

/// Returns the reason that a link is broken.
fn broken(page: &Path, link: &str, pages: &Pages) -> Option<String> {
    let file = target(page, link)?;
    if page.starts_with(BOOK) && !file.starts_with(BOOK) {
        return Some("the book has no such file; name it without a link".to_owned());
    }
    let anchor = link.split_once('#').map(|(_, anchor)| anchor);
    match (pages.get(&file), anchor) {
        (Some(text), Some(anchor)) => {
            let is_there = anchors(text).any(|name| name == anchor);
            (!is_there).then(|| format!("{} has no heading {anchor}", file.display()))
        }
        // A folder is not a page of the book.
        (None, None) if page.starts_with(BOOK) && workspace::root().join(&file).is_file() => None,
        (None, None) if !page.starts_with(BOOK) && workspace::root().join(&file).exists() => None,
        (Some(_), None) => None,
        (None, _) => Some("there is no such file".to_owned()),
    }
}

/// Resolves a link to a path below the root; `None` for external links.
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

/// Lists the targets of the links on a page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    prose(text).flat_map(|line| {
        let after = line.split("](").skip(1);
        after.filter_map(|rest| rest.split(')').next())
    })
}

/// Lists the anchors of the headings on a page, in the form of code hosts.
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

/// Returns the lines outside fenced blocks.
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

    fn pages<const N: usize>(pages: [(&str, &str); N]) -> Pages {
        let pages = pages.map(|(path, text)| (path.into(), text.to_owned()));
        pages.into()
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let pages = pages([("docs/a.md", "# Here\n"), ("docs/sub/b.md", "# Here\n")]);
        let why = |link| broken(Path::new("docs/sub/b.md"), link, &pages);
        assert_eq!(why("../a.md#here"), None);
        assert_eq!(why("#here"), None);
        assert_eq!(why("https://example.org"), None);
        assert!(why("../a.md#there").is_some());
        assert!(why("a.md").is_some());
    }

    #[test]
    fn the_book_leads_to_nothing_but_its_own_files() {
        let why = |page, link| broken(Path::new(page), link, &Pages::new());
        assert_eq!(why("docs/a.md", "pictures/demo.png"), None);
        assert!(why("docs/a.md", "pictures/no.png").is_some());
        assert!(why("docs/a.md", "pictures").is_some());
        assert!(why("docs/a.md", "../README.md").is_some());
        assert_eq!(why("README.md", "docs/pictures/demo.png"), None);
        assert_eq!(why("README.md", "crates/zvf"), None);
        assert!(why("README.md", "crates/none").is_some());
    }

    #[test]
    fn a_page_is_in_the_summary_once() {
        let check = |summary: &str, expected: &[&str]| {
            let book = [
                (SUMMARY, summary),
                ("docs/a.md", "# A\n"),
                ("docs/sub/b.md", "[a](../a.md#a)\n"),
                ("README.md", "[b](docs/sub/b.md)\n"),
            ];
            assert_eq!(of(&pages(book)).unwrap(), expected, "{summary}");
        };
        check("[A](a.md)\n- [B](sub/b.md)\n", &[]);
        check("[A](a.md)\n", &["docs/sub/b.md is not in docs/SUMMARY.md"]);
        check(
            "[A](a.md)\n- [B](sub/b.md)\n  - [A](a.md)\n",
            &["docs/a.md is in docs/SUMMARY.md twice"],
        );
        check(
            "[A](a.md)\n- [B](sub/b.md)\n- [C](c.md)\n",
            &["docs/SUMMARY.md: c.md: there is no such file"],
        );
    }
}
