//! Runs every shell block of the README and the guide, and compares its output.
//!
//! A page runs from top to bottom in a folder of its own that holds the stores and files of
//! [`samples`]; the README and the quick start begin in an empty folder, as in a fresh clone. The
//! first word after the fence selects the kind of block:
//!
//! | block | action |
//! |---|---|
//! | `sh` | run; the page continues with the resulting folder |
//! | `sh not run: WHY` | not run, for the stated reason; the number of these blocks is pinned below |
//! | `text output` | output of the previous block; `…` matches any text in a line |
//! | `text output but for numbers` | the same, ignoring numbers, which may change with every improvement |
//! | `json shape` | keys and types of the JSON that the previous block printed |
//!
//! `ZVF_UPDATE_SNAPSHOTS=1` rewrites the last two kinds where they differ.

mod page;
mod reference;
mod samples;
mod shape;

use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use page::{Kind, Page};

/// Pages that make all their files themselves.
const FROM_NOTHING: [&str; 2] = ["README.md", "docs/start.md"];

/// Pages with shell blocks: number of blocks that run and that do not, one page a line.
const PAGES: &str = include_str!("guide/pages.txt");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Lists the README and all pages below `docs` by path.
fn paths() -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if Path::new(&path).extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_page_with_blocks_is_run() {
    let mut found = String::new();
    for path in paths() {
        let page = Page::read(&root().join(&path));
        let count = |is: fn(&Kind) -> bool| page.blocks.iter().filter(|b| is(&b.kind)).count();
        let (runs, not_run) = (
            count(|kind| *kind == Kind::Run),
            count(|kind| matches!(kind, Kind::NotRun(_))),
        );
        if runs + not_run > 0 {
            writeln!(found, "{path}: {runs} run, {not_run} not run").unwrap();
        }
    }
    if found != PAGES && env::var_os("ZVF_UPDATE_SNAPSHOTS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/guide/pages.txt");
        fs::write(file, found).unwrap();
    } else {
        assert_eq!(found, PAGES, "pages found, and pages listed in pages.txt");
    }
}

#[test]
fn blocks_have_the_documented_output() {
    let folder = tempfile::tempdir().unwrap();
    let (samples, programs) = (folder.path().join("samples"), folder.path().join("bin"));
    samples::make(&samples);
    samples::programs(&programs);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let (samples, programs) = (&samples, &programs);
        let run = |(at, path): (usize, String)| {
            let own = folder.path().join(at.to_string());
            scope.spawn(move || page_failures(&path, samples, programs, &own))
        };
        let running: Vec<_> = paths().into_iter().enumerate().map(run).collect();
        running
            .into_iter()
            .flat_map(|page| page.join().unwrap())
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs a page; returns its differences from the documented output.
fn page_failures(path: &str, samples: &Path, programs: &Path, folder: &Path) -> Vec<String> {
    let file = root().join(path);
    let mut page = Page::read(&file);
    if page.blocks.is_empty() {
        return Vec::new();
    }
    if FROM_NOTHING.contains(&path) {
        fs::create_dir_all(folder).unwrap();
    } else {
        samples::copy(samples, folder);
    }
    let mut failures = Vec::new();
    let mut printed: Option<String> = None;
    let mut changed = Vec::new();
    for (at, block) in page.blocks.iter().enumerate() {
        let place = format!("{path}:{}", block.line);
        let expected = match block.kind {
            Kind::Run => {
                match shell(&block.text, programs, folder) {
                    Ok(output) => printed = Some(output),
                    Err(why) => {
                        failures.push(format!("{place}: {why}"));
                        // Later blocks depend on this one.
                        break;
                    }
                }
                continue;
            }
            Kind::NotRun(_) => {
                printed = None;
                continue;
            }
            Kind::Output => page::holds(&block.text, printed.as_deref().unwrap_or_default()),
            Kind::Roughly => {
                page::roughly_holds(&block.text, printed.as_deref().unwrap_or_default())
            }
            Kind::Shape => shape::of_text(printed.as_deref().unwrap_or_default())
                .and_then(|shape| page::holds(&block.text, &shape).map_err(|_| shape)),
        };
        if let Err(actual) = expected {
            if env::var_os("ZVF_UPDATE_SNAPSHOTS").is_some() {
                changed.push((at, actual));
            } else {
                failures.push(format!("{place} should be\n{actual}"));
            }
        }
    }
    if !changed.is_empty() {
        page.replace(&changed);
        fs::write(&file, &page.text).unwrap();
    }
    failures
}

/// Runs a block; returns its output on both streams, or its failure.
fn shell(script: &str, programs: &Path, folder: &Path) -> Result<String, String> {
    let path = env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-euc", script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("ZVF_PROGRAM", env!("CARGO_BIN_EXE_zvf"))
        .env("ZVF_ROOT", root())
        .env("NO_COLOR", "1")
        .output()
        .map_err(|error| format!("sh: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!(
            "{script}\nended with {}\n{}",
            output.status,
            text(&output.stderr)
        ))
    }
}

/// The table of the documents of the format names tests that exist.
#[test]
fn the_tests_of_documents_exist() {
    let page = fs::read_to_string(root().join("docs/seeds.md")).unwrap();
    let mut parts = page.split("` (`");
    let mut before = parts.next().unwrap();
    let mut count = 0;
    for part in parts {
        let (_, name) = before.rsplit_once('`').unwrap();
        let (path, _) = part.split_once('`').unwrap();
        let source =
            fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let is_test = |word| source.contains(&format!("{word} {name}("));
        assert!(is_test("fn") || is_test("def"), "{path}: {name}");
        before = part;
        count += 1;
    }
    assert!(count > 100, "{count}");
    // Every row has a state.
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("## Document 000"));
    for row in rows.filter(|line| line.starts_with("| ") && !line.starts_with("| sentence")) {
        let state = row.rsplit(" | ").nth(1).unwrap();
        let states = ["works", "different", "partial", "missing"];
        assert!(states.contains(&state), "{row}");
    }
}
