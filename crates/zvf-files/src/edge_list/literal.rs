//! Dictionaries of Python, as networkx writes the attributes of an edge.

use crate::FileFault;

/// Parses a dictionary of names and numbers, text, booleans or None.
///
/// # Errors
///
/// [`FileFault::Field`] for other text, lists and nested dictionaries among it.
pub(super) fn dictionary(text: &str) -> Result<Vec<(String, Option<String>)>, FileFault> {
    let mut rest = text.trim_end();
    let mut pairs = Vec::new();
    take(&mut rest, "{")?;
    while !rest.starts_with('}') {
        if !pairs.is_empty() {
            take(&mut rest, ",")?;
        }
        let name = quoted(&mut rest)?;
        take(&mut rest, ":")?;
        pairs.push((name, value(&mut rest)?));
    }
    take(&mut rest, "}")?;
    match rest {
        "" => Ok(pairs),
        rest => Err(unexpected(rest)),
    }
}

/// Removes a symbol and the blanks after it.
fn take(rest: &mut &str, symbol: &str) -> Result<(), FileFault> {
    let after = rest.strip_prefix(symbol).ok_or_else(|| unexpected(rest))?;
    *rest = after.trim_start();
    Ok(())
}

fn value(rest: &mut &str) -> Result<Option<String>, FileFault> {
    if rest.starts_with(['\'', '"']) {
        return quoted(rest).map(Some);
    }
    let end = rest.find([',', '}']).ok_or_else(|| unexpected(rest))?;
    let (word, after) = rest.split_at_checked(end).ok_or_else(|| unexpected(rest))?;
    let word = word.trim();
    let is_plain = word.parse::<f64>().is_ok() || matches!(word, "True" | "False" | "None");
    if !is_plain {
        return Err(unexpected(rest));
    }
    *rest = after;
    Ok((word != "None").then(|| word.to_owned()))
}

/// Takes text in quotes.
fn quoted(rest: &mut &str) -> Result<String, FileFault> {
    let mut characters = rest.char_indices();
    let quote = characters.next().map(|(_, quote)| quote);
    let quote = quote
        .filter(|quote| matches!(quote, '\'' | '"'))
        .ok_or_else(|| unexpected(rest))?;
    let mut text = String::new();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            let after = rest.get(at.saturating_add(1)..).unwrap_or_default();
            *rest = after.trim_start();
            return Ok(text);
        }
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next().map(|(_, escaped)| escaped) {
            Some(escaped @ ('\'' | '"' | '\\')) => text.push(escaped),
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            _ => return Err(unexpected(rest)),
        }
    }
    Err(unexpected(rest))
}

fn unexpected(rest: &str) -> FileFault {
    let start: String = rest.chars().take(24).collect();
    let expected = "a dictionary has names with numbers, text, True, False or None; write other attributes \
                    with data=[NAME, …] of networkx.write_edgelist";
    FileFault::field("the dictionary of an edge", format!("{start:?}"), expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_of_python_are_read() {
        let pairs = dictionary(r#"{'a': 1.5, "b c": 'it\'s', 'd': None, 'e': True}"#).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let expected = [
            ("a".to_owned(), text("1.5")),
            ("b c".to_owned(), text("it's")),
            ("d".to_owned(), None),
            ("e".to_owned(), text("True")),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(dictionary("{}").unwrap(), []);
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "{",
            "{'a'}",
            "{'a': [1]}",
            "{'a': 1} b",
            "{'a': 'b",
            "{a: 1}",
            "{'a': 1,,}",
        ] {
            assert!(dictionary(text).is_err(), "{text}");
        }
    }
}
