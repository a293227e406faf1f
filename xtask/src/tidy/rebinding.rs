//! A name is not bound twice in a row where one chain of calls would do.

use anyhow::Result;

use super::files;

/// Starts of expressions to which no call can be appended without parentheses.
const NO_CHAIN: [&str; 12] = [
    "match ", "if ", "loop ", "unsafe ", "async ", "move ", "&", "*", "|", "-", "[", "(",
];

pub(crate) fn findings() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for (file, text) in files::sources(&["crates", "xtask"])? {
        findings.extend(rebound(&text).into_iter().map(|(line, name)| {
            format!(
                "{}:{line}: `{name}` is bound twice in a row: append the call to the first value",
                file.display()
            )
        }));
    }
    Ok(findings)
}

/// A statement `let name = value;` and the number of lines it takes.
struct Binding<'a> {
    name: &'a str,
    has_type: bool,
    value: String,
    lines: usize,
}

impl<'a> Binding<'a> {
    /// Parses the statement at the start of `lines`.
    fn parse(lines: &[&'a str]) -> Option<Self> {
        let first = lines.first()?;
        let bound = first.trim_start().strip_prefix("let ")?;
        let bound = bound.strip_prefix("mut ").unwrap_or(bound);
        let end = bound.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        let (name, rest) = bound.split_at(end);
        let (kind, value) = rest.split_once('=')?;
        if !(kind == " " || kind.starts_with(": ")) {
            return None;
        }
        // The lines of a statement are followed by one that is indented less.
        let last = (0..lines.len()).find(|&at| {
            lines[at].ends_with(';')
                && lines
                    .get(at + 1)
                    .is_none_or(|next| indent(next) <= indent(first))
        })?;
        let value = std::iter::once(value)
            .chain(lines[1..=last].iter().copied())
            .map(str::trim)
            .collect();
        Some(Self {
            name,
            has_type: kind != " ",
            value,
            lines: last + 1,
        })
    }

    /// Returns whether a call can be appended to the value. A type that is written down would be lost.
    fn is_chain(&self) -> bool {
        !self.has_type && !NO_CHAIN.iter().any(|start| self.value.starts_with(start))
    }

    /// Returns whether the value consists of calls on `name`, which it names nowhere else.
    fn continues(&self, name: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let uses = self.value.match_indices(name).filter(|(at, _)| {
            !self.value[..*at].ends_with(is_part)
                && !self.value[at + name.len()..].starts_with(is_part)
        });
        let calls = self.value.strip_prefix(name);
        calls.is_some_and(|calls| calls.starts_with(['.', '?'])) && uses.count() == 1
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the lines, counted from one, that bind the name of the statement before them.
fn rebound(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len())
        .filter_map(|at| {
            let first = Binding::parse(&lines[at..])?;
            let next = at + first.lines;
            let second = Binding::parse(lines.get(next..)?)?;
            let rebound = second.name == first.name
                && indent(lines[next]) == indent(lines[at])
                && first.is_chain()
                && second.continues(first.name);
            rebound.then(|| (next + 1, first.name.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::rebound;

    #[test]
    fn finds_a_chain_that_is_cut() {
        let cut = "    let keys = store.keys(\n        prefix,\n    );\n    let keys: Vec<_> = keys.collect();\n";
        assert_eq!(rebound(cut), [(4, "keys".to_owned())]);
        assert_eq!(
            rebound("let at = text.find('.');\nlet at = at\n    .ok_or(Error)?;\n").len(),
            1
        );
    }

    #[test]
    fn accepts_what_one_chain_cannot_say() {
        for text in [
            "let at = text.find('.');\nlet at = at.map_or(0, |at| at + 1);\n",
            "let rows: Vec<u8> = read();\nlet rows = rows.iter();\n",
            "let rows = &rows;\nlet rows = rows.iter();\n",
            "let rows = read();\ncheck(&rows);\nlet rows = rows.iter();\n",
            "let rows = read();\nlet rows = (0, rows);\n",
            "if a {\n    let rows = read();\n}\nlet rows = rows.iter();\n",
        ] {
            assert!(rebound(text).is_empty(), "{text}");
        }
    }
}
