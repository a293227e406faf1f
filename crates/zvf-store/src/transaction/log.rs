//! The log of an applied transaction.

use bytes::Bytes;
use serde_json::json;
use zvf_model::key::Key;

use super::{
    error::TransactionError,
    journal::Journal,
    record::{FORMAT, Record, parse},
};

/// The names and keys that a transaction changed, for transactions that began before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommitLog {
    pub(super) id: String,
    pub(super) touched: Vec<String>,
    pub(super) keys: Vec<Key>,
}

impl CommitLog {
    pub(super) fn encode(journal: &Journal) -> Bytes {
        let puts = journal.puts.iter().map(|put| &put.key);
        let keys = puts.chain(&journal.deletes).map(Key::as_str);
        let log = json!({
            "format": FORMAT,
            "transaction": journal.transaction,
            "id": journal.id.as_str(),
            "touched": journal.touched,
            "keys": keys.collect::<Vec<_>>(),
        });
        log.to_string().into()
    }

    pub(super) fn parse(key: &Key, bytes: &[u8]) -> Result<Self, TransactionError> {
        let json = parse(key, bytes)?;
        let record = Record::new(key, &json)?;
        record.check_format()?;
        let keys = record.texts("keys")?.into_iter().map(Key::parse);
        let touched = record.texts("touched")?.into_iter().map(str::to_owned);
        Ok(Self {
            id: record.text("id")?.to_owned(),
            touched: touched.collect(),
            keys: keys.collect::<Result<_, _>>()?,
        })
    }
}
