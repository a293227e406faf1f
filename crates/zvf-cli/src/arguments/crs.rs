//! Coordinate reference systems given on the command line.
//!
//! The format stores a coordinate reference system as a JSON object that it leaves opaque. All
//! forms of input become an object with the members of PROJJSON, so that other programs find `id`
//! and `name` in the usual place:
//!
//! | input | stored |
//! |---|---|
//! | `EPSG:25832`, also as URN or URL | `{"name": "EPSG:25832", "id": {"authority": "EPSG", "code": 25832}}` |
//! | WKT | `{"name": …, "id": …, "wkt": …}`, with the name and id that the text has |
//! | PROJJSON or another object | the object |
//! | a name | `{"name": …}` |

use std::fs;

use serde_json::{Map, Value, json};

/// An unusable coordinate reference system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CrsError {
    #[error("{path} cannot be read: {reason}")]
    File { path: String, reason: String },
    #[error("not valid JSON: {0}")]
    Json(String),
    #[error("{0} is not an object; give PROJJSON, WKT, a name or a code such as EPSG:25832")]
    NoObject(&'static str),
    #[error("{0} is a number; write EPSG:{0} for the code of the EPSG registry")]
    Number(String),
    #[error("{code:?} is not a code of {authority}; codes of EPSG are numbers from 1024 to 999999")]
    Code { authority: String, code: String },
    #[error("the brackets or quotes of the WKT do not match")]
    Wkt,
    #[error(
        "a name must contain a letter; give PROJJSON, WKT, a name or a code such as EPSG:25832"
    )]
    Name,
}

/// Authorities whose codes are numbers.
const NUMERIC: [&str; 2] = ["EPSG", "ESRI"];
/// Authorities whose codes are words.
const TEXTUAL: [&str; 2] = ["OGC", "IAU_2015"];

/// First words of the WKT of a coordinate reference system, in both versions.
const WKT_WORDS: [&str; 24] = [
    "BOUNDCRS",
    "COMPD_CS",
    "COMPOUNDCRS",
    "COORDINATEMETADATA",
    "DERIVEDPROJCRS",
    "ENGCRS",
    "ENGINEERINGCRS",
    "FITTED_CS",
    "GEOCCS",
    "GEODCRS",
    "GEODETICCRS",
    "GEOGCRS",
    "GEOGCS",
    "GEOGRAPHICCRS",
    "IMAGECRS",
    "LOCAL_CS",
    "PARAMETRICCRS",
    "PROJCRS",
    "PROJCS",
    "PROJECTEDCRS",
    "TIMECRS",
    "VERTCRS",
    "VERT_CS",
    "VERTICALCRS",
];

/// Parses a code, WKT, PROJJSON or a name, or `@FILE` with one of them.
pub(crate) fn parse(text: &str) -> Result<Value, CrsError> {
    match text.strip_prefix('@') {
        None => parse_text(text),
        Some(path) => {
            let found = fs::read_to_string(path).map_err(|error| CrsError::File {
                path: path.to_owned(),
                reason: error.to_string(),
            });
            parse_text(&found?)
        }
    }
}

fn parse_text(text: &str) -> Result<Value, CrsError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with(['{', '[', '"']) {
        let json = serde_json::from_str(text).map_err(|error| CrsError::Json(error.to_string()))?;
        return match json {
            Value::Object(_) => Ok(json),
            Value::String(text) if !text.starts_with('"') => parse_text(&text),
            Value::Array(_) => Err(CrsError::NoObject("a list")),
            _ => Err(CrsError::NoObject("a text")),
        };
    }
    if let Some(word) = wkt_word(text) {
        return wkt(word, text);
    }
    match authority_code(text) {
        Some((authority, code)) => identified(&authority, code),
        None => named(text),
    }
}

fn named(name: &str) -> Result<Value, CrsError> {
    if name.parse::<f64>().is_ok() {
        return Err(CrsError::Number(name.to_owned()));
    }
    if name.chars().any(char::is_alphabetic) && name != "null" {
        Ok(json!({ "name": name }))
    } else {
        Err(CrsError::Name)
    }
}

/// Splits `EPSG:25832`, `urn:ogc:def:crs:EPSG::25832` or
/// `http://www.opengis.net/def/crs/EPSG/0/25832`; `None` if the text is none of them.
fn authority_code(text: &str) -> Option<(String, &str)> {
    let lower = text.to_ascii_lowercase();
    let (authority, code) = if lower.starts_with("urn:") {
        let rest = text.get("urn:ogc:def:crs:".len()..)?;
        let (authority, rest) = rest.split_once(':')?;
        (authority, rest.rsplit_once(':')?.1)
    } else if let Some(at) = lower.find("opengis.net/def/crs/") {
        let rest = text.get(at.checked_add("opengis.net/def/crs/".len())?..)?;
        let (authority, rest) = rest.split_once('/')?;
        (authority, rest.rsplit_once('/')?.1)
    } else {
        text.split_once(':')?
    };
    let authority = authority.trim().to_ascii_uppercase();
    let is_known = NUMERIC
        .iter()
        .chain(&TEXTUAL)
        .any(|known| *known == authority);
    is_known.then_some((authority, code.trim()))
}

fn identified(authority: &str, code: &str) -> Result<Value, CrsError> {
    let id = if NUMERIC.contains(&authority) {
        let number = code.parse::<u32>().ok();
        let number = number.filter(|number| (1024..=999_999).contains(number));
        let is_digits = code.bytes().all(|byte| byte.is_ascii_digit());
        number.filter(|_| is_digits).map(Value::from)
    } else {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (!code.is_empty() && code.bytes().all(is_word)).then(|| Value::from(code))
    };
    let id = id.ok_or_else(|| CrsError::Code {
        authority: authority.to_owned(),
        code: code.to_owned(),
    })?;
    Ok(json!({
        "name": format!("{authority}:{code}"),
        "id": {"authority": authority, "code": id},
    }))
}

/// Returns the first word of a text that is WKT; `None` for other text.
fn wkt_word(text: &str) -> Option<&str> {
    let (word, _) = text.split_once(['[', '('])?;
    let word = word.trim_end();
    let is_known = WKT_WORDS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word));
    is_known.then_some(word)
}

/// Stores WKT together with its name and, if it ends in one, its identifier.
fn wkt(word: &str, text: &str) -> Result<Value, CrsError> {
    let mut depth = 0_usize;
    let mut is_quoted = false;
    // Start of the last element at depth 1, which holds the identifier of the whole.
    let mut last = 0_usize;
    let mut end = None;
    for (at, character) in text.char_indices() {
        match character {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '[' | '(' => depth = depth.saturating_add(1),
            ']' | ')' => {
                depth = depth.checked_sub(1).ok_or(CrsError::Wkt)?;
                if depth == 0 {
                    end = end.or(Some(at));
                }
            }
            ',' if depth == 1 => last = at.saturating_add(1),
            _ => {}
        }
    }
    let length = text.chars().next_back().map_or(0, char::len_utf8);
    let is_closed = end == text.len().checked_sub(length);
    if depth != 0 || is_quoted || !is_closed {
        return Err(CrsError::Wkt);
    }
    let mut crs = Map::new();
    let name = text
        .get(word.len()..)
        .and_then(|rest| rest.split('"').nth(1));
    let name = name.filter(|name| !name.is_empty()).unwrap_or(word);
    crs.insert("name".to_owned(), json!(name));
    if let Some(id) = end.and_then(|end| wkt_id(text.get(last..end)?)) {
        crs.insert("id".to_owned(), id);
    }
    crs.insert("wkt".to_owned(), json!(text));
    Ok(Value::Object(crs))
}

/// Parses `AUTHORITY["EPSG","25832"]` or `ID["EPSG",25832]`.
fn wkt_id(element: &str) -> Option<Value> {
    let element = element.trim();
    let (word, rest) = element.split_once(['[', '('])?;
    let is_id = ["AUTHORITY", "ID"]
        .iter()
        .any(|id| id.eq_ignore_ascii_case(word.trim()));
    if !is_id {
        return None;
    }
    let mut parts = rest.trim_end_matches([']', ')']).split(',');
    let mut next = || Some(parts.next()?.trim().trim_matches('"'));
    let (authority, code) = (next()?, next()?);
    let number = code.parse::<u32>().ok().map(Value::from);
    let code = number.unwrap_or_else(|| Value::from(code));
    Some(json!({"authority": authority, "code": code}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsg(code: u32) -> Value {
        let name = format!("EPSG:{code}");
        json!({"name": name, "id": {"authority": "EPSG", "code": code}})
    }

    #[test]
    fn codes_are_objects_with_an_id() {
        for text in [
            "EPSG:25832",
            "epsg:25832",
            "\"EPSG:25832\"",
            "urn:ogc:def:crs:EPSG::25832",
            "http://www.opengis.net/def/crs/EPSG/0/25832",
        ] {
            assert_eq!(parse(text), Ok(epsg(25832)), "{text}");
        }
        let crs84 = json!({"name": "OGC:CRS84", "id": {"authority": "OGC", "code": "CRS84"}});
        assert_eq!(parse("OGC:CRS84"), Ok(crs84));
    }

    #[test]
    fn names_and_objects_are_kept() {
        let name = "WGS 84 / UTM zone 32N";
        assert_eq!(parse(name), Ok(json!({ "name": name })));
        assert_eq!(parse("{\"a\": 1}"), Ok(json!({ "a": 1 })));
    }

    #[test]
    fn wkt_keeps_its_name_and_id() {
        let text = r#"PROJCS["ETRS89 / UTM zone 32N",GEOGCS["ETRS89",AUTHORITY["EPSG","4258"]],AUTHORITY["EPSG","25832"]]"#;
        let id = json!({"authority": "EPSG", "code": 25832});
        let name = "ETRS89 / UTM zone 32N";
        let expected = json!({"name": name, "id": id, "wkt": text});
        assert_eq!(parse(text), Ok(expected));
        let nested = r#"GEOGCRS["local (a)", DATUM["x", ID["EPSG", 1]]]"#;
        let expected = json!({"name": "local (a)", "wkt": nested});
        assert_eq!(parse(nested), Ok(expected));
    }

    #[test]
    fn files_hold_any_form() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crs.txt");
        let at = format!("@{}", path.display());
        for text in [
            "EPSG:4326\n",
            "\u{feff}{\"name\": \"EPSG:4326\", \"id\": {\"authority\": \"EPSG\", \"code\": 4326}}",
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(parse(&at), Ok(epsg(4326)));
        }
        assert!(matches!(parse("@/no/such"), Err(CrsError::File { .. })));
    }

    #[test]
    fn unusable_systems_are_refused() {
        let code = |authority: &str, code: &str| CrsError::Code {
            authority: authority.to_owned(),
            code: code.to_owned(),
        };
        assert_eq!(parse("EPSG:"), Err(code("EPSG", "")));
        assert_eq!(parse("EPSG:utm"), Err(code("EPSG", "utm")));
        assert_eq!(parse("EPSG:+25832"), Err(code("EPSG", "+25832")));
        assert_eq!(parse("EPSG:7"), Err(code("EPSG", "7")));
        assert_eq!(parse("25832"), Err(CrsError::Number("25832".to_owned())));
        assert_eq!(parse("[1]"), Err(CrsError::NoObject("a list")));
        assert!(matches!(parse("{a}"), Err(CrsError::Json(_))));
        for text in ["", " ", "null", "?"] {
            assert_eq!(parse(text), Err(CrsError::Name), "{text:?}");
        }
        for text in [
            "PROJCS[\"a\"",
            "PROJCS[\"a]",
            "GEOGCS[\"a\"]]",
            "GEOGCS[\"a\"] b",
        ] {
            assert_eq!(parse(text), Err(CrsError::Wkt), "{text:?}");
        }
    }
}
