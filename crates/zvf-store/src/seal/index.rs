//! The list of the leaves, in the attribute `zvf_seal` of the root.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json, value::RawValue};
use zvf_model::{base64, key::Key};

use crate::io::SealError;

/// The attribute of the root with the inventory.
pub(crate) const MEMBER: &str = "zvf_seal";
/// Version of the format of the inventory.
const FORMAT: u64 = 1;
/// Attributes of the root that its checksum leaves out: the state of the transaction, which is
/// written again when the transaction has been applied, and the inventory itself.
const UNSEALED_ATTRIBUTES: [&str; 2] = ["zvf", MEMBER];
const ATTRIBUTES: &str = "attributes";

/// Members of an object, by name, as text.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The inventory as the root describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealIndex {
    pub(crate) transaction: u64,
    /// The leaves, by the name of their first entry, ascending.
    pub(crate) leaves: Vec<(String, LeafPlace)>,
}

/// The bytes of a leaf, or the object that they are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeafPlace {
    Inline(Bytes),
    Object { key: Key, bytes: u64, crc: u32 },
}

impl SealIndex {
    /// Returns whether a root document may have an inventory, without parsing it.
    pub(crate) fn may_be_in(root: &[u8]) -> bool {
        // A damaged root that is not text is reported by its reader.
        core::str::from_utf8(root).is_ok_and(|text| text.contains(MEMBER))
    }

    /// Parses the inventory in a root document, if it is of the last transaction of the root.
    ///
    /// An inventory of another transaction was left by a program that does not know it, and counts
    /// as absent. The checksum of the root is verified.
    pub(crate) fn parse(root: &[u8]) -> Result<Option<Self>, SealError> {
        if !Self::may_be_in(root) {
            return Ok(None);
        }
        let members: Members<'_> =
            serde_json::from_slice(root).map_err(|_| SealError::Inventory)?;
        let attributes = members
            .get(ATTRIBUTES)
            .map(|all| serde_json::from_str::<Members<'_>>(all.get()));
        let Some(Ok(mut attributes)) = attributes else {
            return Ok(None);
        };
        let [state, member] = UNSEALED_ATTRIBUTES.map(|name| attributes.remove(name));
        let Some(member) = member else {
            return Ok(None);
        };
        let value = |text: &RawValue| -> Result<Value, SealError> {
            serde_json::from_str(text.get()).map_err(|_| SealError::Inventory)
        };
        let number = match state {
            Some(state) => value(state)?.get("transaction").and_then(Value::as_u64),
            None => Some(0),
        };
        let (index, crc) = Self::from_json(&value(member)?).ok_or(SealError::Inventory)?;
        if number != Some(index.transaction) {
            return Ok(None);
        }
        if Some(crc) != checksum_of_text(&members, &attributes) {
            // Another program may have formatted the text.
            let mut root = serde_json::from_slice(root).map_err(|_| SealError::Inventory)?;
            if crc != checksum(&mut root).ok_or(SealError::Inventory)? {
                return Err(SealError::Contents);
            }
        }
        Ok(Some(index))
    }

    /// Adds the inventory to the root, whose other members must be complete.
    pub(crate) fn insert_into(&self, root: &mut Map<String, Value>) -> Option<()> {
        let crc = checksum(&mut root.clone())?;
        let leaves = self.leaves.iter().map(|(first, place)| match place {
            LeafPlace::Inline(bytes) => json!([first, base64::encode(bytes)]),
            LeafPlace::Object { key, bytes, crc } => json!([first, key.as_str(), bytes, crc]),
        });
        let member = json!({
            "format": FORMAT,
            "transaction": self.transaction,
            "root": crc,
            "leaves": leaves.collect::<Vec<_>>(),
        });
        let attributes = root.get_mut(ATTRIBUTES)?.as_object_mut()?;
        attributes.insert(MEMBER.to_owned(), member);
        Some(())
    }

    /// Returns the keys of leaves that are objects.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Key> {
        self.leaves.iter().filter_map(|(_, place)| match place {
            LeafPlace::Inline(_) => None,
            LeafPlace::Object { key, .. } => Some(key),
        })
    }

    fn from_json(member: &Value) -> Option<(Self, u32)> {
        if member.get("format")?.as_u64()? != FORMAT {
            return None;
        }
        let leaf = |leaf: &Value| match leaf.as_array()?.as_slice() {
            [first, bytes] => {
                let bytes = base64::decode(bytes.as_str()?.as_bytes()).ok()?;
                let place = LeafPlace::Inline(bytes.into());
                Some((first.as_str()?.to_owned(), place))
            }
            [first, key, bytes, crc] => {
                let key = Key::parse(key.as_str()?).ok()?;
                if !key.as_str().starts_with(".zvf/seal/") {
                    return None;
                }
                let place = LeafPlace::Object {
                    key,
                    bytes: bytes.as_u64()?,
                    crc: u32::try_from(crc.as_u64()?).ok()?,
                };
                Some((first.as_str()?.to_owned(), place))
            }
            _ => None,
        };
        let leaves: Vec<(String, LeafPlace)> = member
            .get("leaves")?
            .as_array()?
            .iter()
            .map(leaf)
            .collect::<Option<_>>()?;
        let crc = u32::try_from(member.get("root")?.as_u64()?).ok()?;
        let transaction = member.get("transaction")?.as_u64()?;
        leaves.is_sorted_by(|(a, _), (b, _)| a < b).then_some((
            Self {
                transaction,
                leaves,
            },
            crc,
        ))
    }
}

/// Returns the checksum of a root without the members that are written apart: that of its text
/// without spaces and with sorted members.
fn checksum(root: &mut Map<String, Value>) -> Option<u32> {
    let attributes = root.get_mut(ATTRIBUTES)?.as_object_mut()?;
    for member in UNSEALED_ATTRIBUTES {
        attributes.remove(member);
    }
    let mut root = Value::Object(core::mem::take(root));
    // They are not sorted if another crate of the program enables `preserve_order` of `serde_json`.
    root.sort_all_objects();
    Some(crc32fast::hash(&serde_json::to_vec(&root).ok()?))
}

/// Returns the [checksum](checksum()) of a root from the text of its members and of its sealed
/// attributes, which are sorted and formatted as `serde_json` does it. Parsing all values would take
/// most of the time of opening a store.
fn checksum_of_text(root: &Members<'_>, attributes: &Members<'_>) -> Option<u32> {
    let mut text = Vec::new();
    for (at, (name, value)) in root.iter().enumerate() {
        push_name(&mut text, at, name)?;
        if name != ATTRIBUTES {
            push_without_spaces(&mut text, value.get());
            continue;
        }
        for (at, (name, value)) in attributes.iter().enumerate() {
            push_name(&mut text, at, name)?;
            push_without_spaces(&mut text, value.get());
        }
        text.extend_from_slice(if attributes.is_empty() { b"{}" } else { b"}" });
    }
    text.push(b'}');
    Some(crc32fast::hash(&text))
}

/// Appends the name of a member of an object, and what is before it.
fn push_name(text: &mut Vec<u8>, at: usize, name: &str) -> Option<()> {
    text.push(if at == 0 { b'{' } else { b',' });
    serde_json::to_writer(&mut *text, name).ok()?;
    text.push(b':');
    Some(())
}

/// Appends the text of a value without the spaces between its tokens.
fn push_without_spaces(text: &mut Vec<u8>, value: &str) {
    let mut rest = value.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'"') {
        let (before, string) = rest.split_at(at);
        text.extend(before.iter().filter(|byte| !byte.is_ascii_whitespace()));
        let mut is_escaped = false;
        let end = string.iter().skip(1).position(|byte| {
            let is_end = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        });
        let (string, after) =
            string.split_at(end.map_or(string.len(), |end| end.saturating_add(2)));
        text.extend_from_slice(string);
        rest = after;
    }
    text.extend(rest.iter().filter(|byte| !byte.is_ascii_whitespace()));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\"\\\\ {},:]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..5)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        /// The text decides, without the values being parsed.
        #[test]
        fn the_checksum_of_the_text_is_that_of_the_values(
            members in prop::collection::btree_map(any::<String>(), any_value(), 0..5),
            attributes in prop::collection::btree_map(any::<String>(), any_value(), 0..5),
        ) {
            let mut members: BTreeMap<String, Value> = members;
            members.insert(ATTRIBUTES.to_owned(), attributes.into_iter().collect());
            // Sorted also with `preserve_order`.
            let mut root: Map<String, Value> = members.into_iter().collect();
            let text = serde_json::to_string_pretty(&root).unwrap();
            let members: Members<'_> = serde_json::from_str(&text).unwrap();
            let attributes: Members<'_> =
                serde_json::from_str(members[ATTRIBUTES].get()).unwrap();
            prop_assert_eq!(checksum_of_text(&members, &attributes), checksum(&mut root));
        }
    }

    /// Programs with and without `preserve_order` of `serde_json` read each other's roots.
    #[test]
    fn the_order_of_members_does_not_matter() {
        let one = r#"{"z": {"b": 1, "a": 2}, "attributes": {"y": 1, "x": [{"d": 1, "c": 2}]}}"#;
        let other = r#"{"attributes": {"x": [{"c": 2, "d": 1}], "y": 1}, "z": {"a": 2, "b": 1}}"#;
        let [one, other] = [one, other].map(|text| {
            let mut root = serde_json::from_str(text).unwrap();
            checksum(&mut root).unwrap()
        });
        assert_eq!(one, other);
    }

    #[test]
    fn a_state_that_is_not_json_is_not_skipped() {
        let text = r#"{"attributes": {"zvf": {"transaction": 1e999}, "zvf_seal": {}}}"#;
        let parsed = SealIndex::parse(text.as_bytes());
        assert!(matches!(parsed, Err(SealError::Inventory)), "{parsed:?}");
    }

    #[test]
    fn a_root_in_another_format_is_verified() {
        let mut root =
            json!({"attributes": {"a": 1.0, "b": [2, {"c d": "e \\\" f"}]}, "zarr_format": 3})
                .as_object()
                .unwrap()
                .clone();
        let index = SealIndex {
            transaction: 0,
            leaves: vec![("a".to_owned(), LeafPlace::Inline(Bytes::from_static(b"x")))],
        };
        index.insert_into(&mut root).unwrap();
        let text = serde_json::to_string_pretty(&root).unwrap();
        let unsorted = text.replace("1.0", "1e0");
        assert_ne!(unsorted, text);
        for text in [&text, &unsorted, &Value::from(root).to_string()] {
            assert_eq!(
                SealIndex::parse(text.as_bytes()).unwrap(),
                Some(index.clone())
            );
            let changed = text.replace("\"c d\"", "\"cd\"");
            assert!(matches!(
                SealIndex::parse(changed.as_bytes()),
                Err(SealError::Contents)
            ));
        }
    }
}
