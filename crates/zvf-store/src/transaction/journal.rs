//! The journal of a transaction: the changes that its commit makes visible.

use bytes::Bytes;
use serde_json::json;
use zvf_model::key::Key;

use super::{
    error::TransactionError,
    id::TransactionId,
    layout::{ROOT, journal_key, transaction_folder},
    record::{FORMAT, Record, invalid_member, parse},
};
use crate::{io::ObjectVersion, store::is_reserved};

/// The changes of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Journal {
    pub(super) transaction: u64,
    pub(super) id: TransactionId,
    pub(super) puts: Vec<StagedPut>,
    pub(super) deletes: Vec<Key>,
    pub(super) touched: Vec<String>,
    /// The entries of the inventory for the puts, in the record of a part of a transaction.
    pub(super) seal: Option<String>,
}

/// A staged object and the key it will be put at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StagedPut {
    pub(super) key: Key,
    pub(super) staged: Key,
    pub(super) bytes: u64,
    pub(super) crc32c: u32,
    /// The version of the object that it replaces, where the store compares versions.
    pub(super) replaces: Option<ObjectVersion>,
}

impl Journal {
    pub(super) fn encode(&self) -> Bytes {
        let puts = self.puts.iter().map(|put| {
            let replaced = put.replaces.as_ref().map(|replaced| {
                let (e_tag, version) = (&replaced.e_tag, &replaced.version);
                json!({"e_tag": e_tag, "version": version})
            });
            json!({
                "key": put.key.as_str(), "staged": put.staged.as_str(),
                "bytes": put.bytes, "crc32c": put.crc32c, "was": replaced,
            })
        });
        let mut journal = json!({
            "format": FORMAT,
            "transaction": self.transaction,
            "puts": puts.collect::<Vec<_>>(),
            "deletes": self.deletes.iter().map(Key::as_str).collect::<Vec<_>>(),
            "touched": self.touched,
        });
        if let (Some(seal), Some(members)) = (&self.seal, journal.as_object_mut()) {
            members.insert("seal".to_owned(), json!(seal));
        }
        journal.to_string().into()
    }

    /// Parses the journal of `id`. Its keys must lie inside the store and its staged objects in the
    /// folder of the transaction.
    pub(super) fn parse(id: &TransactionId, bytes: &[u8]) -> Result<Self, TransactionError> {
        let key = journal_key(id)?;
        let folder = transaction_folder(id)?;
        let json = parse(&key, bytes)?;
        let record = Record::new(&key, &json)?;
        record.check_format()?;
        let target = |text: &str, member| {
            let target = Key::parse(text)?;
            if is_reserved(text) || text == ROOT {
                return Err(invalid_member(&key, member));
            }
            Ok(target)
        };
        let puts = record.list("puts")?.iter().map(|put| {
            let put = Record::new(&key, put)?;
            let staged = Key::parse(put.text("staged")?)?;
            if staged.parent().as_ref() != Some(&folder) {
                return Err(invalid_member(&key, "staged"));
            }
            let crc32c = u32::try_from(put.number("crc32c")?);
            Ok(StagedPut {
                key: target(put.text("key")?, "key")?,
                staged,
                bytes: put.number("bytes")?,
                crc32c: crc32c.map_err(|_| invalid_member(&key, "crc32c"))?,
                replaces: put.version("was")?,
            })
        });
        let deletes = record
            .texts("deletes")?
            .into_iter()
            .map(|text| target(text, "deletes"));
        let touched = record.texts("touched")?.into_iter().map(str::to_owned);
        Ok(Self {
            transaction: record.number("transaction")?,
            id: id.clone(),
            puts: puts.collect::<Result<_, _>>()?,
            deletes: deletes.collect::<Result<_, _>>()?,
            touched: touched.collect(),
            seal: record.optional_text("seal")?.map(str::to_owned),
        })
    }
}
