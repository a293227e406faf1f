//! The recipes of CONTRIBUTING.md name every file that they touch.

use std::fs;

use anyhow::{Context, Result};

use super::files;
use crate::workspace;

/// A section of CONTRIBUTING.md, kept true by an example that exists.
struct Recipe {
    heading: &'static str,
    /// The name of the example, which every listed file mentions.
    example: &'static str,
    /// The example in code. Files with one of these are what a second example touches.
    code: &'static [&'static str],
    /// Folders in which the code means something else.
    except: &'static [&'static str],
    /// `true` if the section lists all files, `false` if it only says how many there are.
    lists: bool,
}

const RECIPES: [Recipe; 4] = [
    Recipe {
        heading: "Adding a codec",
        example: "gzip",
        code: &["CellCompression::Gzip", "Self::Gzip", "\"gzip\""],
        // The gzip of other formats.
        except: &[
            "crates/zvf-cli/src/dense/",
            "crates/zvf-dense/",
            "crates/zvf-files/",
            "crates/zvf-precomputed/",
        ],
        lists: true,
    },
    Recipe {
        heading: "Adding a pyramid method",
        example: "stride",
        code: &["::Stride", "\"stride\"", "decimate"],
        except: &[],
        lists: true,
    },
    Recipe {
        heading: "Adding a geometry kind",
        example: "mesh",
        code: &["GeometryKind::Mesh", "\"mesh\"", "\"meshes\""],
        except: &[],
        lists: false,
    },
    Recipe {
        heading: "Adding an attribute family",
        example: "fragment",
        code: &[
            "Scope::Fragment",
            "FragmentAttribute",
            "\"fragment\"",
            "fragment_attributes",
        ],
        except: &[],
        lists: false,
    },
];

pub(crate) fn findings() -> Result<Vec<String>> {
    let root = workspace::root();
    let text = fs::read_to_string(root.join("CONTRIBUTING.md"))?;
    let sources: Vec<_> = files::sources(&["crates"])?
        .into_iter()
        .map(|(file, text)| (file.display().to_string(), text))
        .filter(|(file, _)| is_source(file))
        .collect();
    let mut findings = Vec::new();
    for recipe in &RECIPES {
        let section = section(&text, recipe.heading)?;
        let limit = limit(section).with_context(|| format!("no limit: {}", recipe.heading))?;
        let listed: Vec<&str> = section.lines().filter_map(listed).collect();
        let using: Vec<&str> = sources
            .iter()
            .filter(|(file, text)| {
                !recipe.except.iter().any(|folder| file.starts_with(folder)) && recipe.is_used(text)
            })
            .map(|(file, _)| file.as_str())
            .collect();
        let mut report = |what: String| findings.push(format!("{}: {what}", recipe.heading));
        let count = if recipe.lists {
            listed.len()
        } else {
            using.len()
        };
        if count > limit {
            report(format!("{count} files, but the limit is {limit}"));
        }
        for file in using
            .iter()
            .filter(|file| recipe.lists && !listed.contains(file))
        {
            report(format!(
                "{file} mentions {}, but is not listed",
                recipe.example
            ));
        }
        for file in listed {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            if !text.contains(recipe.example) && !recipe.is_used(&text) {
                report(format!("{file} does not mention {}", recipe.example));
            }
        }
    }
    Ok(findings)
}

impl Recipe {
    /// Returns whether the code of a file mentions the example, tests and comments apart.
    fn is_used(&self, text: &str) -> bool {
        let mut code = text
            .lines()
            .take_while(|line| !line.contains("#[cfg(test)]"))
            .filter(|line| !line.trim_start().starts_with("//"));
        code.any(|line| self.code.iter().any(|word| line.contains(word)))
    }
}

/// Returns whether a file is Rust of a library or of the command, tests and measurements apart.
fn is_source(path: &str) -> bool {
    let is_test = path.contains("/tests") || path.ends_with("tests.rs");
    let is_aid = ["crates/zvf-bench/", "crates/zvf-testkit/"];
    path.contains("/src/") && !is_test && !is_aid.iter().any(|folder| path.starts_with(folder))
}

fn section<'a>(text: &'a str, heading: &str) -> Result<&'a str> {
    let start = format!("\n## {heading}\n");
    let (_, rest) = text
        .split_once(&start)
        .with_context(|| format!("CONTRIBUTING.md has no section {heading:?}"))?;
    Ok(rest
        .split_once("\n## ")
        .map_or(rest, |(section, _)| section))
}

/// Returns the number in "At most N files".
fn limit(section: &str) -> Option<usize> {
    let (_, rest) = section.split_once("At most ")?;
    rest.split_once(" files")?.0.parse().ok()
}

/// Returns the file of a list item.
fn listed(line: &str) -> Option<&str> {
    let (path, _) = line.strip_prefix("* `")?.split_once('`')?;
    path.contains('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_a_limit_and_files() {
        let text = "\n## Adding a thing\n\nAt most 3 files:\n\n* `a/b.rs`: x\n* `c`\n\n## Other\n";
        let section = section(text, "Adding a thing").unwrap();
        assert_eq!(limit(section), Some(3));
        assert_eq!(
            section.lines().filter_map(listed).collect::<Vec<_>>(),
            ["a/b.rs"]
        );
    }

    #[test]
    fn tests_and_comments_do_not_count() {
        let [_, method, ..] = &RECIPES;
        assert!(method.is_used("let kind = MethodKind::Stride;"));
        assert!(!method.is_used("// MethodKind::Stride\n#[cfg(test)]\nMethodKind::Stride"));
    }
}
