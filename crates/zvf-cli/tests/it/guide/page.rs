//! A page and its blocks.

use std::{fs, path::Path};

/// A page of Markdown.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) blocks: Vec<Block>,
}

/// A fenced block.
pub(super) struct Block {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// Line of its fence, counted from 1.
    pub(super) line: usize,
}

/// The kind of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Run,
    /// Contains the reason.
    NotRun(String),
    Output,
    /// Ignores numbers.
    Roughly,
    Shape,
}

impl Page {
    pub(super) fn read(path: &Path) -> Self {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::new(text, &path.display().to_string())
    }

    fn new(text: String, path: &str) -> Self {
        let mut blocks = Vec::new();
        let mut open: Option<(Option<Kind>, usize, Vec<&str>)> = None;
        for (line, number) in text.lines().zip(1..) {
            match (line.strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => {
                    if let Some((Some(kind), line, lines)) = open.take() {
                        let text = lines.join("\n");
                        blocks.push(Block { kind, text, line });
                    }
                    open = None;
                }
                (Some(words), None) => {
                    let kind = kind(words).unwrap_or_else(|why| panic!("{path}:{number}: {why}"));
                    open = Some((kind, number, Vec::new()));
                }
                (None, Some((.., lines))) => lines.push(line),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{path}: a block has no end");
        Self { text, blocks }
    }

    /// Replaces the text of blocks.
    pub(super) fn replace(&mut self, changed: &[(usize, String)]) {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        // Backwards, so that earlier line numbers stay valid.
        for (at, text) in changed.iter().rev() {
            let block = &self.blocks[*at];
            let old = block.text.lines().count();
            let new = text.trim_end().lines().map(str::to_owned);
            lines.splice(block.line..block.line + old, new);
        }
        self.text = lines.join("\n") + "\n";
    }
}

/// Parses the words after a fence; `None` if the block is not executable.
fn kind(words: &str) -> Result<Option<Kind>, String> {
    Ok(Some(match words {
        "sh" => Kind::Run,
        "text output" => Kind::Output,
        "text output but for numbers" => Kind::Roughly,
        "json shape" => Kind::Shape,
        other => match other.strip_prefix("sh not run: ") {
            Some(why) if !why.trim().is_empty() => Kind::NotRun(why.to_owned()),
            _ if ["sh", "bash", "shell", "console"]
                .iter()
                .any(|shell| other.starts_with(shell)) =>
            {
                return Err(format!(
                    "a shell block is `sh` or `sh not run: WHY`, not `{other}`"
                ));
            }
            _ => return Ok(None),
        },
    }))
}

/// Returns whether text matches the page, or else the text.
pub(super) fn holds(expected: &str, actual: &str) -> Result<(), String> {
    let (expected, actual) = (expected.trim_end(), actual.trim_end());
    let same = expected.lines().count() == actual.lines().count();
    let mut pairs = expected.lines().zip(actual.lines());
    if same && pairs.all(|(expected, actual)| line_holds(expected, actual)) {
        Ok(())
    } else {
        Err(actual.to_owned())
    }
}

/// Compares text without its numbers.
pub(super) fn roughly_holds(expected: &str, actual: &str) -> Result<(), String> {
    holds(&without_numbers(expected), &without_numbers(actual)).map_err(|_| actual.to_owned())
}

/// Replaces numbers, with the blanks in and before them, by one character.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let is_blank = matches!(c, ' ' | '-');
        match c {
            '0'..='9' => {
                let kept = out.trim_end_matches([' ', '-', '.', ',']);
                if kept.ends_with('#') {
                    out.truncate(kept.len());
                } else {
                    out.truncate(out.trim_end_matches([' ', '-']).len());
                    out.push('#');
                }
            }
            _ if is_blank && out.ends_with(' ') => {}
            _ => out.push(c),
        }
    }
    out
}

/// Compares a line, in which `…` matches any text.
fn line_holds(expected: &str, actual: &str) -> bool {
    let Some((start, rest)) = expected.split_once('…') else {
        return expected.trim_end() == actual.trim_end();
    };
    let Some(mut left) = actual.strip_prefix(start) else {
        return false;
    };
    let parts: Vec<&str> = rest.split('…').collect();
    let (last, between) = parts.split_last().unwrap();
    for part in between {
        match left.find(part) {
            None => return false,
            Some(at) => left = &left[at + part.len()..],
        }
    }
    left.ends_with(last)
}

#[test]
fn an_ellipsis_matches_any_text() {
    assert!(line_holds("took … s", "took 1.5 s"));
    assert!(!line_holds("took … s", "took 1.5 m"));
    assert!(line_holds("a…b…c", "a1b2c") && !line_holds("a…b…c", "a12c"));
    assert!(line_holds("same", "same ") && !line_holds("same", "other"));
    assert!(holds("a\nb", "a").is_err() && holds("a", "a\nb").is_err());
}

#[test]
fn only_numbers_may_differ() {
    let rough = |expected, actual| roughly_holds(expected, actual).is_ok();
    assert!(rough("24 requests, 1 088 bytes", "9 requests, 10880 bytes"));
    assert!(rough("  x   1.5\n  y  -2", "  x  10.25\n  y    7"));
    assert!(!rough("24 requests", "24 results") && !rough("level 0", "level"));
}

#[test]
fn every_shell_block_runs_or_has_a_reason() {
    assert_eq!(kind("sh"), Ok(Some(Kind::Run)));
    let why = Kind::NotRun("a bucket".to_owned());
    assert_eq!(kind("sh not run: a bucket"), Ok(Some(why)));
    assert_eq!(kind("rust"), Ok(None));
    assert!(kind("sh not run: ").is_err() && kind("bash").is_err() && kind("sh,ignore").is_err());
}

#[test]
fn blocks_are_replaced_in_place() {
    let text = "a\n```sh\nx\n```\n```text output\nold\nold\n```\nb\n".to_owned();
    let mut page = Page::new(text, "page");
    assert_eq!(page.blocks.len(), 2);
    page.replace(&[(1, "new\n".to_owned())]);
    assert_eq!(page.text, "a\n```sh\nx\n```\n```text output\nnew\n```\nb\n");
}
