//! Streaming access to two members of the root's attributes.
//!
//! The root may hold a copy of all nodes and is read several times in a transaction, so the rest of
//! it is skipped.

use core::fmt;

use serde_core::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use zvf_model::node_copy::MEMBER as NODE_COPY_MEMBER;

use super::layout::{ATTRIBUTES, STATE_MEMBER};

/// The members of the root's attributes that transactions use.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RootMembers {
    pub(super) state: Option<Value>,
    pub(super) has_node_copy: bool,
}

impl RootMembers {
    /// Parses a root document; `None` when it is not a JSON object.
    pub(super) fn parse(document: &[u8]) -> Option<Self> {
        if let Ok(Root(members)) = serde_json::from_slice(document) {
            return Some(members);
        }
        // Attributes that are not an object have no members.
        let _: Map<String, Value> = serde_json::from_slice(document).ok()?;
        Some(Self::default())
    }
}

struct Root(RootMembers);

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RootVisitor).map(Self)
    }
}

struct RootVisitor;

impl<'de> Visitor<'de> for RootVisitor {
    type Value = RootMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RootMembers, A::Error> {
        let mut members = RootMembers::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == ATTRIBUTES {
                members = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(members)
    }
}

impl<'de> Deserialize<'de> for RootMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AttributesVisitor)
    }
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = RootMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of attributes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RootMembers, A::Error> {
        let mut members = RootMembers::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == STATE_MEMBER {
                members.state = Some(map.next_value()?);
                continue;
            }
            members.has_node_copy |= name == NODE_COPY_MEMBER;
            map.next_value::<IgnoredAny>()?;
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the state member as text; `-` if it is missing.
    fn state(text: &str) -> Option<String> {
        let members = RootMembers::parse(text.as_bytes())?;
        Some(
            members
                .state
                .map_or("-".to_owned(), |state| state.to_string()),
        )
    }

    #[test]
    fn finds_members_and_skips_the_rest() {
        let text = r#"{"a": [1], "attributes": {"b": {}, "zvf": {"id": "x"}, "zvf_nodes": 3}}"#;
        let members = RootMembers::parse(text.as_bytes()).unwrap();
        assert_eq!(members.state, Some(json!({"id": "x"})));
        assert!(members.has_node_copy);
        assert_eq!(RootMembers::parse(b"{}"), Some(RootMembers::default()));
    }

    #[test]
    fn unusual_documents_are_read_as_any_json_parser_would() {
        assert_eq!(state("[]"), None);
        assert_eq!(state("{"), None);
        for (text, want) in [
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
            assert_eq!(state(text).as_deref(), Some(want), "{text}");
        }
    }
}
