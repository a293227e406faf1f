//! JSON documents, with the members that occur twice in an object.

use core::fmt;

use serde_core::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Number, Value};

/// Maximum number of paths of repeated members that are kept.
const MAX_REPEATED: usize = 16;

/// A parsed document.
pub(crate) struct Document {
    pub(crate) value: Value,
    /// Paths of members that occur twice in their object, at most [`MAX_REPEATED`]. `value` has the
    /// last of each, as most readers do.
    pub(crate) repeated: Vec<String>,
}

impl Document {
    /// Parses a document. `serde_json` stops at a depth of 128.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        if let Ok(value) = parse(bytes, Unique) {
            return Ok(Self {
                value,
                repeated: Vec::new(),
            });
        }
        // Names are followed in the rare document that needs them.
        let mut repeated = Vec::new();
        let place = Place {
            parent: None,
            name: "",
            repeated: &mut repeated,
        };
        let value = parse(bytes, place)?;
        Ok(Self { value, repeated })
    }
}

fn parse<'de>(
    bytes: &'de [u8],
    seed: impl DeserializeSeed<'de, Value = Value>,
) -> Result<Value, serde_json::Error> {
    let mut deserializer = Deserializer::from_slice(bytes);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Implements the parsing of values other than lists and objects.
macro_rules! scalars {
    () => {
        type Value = Value;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any JSON value")
        }

        fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
            Ok(Value::Bool(value))
        }

        fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
            Ok(Value::Number(value.into()))
        }

        fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
            Ok(Value::Number(value.into()))
        }

        fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
            Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
        }

        fn visit_str<E>(self, value: &str) -> Result<Value, E> {
            Ok(Value::String(value.to_owned()))
        }

        fn visit_string<E>(self, value: String) -> Result<Value, E> {
            Ok(Value::String(value))
        }

        fn visit_unit<E>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }
    };
}

/// A value without repeated members. Others are an error. Costs no more than parsing a [`Value`].
struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = Value;

    #[inline]
    fn deserialize<D: serde_core::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    scalars!();

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key()? {
            if object
                .insert(name, members.next_value_seed(Self)?)
                .is_some()
            {
                return Err(A::Error::custom("a member occurs twice"));
            }
        }
        Ok(Value::Object(object))
    }
}

/// The names of the members around a value.
struct Names<'a> {
    parent: Option<&'a Names<'a>>,
    name: &'a str,
}

impl Names<'_> {
    fn path(&self) -> String {
        match self.parent.map(Names::path) {
            Some(parent) if !parent.is_empty() => format!("{parent}.{}", self.name),
            _ => self.name.to_owned(),
        }
    }
}

/// The place of a value whose repeated members are found.
struct Place<'a> {
    parent: Option<&'a Names<'a>>,
    name: &'a str,
    repeated: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: serde_core::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Place {
            parent: self.parent,
            name: self.name,
            repeated: &mut *self.repeated,
        })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let names = Names {
            parent: self.parent,
            name: self.name,
        };
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Place {
                parent: Some(&names),
                name: &name,
                repeated: &mut *self.repeated,
            })?;
            if object.contains_key(&name) && self.repeated.len() < MAX_REPEATED {
                let parent = Some(&names);
                let name = &name;
                self.repeated.push(Names { parent, name }.path());
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_members_are_found_at_every_depth() {
        let json = br#"{"a": 1, "b": [{"c": {"d": 1, "d": 2}}], "a": {"x": 1}, "a": 3}"#;
        let document = Document::parse(json).unwrap();
        assert_eq!(document.value, json!({"a": 3, "b": [{"c": {"d": 2}}]}));
        assert_eq!(document.repeated, ["b.c.d", "a", "a"]);
    }

    #[test]
    fn their_number_is_bounded() {
        let members = vec![r#""a": 1"#; 1000].join(",");
        let document = Document::parse(format!("{{{members}}}").as_bytes()).unwrap();
        assert_eq!(document.repeated.len(), MAX_REPEATED);
    }

    #[test]
    fn invalid_documents_are_rejected_as_by_serde_json() {
        let deep = "[".repeat(200);
        for text in ["", "{", "{} x", "[1,]", "1e999", "nul", "{\"a\" 1}", &deep] {
            let expected = serde_json::from_slice::<Value>(text.as_bytes()).unwrap_err();
            let found = Document::parse(text.as_bytes()).err().unwrap();
            assert_eq!(found.to_string(), expected.to_string(), "{text}");
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_are_those_of_serde_json(value in any_value()) {
            let text = value.to_string();
            let document = Document::parse(text.as_bytes()).unwrap();
            let expected: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(document.value, expected);
            prop_assert!(document.repeated.is_empty());
        }
    }
}
