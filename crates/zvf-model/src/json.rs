//! JSON that the engine stores or returns without interpreting it.

use core::{fmt, str::FromStr};
use std::collections::BTreeMap;

use serde_core::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// A JSON value: a coordinate reference system, the recipe of a plan, a report.
///
/// It is read from text and printed as text, on one line with `{}` and on several with `{:#}`.
/// Programs that use `serde_json` convert from and into its `Value`, and borrow it with `as_ref`.
///
/// ```
/// use zvf_model::json::Json;
///
/// let json: Json = r#"{"type": "EPSG", "code": 25832}"#.parse()?;
/// assert_eq!(json.to_string(), r#"{"type":"EPSG","code":25832}"#);
/// assert_eq!(json, serde_json::json!({"type": "EPSG", "code": 25832}).into());
/// assert!("{".parse::<Json>().is_err());
/// # Ok::<(), zvf_model::json::JsonError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Json(Value);

/// The error of text that is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("the text is not JSON")]
pub struct JsonError(#[source] serde_json::Error);

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Json {
    type Err = JsonError;

    fn from_str(text: &str) -> Result<Self, JsonError> {
        serde_json::from_str(text).map(Self).map_err(JsonError)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        json.0
    }
}

impl AsRef<Value> for Json {
    fn as_ref(&self) -> &Value {
        &self.0
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self(value.into())
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self(value.into())
    }
}

/// Reads a member of a JSON object as a type: a number, text, a list, a map. Returns `None` if it is
/// missing or of another type. A null is the `None` of an [`Option`].
///
/// ```
/// use zvf_model::json::{Json, member};
///
/// let plan: Json = r#"{"tasks": 16, "axes": ["x", "y"], "limit": null}"#.parse()?;
/// assert_eq!(member(plan.as_ref(), "tasks"), Some(16_u32));
/// assert_eq!(member(plan.as_ref(), "axes"), Some(vec!["x", "y"]));
/// assert_eq!(member::<Option<u64>>(plan.as_ref(), "limit"), Some(None));
/// assert_eq!(member::<Option<u64>>(plan.as_ref(), "depth"), None);
/// assert_eq!(member::<u32>(plan.as_ref(), "axes"), None);
/// # Ok::<(), zvf_model::json::JsonError>(())
/// ```
pub fn member<'a, T: Deserialize<'a>>(object: &'a Value, name: &str) -> Option<T> {
    T::deserialize(object.get(name)?).ok()
}

/// Headers of source files: a JSON object for each format, which a store keeps for the writers of
/// that format.
///
/// ```
/// use zvf_model::json::Headers;
///
/// let mut headers = Headers::default();
/// headers.insert("las", r#"{"system": "scanner"}"#.parse()?)?;
/// assert!(headers.insert("ply", 1.into()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headers(BTreeMap<String, Map<String, Value>>);

/// The error of a header that is not a JSON object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header of format {0} is not a JSON object")]
pub struct HeaderError(String);

impl Headers {
    /// Sets the header of a format.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] if it is not an object.
    pub fn insert(&mut self, format: impl Into<String>, header: Json) -> Result<(), HeaderError> {
        let format = format.into();
        match header.0 {
            Value::Object(header) => {
                self.0.insert(format, header);
                Ok(())
            }
            _ => Err(HeaderError(format)),
        }
    }

    /// Returns whether there is no header.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<BTreeMap<String, Map<String, Value>>> for Headers {
    fn from(headers: BTreeMap<String, Map<String, Value>>) -> Self {
        Self(headers)
    }
}

impl AsRef<BTreeMap<String, Map<String, Value>>> for Headers {
    fn as_ref(&self) -> &BTreeMap<String, Map<String, Value>> {
        &self.0
    }
}
