//! The list of the leaves, in the attribute `zvf_seal` of the root.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use zvf_model::{base64, key::Key};

use crate::io::SealError;

/// The attribute of the root with the inventory.
pub(crate) const MEMBER: &str = "zvf_seal";
/// Version of the format of the inventory.
const FORMAT: u64 = 1;
/// Attributes of the root that its checksum leaves out: the state of the transaction, which is
/// written again when the transaction has been applied, and the inventory itself.
const UNSEALED_ATTRIBUTES: [&str; 2] = ["zvf", MEMBER];

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
        let mut root: Map<String, Value> =
            serde_json::from_slice(root).map_err(|_| SealError::Inventory)?;
        let Some(attributes) = root.get("attributes").and_then(Value::as_object) else {
            return Ok(None);
        };
        let Some(member) = attributes.get(MEMBER).cloned() else {
            return Ok(None);
        };
        let state = attributes.get("zvf");
        let number = state.map_or(Some(0), |state| state.get("transaction")?.as_u64());
        let (index, crc) = Self::from_json(&member).ok_or(SealError::Inventory)?;
        if number != Some(index.transaction) {
            return Ok(None);
        }
        if crc != checksum(&mut root).ok_or(SealError::Inventory)? {
            return Err(SealError::Contents);
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
        let attributes = root.get_mut("attributes")?.as_object_mut()?;
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
        let leaves = member.get("leaves")?.as_array()?.iter().map(leaf);
        let leaves: Vec<(String, LeafPlace)> = leaves.collect::<Option<_>>()?;
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

/// Returns the checksum of a root without the members that are written apart.
fn checksum(root: &mut Map<String, Value>) -> Option<u32> {
    let attributes = root.get_mut("attributes")?.as_object_mut()?;
    for member in UNSEALED_ATTRIBUTES {
        attributes.remove(member);
    }
    Some(crc32fast::hash(&serde_json::to_vec(root).ok()?))
}
