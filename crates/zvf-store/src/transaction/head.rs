//! The head of a store: the root's `zarr.json`, whose attributes hold the state of the last
//! transaction in the member `zvf`.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use zvf_model::node_copy::{MEMBER as NODE_COPY_MEMBER, NodeCopy};

use super::{
    TransactionError,
    id::TransactionId,
    layout::{ATTRIBUTES, STATE_MEMBER, head_key},
    lock::FolderLock,
    node_copy::{NodeChanges, copy_in, to_text},
    record::{Record, invalid_member, not_json},
    root_members::RootMembers,
};
use crate::{io::ObjectVersion, seal::MEMBER as SEAL_MEMBER, store::Store};

/// The head and its version.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) document: Bytes,
    pub(super) version: ObjectVersion,
    pub(super) state: State,
}

/// The state of the last transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Number of the transaction; 0 in a store that never had one.
    pub(super) transaction: u64,
    pub(super) id: Option<TransactionId>,
    /// The transaction may not have been applied completely.
    pub(super) pending: bool,
}

/// A change of the node copy in the root.
#[derive(Clone, Copy)]
pub(super) struct NodeCopyUpdate<'a> {
    pub(super) changes: &'a NodeChanges,
    /// The transaction whose copy is changed, if the root has that; `None` to write a new copy of
    /// the changed nodes alone.
    pub(super) base: Option<u64>,
}

impl Head {
    /// Returns whether transaction `id` is the last one and may not have been applied completely.
    pub(super) fn is_pending(&self, id: &TransactionId) -> bool {
        self.state.pending && self.state.id.as_ref() == Some(id)
    }

    /// Returns whether transaction `id` is the last one.
    pub(super) fn is_of(&self, id: &str) -> bool {
        let last = self.state.id.as_ref();
        last.is_some_and(|last| last.as_str() == id)
    }

    /// Returns the document without the pending mark.
    pub(super) fn without_pending_mark(&self) -> Result<Bytes, TransactionError> {
        let state = State {
            pending: false,
            ..self.state.clone()
        };
        state.write_into(&self.document)
    }
}

impl State {
    /// Returns whether a root document may have a state, without parsing it.
    pub(super) fn may_be_in(document: &[u8]) -> bool {
        // With an escape, the name of the member could be written in another way.
        let may_be = |text: &str| text.contains("\"zvf\"") || text.contains("\\u");
        core::str::from_utf8(document).map_or(true, may_be)
    }

    /// Parses the state in a root document; `None` when the document is not a JSON object.
    pub(super) fn if_json(document: &[u8]) -> Result<Option<Self>, TransactionError> {
        let Some(members) = RootMembers::parse(document) else {
            return Ok(None);
        };
        let Some(member) = members.state else {
            return Ok(Some(Self::default()));
        };
        let key = head_key()?;
        let record = Record::new(&key, &member).map_err(|_| invalid_member(&key, "zvf"))?;
        let id =
            TransactionId::parse(record.text("id")?).ok_or_else(|| invalid_member(&key, "id"))?;
        let transaction = record.number("transaction")?;
        if transaction == u64::MAX {
            // No other transaction could follow.
            return Err(invalid_member(&key, "transaction"));
        }
        Ok(Some(Self {
            transaction,
            id: Some(id),
            pending: record.flag("pending")?,
        }))
    }

    /// Returns `document` with this state. Its node copy stays.
    pub(super) fn write_into(&self, document: &[u8]) -> Result<Bytes, TransactionError> {
        self.write_with(document, |_, _| {})
    }

    /// Returns `document` with this state and with its node copy updated.
    pub(super) fn write_with_node_copy(
        &self,
        document: &[u8],
        update: NodeCopyUpdate<'_>,
    ) -> Result<Bytes, TransactionError> {
        let key = head_key()?;
        self.write_with(document, |attributes, number| {
            let before = match update.base {
                None => Some(NodeCopy::new()),
                Some(base) => copy_in(&key, attributes, base),
            };
            attributes.remove(SEAL_MEMBER);
            attributes.remove(NODE_COPY_MEMBER);
            if let Some(copy) = before.and_then(|copy| update.changes.apply_to(copy, number)) {
                attributes.insert(NODE_COPY_MEMBER.to_owned(), copy);
            }
        })
    }

    /// Returns `document` with this state and without a node copy.
    pub(super) fn write_without_node_copy(
        &self,
        document: &[u8],
    ) -> Result<Bytes, TransactionError> {
        self.write_with(document, |attributes, _| {
            attributes.remove(SEAL_MEMBER);
            attributes.remove(NODE_COPY_MEMBER);
        })
    }

    fn write_with(
        &self,
        document: &[u8],
        change: impl FnOnce(&mut Map<String, Value>, u64),
    ) -> Result<Bytes, TransactionError> {
        let key = head_key()?;
        let mut document: Map<String, Value> =
            serde_json::from_slice(document).map_err(|_| not_json(&key))?;
        let attributes = document
            .entry(ATTRIBUTES)
            .or_insert_with(|| Value::Object(Map::new()))
            .as_object_mut()
            .ok_or_else(|| invalid_member(&key, ATTRIBUTES))?;
        attributes.remove(STATE_MEMBER);
        if let Some(id) = &self.id {
            let mut member = json!({"transaction": self.transaction, "id": id.as_str()});
            if let (true, Some(member)) = (self.pending, member.as_object_mut()) {
                member.insert("pending".to_owned(), true.into());
            }
            attributes.insert(STATE_MEMBER.to_owned(), member);
        }
        change(attributes, self.transaction);
        to_text(&mut document).map_err(|_| not_json(&key))
    }
}

/// Maximum number of attempts at a head that other writers keep changing.
pub(super) const MAX_ATTEMPTS: usize = 1000;

impl Store {
    /// Reads the head; `None` when there is no store.
    pub(super) async fn head(&self) -> Result<Option<Head>, TransactionError> {
        let key = head_key()?;
        let Some((document, version)) = self.fetch_versioned(&key).await? else {
            return Ok(None);
        };
        let state = State::if_json(&document)?.ok_or_else(|| not_json(&key))?;
        Ok(Some(Head {
            document,
            version,
            state,
        }))
    }

    /// Reads the head after its transaction has been applied, by this process if necessary.
    pub(super) async fn applied_head(&self) -> Result<Head, TransactionError> {
        for _ in 0..MAX_ATTEMPTS {
            let head = self.head().await?.ok_or(TransactionError::NoStore)?;
            if !head.state.pending {
                return Ok(head);
            }
            if self.folder().is_some() {
                let (store, lock) = (self.clone(), self.lock().await?);
                let apply = async move { store.applied_head_locked(&lock).await };
                return self.run_locked(apply).await;
            }
            self.finish(&head).await?;
        }
        Err(TransactionError::Contended)
    }

    /// Reads the head after its transaction has been applied, under the lock of the folder.
    pub(super) async fn applied_head_locked(
        &self,
        lock: &FolderLock,
    ) -> Result<Head, TransactionError> {
        for _ in 0..2 {
            let head = self.head().await?.ok_or(TransactionError::NoStore)?;
            if !head.state.pending {
                return Ok(head);
            }
            self.finish_locked(lock, &head).await?;
        }
        Err(TransactionError::Contended)
    }
}
