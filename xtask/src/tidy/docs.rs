//! Every source file says what it is, and stays short enough to be one thing.

use anyhow::Result;

use super::files;

const MOST_LINES: usize = 600;

pub(crate) fn undocumented() -> Result<Vec<String>> {
    let sources = files::sources(&["crates", "xtask", "fuzz", "probe"])?;
    let without = sources.iter().filter(|(_, text)| !text.starts_with("//!"));
    let finding = |path: &std::path::Path| format!("{} does not start with `//!`", path.display());
    Ok(without.map(|(path, _)| finding(path)).collect())
}

pub(crate) fn too_long() -> Result<Vec<String>> {
    let sources = files::sources(&["crates"])?;
    let mut findings = Vec::new();
    for (path, text) in sources {
        let in_src = path.components().any(|part| part.as_os_str() == "src");
        let lines = text.lines().count();
        if in_src && lines > MOST_LINES {
            let path = path.display();
            findings.push(format!("{path} has {lines} lines, more than {MOST_LINES}"));
        }
    }
    Ok(findings)
}
