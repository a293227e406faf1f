//! What the head of a store says of itself, without keeping the rest of it: the root
//! holds a copy of all nodes, and is read several times in a transaction.

use core::fmt;

use serde_core::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::{copy, head};

/// The members of a root's attributes that transactions care for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Members {
    pub(super) head: Option<Value>,
    pub(super) has_copy: bool,
}

impl Members {
    /// `None` of what is no JSON object.
    pub(super) fn of(document: &[u8]) -> Option<Self> {
        if let Ok(Root(members)) = serde_json::from_slice(document) {
            return Some(members);
        }
        // Its attributes may be no object: then they have no members.
        let _: Map<String, Value> = serde_json::from_slice(document).ok()?;
        Some(Self::default())
    }
}

struct Root(Members);

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RootVisitor).map(Self)
    }
}

struct RootVisitor;

impl<'de> Visitor<'de> for RootVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == head::ATTRIBUTES {
                members = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(members)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AttributesVisitor)
    }
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of attributes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == head::MEMBER {
                members.head = Some(map.next_value()?);
                continue;
            }
            members.has_copy |= name == copy::MEMBER;
            map.next_value::<IgnoredAny>()?;
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The member as text; `-` where there is none.
    fn head(text: &str) -> Option<String> {
        let members = Members::of(text.as_bytes())?;
        Some(members.head.map_or("-".to_owned(), |head| head.to_string()))
    }

    #[test]
    fn finds_members_and_skips_the_rest() {
        let text = r#"{"a": [1], "attributes": {"b": {}, "zvf": {"id": "x"}, "zvf_nodes": 3}}"#;
        let members = Members::of(text.as_bytes()).unwrap();
        assert_eq!(members.head, Some(json!({"id": "x"})));
        assert!(members.has_copy);
        assert_eq!(Members::of(b"{}"), Some(Members::default()));
    }

    #[test]
    fn what_is_odd_says_what_any_json_would() {
        assert_eq!(head("[]"), None);
        assert_eq!(head("{"), None);
        for (text, says) in [
            (r#"{"attributes": 3}"#, "-"),
            (r#"{"attributes": [3]}"#, "-"),
            (r#"{"attributes": null}"#, "-"),
            (r#"{"attributes": {"zvf": null}}"#, "null"),
            (r#"{"attributes": {"zvf": 1, "zvf": 2}}"#, "2"),
            (
                r#"{"attributes": {"zvf": 1}, "attributes": {"zvf": 2}}"#,
                "2",
            ),
        ] {
            assert_eq!(head(text).as_deref(), Some(says), "{text}");
        }
    }
}
