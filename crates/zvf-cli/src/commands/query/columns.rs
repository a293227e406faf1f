//! `--select`: names of attributes, separated by commas.
//!
//! A name may have a scope, as in `vertex.radius`. A name in double quotes is taken literally, with
//! `""` for a quote: `"a,b"`, `"vertex.x"`, `object."a b"`.

use zvf::{Scope, Selection};

/// Error of parsing `--select`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SelectError {
    #[error("there is nothing between two commas")]
    Empty,
    #[error("a name in quotes has no closing \"")]
    Unclosed,
    #[error("a name in quotes is followed by other text")]
    Behind,
    #[error(
        "groups have no rows in a result; name attributes of vertices, fragments, links or objects"
    )]
    Group,
}

/// Parses names of attributes; empty text selects none.
pub(super) fn parse(text: &str) -> Result<Selection, SelectError> {
    if text.trim().is_empty() {
        return Ok(Selection::none());
    }
    let mut names = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (scope, text) = scope(text.trim_start());
        if scope == Some(Scope::Group) {
            return Err(SelectError::Group);
        }
        let (name, after) = if let Some(text) = text.strip_prefix('"') {
            quoted(text)?
        } else {
            let (name, after) = text.split_at(text.find(',').unwrap_or(text.len()));
            (name.trim().to_owned(), after)
        };
        if name.is_empty() {
            return Err(SelectError::Empty);
        }
        names.push((scope, name));
        let after = after.trim_start();
        rest = after.strip_prefix(',');
        if rest.is_none() && !after.is_empty() {
            return Err(SelectError::Behind);
        }
    }
    Ok(Selection::Named(names))
}

/// Splits off a scope and its point.
fn scope(text: &str) -> (Option<Scope>, &str) {
    let mut scopes = Scope::ALL.into_iter();
    let found = scopes.find_map(|scope| {
        let rest = text.strip_prefix(scope.name())?;
        Some((Some(scope), rest.strip_prefix('.')?))
    });
    found.unwrap_or((None, text))
}

/// Splits off a name at its closing quote.
fn quoted(text: &str) -> Result<(String, &str), SelectError> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"').ok_or(SelectError::Unclosed)?;
        name.push_str(part);
        let Some(after) = after.strip_prefix('"') else {
            return Ok((name, after));
        };
        name.push('"');
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(Option<Scope>, &str)]) {
        let expected = expected
            .iter()
            .map(|(scope, name)| (*scope, (*name).to_owned()));
        assert_eq!(parse(text), Ok(Selection::Named(expected.collect())));
    }

    #[test]
    fn names_may_have_a_scope() {
        check("a, vertex.b", &[(None, "a"), (Some(Scope::Vertex), "b")]);
        check("FA-mean,my.name", &[(None, "FA-mean"), (None, "my.name")]);
        check("object.a.b", &[(Some(Scope::Object), "a.b")]);
        check("", &[]);
    }

    #[test]
    fn quotes_keep_commas_and_scopes() {
        check("\"a,b\",c", &[(None, "a,b"), (None, "c")]);
        check("\"vertex.x\"", &[(None, "vertex.x")]);
        check(
            "link.\"a \"\"b\" , c",
            &[(Some(Scope::Link), "a \"b"), (None, "c")],
        );
    }

    #[test]
    fn says_what_is_no_list_of_names() {
        assert_eq!(parse("a,,b"), Err(SelectError::Empty));
        assert_eq!(parse("a,"), Err(SelectError::Empty));
        assert_eq!(parse("vertex."), Err(SelectError::Empty));
        assert_eq!(parse("\"a"), Err(SelectError::Unclosed));
        assert_eq!(parse("\"a\"b"), Err(SelectError::Behind));
        assert_eq!(parse("group.a"), Err(SelectError::Group));
    }
}
