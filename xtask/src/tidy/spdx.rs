//! SPDX licence expressions, parsed to decide whether one is allowed.

use anyhow::{Result, bail, ensure};

/// Returns whether licences from `allow`, which lists identifiers and `identifier WITH exception`,
/// satisfy `expression`.
///
/// `/`, which old manifests write instead of `OR`, counts as `OR`.
pub(crate) fn allowed(expression: &str, allow: &[String]) -> Result<bool> {
    let spaced = expression.replace('/', " OR ");
    let spaced = spaced.replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        left: &tokens,
        allow,
    };
    let satisfied = parser.any()?;
    ensure!(
        parser.left.is_empty(),
        "unexpected text after the end of `{expression}`"
    );
    Ok(satisfied)
}

struct Parser<'a> {
    left: &'a [&'a str],
    allow: &'a [String],
}

impl Parser<'_> {
    fn any(&mut self) -> Result<bool> {
        let mut satisfied = self.every()?;
        while self.take("OR") {
            satisfied |= self.every()?;
        }
        Ok(satisfied)
    }

    /// `AND` binds tighter than `OR`.
    fn every(&mut self) -> Result<bool> {
        let mut satisfied = self.one()?;
        while self.take("AND") {
            satisfied &= self.one()?;
        }
        Ok(satisfied)
    }

    fn one(&mut self) -> Result<bool> {
        if self.take("(") {
            let satisfied = self.any()?;
            ensure!(self.take(")"), "missing `)`");
            return Ok(satisfied);
        }
        let licence = self.identifier()?;
        let licence = if self.take("WITH") {
            format!("{licence} WITH {}", self.identifier()?)
        } else {
            licence
        };
        Ok(self.allow.contains(&licence))
    }

    fn identifier(&mut self) -> Result<String> {
        match self.left {
            [word, left @ ..] if !["OR", "AND", "WITH", "(", ")"].contains(word) => {
                self.left = left;
                Ok((*word).to_owned())
            }
            [word, ..] => bail!("expected a licence, found `{word}`"),
            [] => bail!("expected a licence, found the end"),
        }
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.left.first() == Some(&token);
        self.left = self.left.get(usize::from(found)..).unwrap_or_default();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, want: bool) {
        let allow = ["MIT", "Apache-2.0", "Zlib", "Unicode-3.0"];
        let allow = allow.map(str::to_owned).into_iter();
        let allow: Vec<_> = allow
            .chain(["Apache-2.0 WITH LLVM-exception".to_owned()])
            .collect();
        assert_eq!(allowed(expression, &allow).unwrap(), want, "{expression}");
    }

    #[test]
    fn one_licence() {
        check("MIT", true);
        check("GPL-3.0-only", false);
        check("(MIT)", true);
    }

    #[test]
    fn one_alternative_is_enough() {
        check("MIT OR GPL-3.0-only", true);
        check("LGPL-2.1-or-later OR GPL-3.0-only", false);
        check("Unlicense/MIT", true);
    }

    #[test]
    fn every_part_is_needed() {
        check("MIT AND Zlib", true);
        check("MIT AND GPL-3.0-only", false);
        check("(MIT OR GPL-3.0-only) AND Unicode-3.0", true);
        check("(MIT OR Apache-2.0) AND NCSA", false);
    }

    #[test]
    fn and_binds_tighter_than_or() {
        check("MIT OR Zlib AND GPL-3.0-only", true);
        check("GPL-3.0-only AND MIT OR Zlib", true);
        check("GPL-3.0-only AND (MIT OR Zlib)", false);
    }

    #[test]
    fn an_exception_is_part_of_the_licence() {
        check("Apache-2.0 WITH LLVM-exception", true);
        check("MIT WITH LLVM-exception", false);
        check(
            "GPL-2.0-only OR Apache-2.0 WITH LLVM-exception AND Zlib",
            true,
        );
    }

    #[test]
    fn refuses_what_is_no_expression() {
        for broken in ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT Zlib"] {
            assert!(allowed(broken, &[]).is_err(), "{broken}");
        }
    }
}
