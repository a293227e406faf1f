//! The words, flags and `--name value` pairs after a command.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

const FLAGS: [&str; 25] = [
    "all",
    "b2nd",
    "check",
    "clusters",
    "compat",
    "files",
    "golden",
    "guide",
    "huge",
    "large",
    "list",
    "quick",
    "write",
    "manifest",
    "migrated",
    "pyramids",
    "random",
    "reference",
    "precomputed",
    "runners",
    "same",
    "sample",
    "stores",
    "wheel",
    "viewer",
];
const VALUES: [&str; 11] = [
    "cases",
    "compare",
    "generation",
    "kills",
    "query",
    "reproduce",
    "runner",
    "seconds",
    "seed",
    "since",
    "store",
];

/// The arguments of a command.
#[derive(Debug, Default)]
pub(crate) struct Options {
    words: Vec<String>,
    flags: Vec<String>,
    values: BTreeMap<String, String>,
}

impl Options {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words;
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                options.words.push(word);
                continue;
            };
            if FLAGS.contains(&name) {
                options.flags.push(name.to_owned());
            } else if VALUES.contains(&name) {
                let value = words.next();
                let value = value.with_context(|| format!("--{name} needs a value"))?;
                options.values.insert(name.to_owned(), value);
            } else {
                bail!("unknown option --{name}");
            }
        }
        Ok(options)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        self.words.first().map(String::as_str)
    }

    /// Returns the words after the first.
    pub(crate) fn further_words(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag == name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>> {
        let parsed = self.text(name).map(str::parse).transpose();
        parsed.with_context(|| format!("--{name} takes a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options> {
        Options::parse(words.iter().map(ToString::to_string))
    }

    #[test]
    fn takes_words_flags_and_values_in_any_order() {
        let options = parse(&["--seconds", "20", "fragment_index", "--list"]).unwrap();
        assert_eq!(options.word(), Some("fragment_index"));
        assert!(options.further_words().is_empty());
        assert!(options.flag("list") && !options.flag("check"));
        assert_eq!(options.number("seconds").unwrap(), Some(20));
        assert_eq!(options.number("seed").unwrap(), None);
    }

    #[test]
    fn keeps_words_in_order() {
        let options = parse(&["reads", "mesh", "--check", "lines"]).unwrap();
        assert_eq!(options.word(), Some("reads"));
        assert_eq!(options.further_words(), ["mesh", "lines"]);
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        assert!(parse(&["--fast"]).is_err());
        assert!(parse(&["--seconds"]).is_err());
        let options = parse(&["--seed", "x"]).unwrap();
        assert!(options.number("seed").is_err());
    }
}
