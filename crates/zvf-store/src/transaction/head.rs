//! The head of a store: the root's `zarr.json`, and what it says of the last
//! transaction in the member `zvf` of its attributes.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    time::SystemTime,
};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use zvf_model::{
    key::{Key, KeyError},
    node_copy::{MEMBER as MEMBER_OF_NODES, NodeCopy},
};

use super::{
    TransactionError,
    copy::{Nodes, copy_in, text},
    lock::FolderLock,
    record::{Record, bad},
    root::Members,
};
use crate::{overlay::HOME, store::Store, write::Tag};

/// Where the head is.
pub(super) const ROOT: &str = "zarr.json";
pub(super) const ATTRIBUTES: &str = "attributes";
pub(super) const MEMBER: &str = "zvf";

/// The head as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(super) document: Bytes,
    pub(super) tag: Tag,
    pub(super) state: State,
}

/// What the head says of the last transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// 0 in a store that never had one.
    pub(crate) transaction: u64,
    pub(crate) id: Option<Id>,
    /// Whether it may not have been applied yet.
    pub(crate) pending: bool,
}

/// What tells a transaction from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id(String);

impl Head {
    pub(super) fn key() -> Result<Key, KeyError> {
        Key::parse(ROOT)
    }

    /// Whether it is that of a transaction which may not have been applied yet.
    pub(super) fn is_pending(&self, id: &Id) -> bool {
        self.state.pending && self.state.id.as_ref() == Some(id)
    }

    /// The document once all is applied.
    pub(super) fn settled(&self) -> Result<Bytes, TransactionError> {
        let state = State {
            pending: false,
            ..self.state.clone()
        };
        state.put_into(&self.document)
    }
}

impl State {
    /// What a document says; `None` when it is no JSON object.
    pub(crate) fn if_json(document: &[u8]) -> Result<Option<Self>, TransactionError> {
        let Some(members) = Members::of(document) else {
            return Ok(None);
        };
        let Some(member) = members.head else {
            return Ok(Some(Self::default()));
        };
        let key = Head::key()?;
        let record = Record::of(&key, &member)?;
        let id = Id::parse(record.text("id")?).ok_or_else(|| bad(&key, "id"))?;
        Ok(Some(Self {
            transaction: record.number("transaction")?,
            id: Some(id),
            pending: record.flag("pending")?,
        }))
    }

    /// A document that says this. What is in it of the copy of the nodes stays.
    pub(super) fn put_into(&self, document: &[u8]) -> Result<Bytes, TransactionError> {
        self.written(document, |_, _| {})
    }

    /// The same, with the copy of the nodes as they are once `nodes` are put and gone.
    /// The document is that of `base` changed, and has a copy if that one had; one that
    /// begins `anew` has one of these nodes alone.
    pub(super) fn put_with(
        &self,
        document: &[u8],
        (nodes, base, anew): (&Nodes, u64, bool),
    ) -> Result<Bytes, TransactionError> {
        let key = Head::key()?;
        self.written(document, |attributes, number| {
            let before = match anew {
                true => Some(NodeCopy::new()),
                false => copy_in(&key, attributes, base),
            };
            attributes.remove(MEMBER_OF_NODES);
            if let Some(copy) = before.and_then(|copy| nodes.over(copy, number)) {
                attributes.insert(MEMBER_OF_NODES.to_owned(), copy);
            }
        })
    }

    /// The same without such a copy.
    pub(super) fn put_without(&self, document: &[u8]) -> Result<Bytes, TransactionError> {
        self.written(document, |attributes, _| {
            attributes.remove(MEMBER_OF_NODES);
        })
    }

    fn written(
        &self,
        document: &[u8],
        change: impl FnOnce(&mut Map<String, Value>, u64),
    ) -> Result<Bytes, TransactionError> {
        let key = Head::key()?;
        let document = serde_json::from_slice(document);
        let mut document: Map<String, Value> =
            document.map_err(|_| super::record::no_json(&key))?;
        let attributes = document
            .entry(ATTRIBUTES)
            .or_insert_with(|| Value::Object(Map::new()));
        let attributes = attributes
            .as_object_mut()
            .ok_or_else(|| bad(&key, ATTRIBUTES))?;
        attributes.remove(MEMBER);
        if let Some(Id(id)) = &self.id {
            let mut member = json!({"transaction": self.transaction, "id": id});
            if let (true, Some(member)) = (self.pending, member.as_object_mut()) {
                member.insert("pending".to_owned(), true.into());
            }
            attributes.insert(MEMBER.to_owned(), member);
        }
        change(attributes, self.transaction);
        text(&mut document).map_err(|_| super::record::no_json(&key))
    }
}

impl Id {
    /// One that nobody else has. The standard library seeds its hashers with
    /// random numbers of the system, and each of them differently.
    pub(super) fn random() -> Self {
        let word = || {
            let mut hasher = RandomState::new().build_hasher();
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            hasher.write_u128(now.map_or(0, |now| now.as_nanos()));
            hasher.write_u32(std::process::id());
            hasher.finish()
        };
        Self(format!("{:016x}{:016x}", word(), word()))
    }

    /// Hexadecimal digits, so that no record leads out of the folder.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (hex && (1..=64).contains(&text.len())).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Where its objects wait.
    pub(super) fn folder(&self) -> Result<Key, KeyError> {
        Key::parse(HOME)?.join(&self.0)
    }
}

/// How often a head that others keep changing is looked at.
pub(super) const LOOKS: usize = 1000;

impl Store {
    /// The head; `None` when there is no store.
    pub(super) async fn head(&self) -> Result<Option<Head>, TransactionError> {
        let key = Head::key()?;
        let Some((document, tag)) = self.fetch_tagged(&key).await? else {
            return Ok(None);
        };
        let state = State::if_json(&document)?;
        let state = state.ok_or_else(|| super::record::no_json(&key))?;
        Ok(Some(Head {
            document,
            tag,
            state,
        }))
    }

    /// The head once all of its transaction is applied, here if need be.
    pub(super) async fn settled_head(&self) -> Result<Head, TransactionError> {
        for _ in 0..LOOKS {
            let head = self.head().await?.ok_or(TransactionError::NoStore)?;
            if !head.state.pending {
                return Ok(head);
            }
            if self.folder().is_some() {
                let lock = self.lock().await?;
                return self.settled_head_under(&lock).await;
            }
            self.finish(&head).await?;
        }
        Err(TransactionError::Contended)
    }

    /// The same, when nobody else can change it.
    pub(super) async fn settled_head_under(
        &self,
        lock: &FolderLock,
    ) -> Result<Head, TransactionError> {
        for _ in 0..2 {
            let head = self.head().await?.ok_or(TransactionError::NoStore)?;
            if !head.state.pending {
                return Ok(head);
            }
            self.finish_under(lock, &head).await?;
        }
        Err(TransactionError::Contended)
    }
}
