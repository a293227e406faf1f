//! What transactions write down: journals, and how any record is read.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use zvf_model::key::{Key, KeyError};

use super::{Id, RecordError, TransactionError};
use crate::{overlay::is_own, write::Tag};

const FORMAT: u64 = 1;

/// What a transaction is about to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Journal {
    pub(crate) transaction: u64,
    pub(crate) id: Id,
    pub(crate) puts: Vec<Put>,
    pub(crate) deletes: Vec<Key>,
    pub(crate) touched: Vec<String>,
}

/// An object that waits for its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    pub(crate) key: Key,
    pub(crate) staged: Key,
    pub(crate) bytes: u64,
    pub(crate) crc32c: u32,
    /// What it replaces, where that is compared.
    pub(crate) was: Option<Tag>,
}

/// Where the journal of a transaction is.
pub(crate) fn journal_of(id: &Id) -> Result<Key, KeyError> {
    id.folder()?.join("journal.json")
}

impl Journal {
    pub(crate) fn encode(&self) -> Bytes {
        let puts = self.puts.iter().map(|put| {
            let was = put.was.as_ref().map(|was| {
                let (e_tag, version) = (&was.e_tag, &was.version);
                json!({"e_tag": e_tag, "version": version})
            });
            json!({
                "key": put.key.as_str(), "staged": put.staged.as_str(),
                "bytes": put.bytes, "crc32c": put.crc32c, "was": was,
            })
        });
        let journal = json!({
            "format": FORMAT,
            "transaction": self.transaction,
            "puts": puts.collect::<Vec<_>>(),
            "deletes": self.deletes.iter().map(Key::as_str).collect::<Vec<_>>(),
            "touched": self.touched,
        });
        journal.to_string().into()
    }

    /// Reads the journal of `id`, which can ask for nothing outside the store
    /// and for no staged object of another.
    pub(crate) fn parse(id: &Id, bytes: &[u8]) -> Result<Self, TransactionError> {
        let at = journal_of(id)?;
        let folder = id.folder()?;
        let json = parse(&at, bytes)?;
        let record = Record::of(&at, &json)?;
        record.check_format()?;
        let target = |text: &str, member| {
            let key = Key::parse(text)?;
            match is_own(text) || text == super::head::ROOT {
                true => Err(bad(&at, member)),
                false => Ok(key),
            }
        };
        let puts = record.list("puts")?.iter().map(|put| {
            let put = Record::of(&at, put)?;
            let staged = Key::parse(put.text("staged")?)?;
            if staged.parent().as_ref() != Some(&folder) {
                return Err(bad(&at, "staged"));
            }
            let crc32c = u32::try_from(put.number("crc32c")?);
            Ok(Put {
                key: target(put.text("key")?, "key")?,
                staged,
                bytes: put.number("bytes")?,
                crc32c: crc32c.map_err(|_| bad(&at, "crc32c"))?,
                was: put.tag("was")?,
            })
        });
        let deletes = record.texts("deletes")?;
        let deletes = deletes.into_iter().map(|text| target(text, "deletes"));
        let touched = record.texts("touched")?.into_iter().map(str::to_owned);
        Ok(Self {
            transaction: record.number("transaction")?,
            id: id.clone(),
            puts: puts.collect::<Result<_, _>>()?,
            deletes: deletes.collect::<Result<_, _>>()?,
            touched: touched.collect(),
        })
    }
}

/// What a finished transaction leaves for those that began before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) id: String,
    pub(super) touched: Vec<String>,
    pub(super) keys: Vec<Key>,
}

impl Log {
    pub(super) fn of(journal: &Journal) -> Bytes {
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

    pub(super) fn parse(at: &Key, bytes: &[u8]) -> Result<Self, TransactionError> {
        let json = parse(at, bytes)?;
        let record = Record::of(at, &json)?;
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

/// A JSON object, read member by member.
pub(super) struct Record<'a> {
    at: &'a Key,
    members: &'a Map<String, Value>,
}

impl<'a> Record<'a> {
    pub(super) fn of(at: &'a Key, json: &'a Value) -> Result<Self, TransactionError> {
        let members = json.as_object().ok_or_else(|| no_json(at))?;
        Ok(Self { at, members })
    }

    fn check_format(&self) -> Result<(), TransactionError> {
        match self.number("format")? {
            FORMAT => Ok(()),
            other => Err(TransactionError::Record {
                key: self.at.clone(),
                fault: RecordError::Format(other),
            }),
        }
    }

    pub(super) fn number(&self, member: &'static str) -> Result<u64, TransactionError> {
        self.take(member, Value::as_u64)
    }

    pub(super) fn text(&self, member: &'static str) -> Result<&'a str, TransactionError> {
        self.take(member, Value::as_str)
    }

    /// False when it is missing.
    pub(super) fn flag(&self, member: &'static str) -> Result<bool, TransactionError> {
        match self.members.get(member) {
            None => Ok(false),
            Some(flag) => flag.as_bool().ok_or_else(|| bad(self.at, member)),
        }
    }

    fn list(&self, member: &'static str) -> Result<&'a Vec<Value>, TransactionError> {
        self.take(member, Value::as_array)
    }

    fn texts(&self, member: &'static str) -> Result<Vec<&'a str>, TransactionError> {
        let texts = self.list(member)?.iter().map(Value::as_str);
        let texts: Option<Vec<&str>> = texts.collect();
        texts.ok_or_else(|| bad(self.at, member))
    }

    fn tag(&self, member: &'static str) -> Result<Option<Tag>, TransactionError> {
        let tag = match self.members.get(member) {
            None | Some(Value::Null) => return Ok(None),
            Some(tag) => Self::of(self.at, tag)?,
        };
        let part = |name: &'static str| match tag.members.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(bad(self.at, name)),
        };
        Ok(Some(Tag {
            e_tag: part("e_tag")?,
            version: part("version")?,
        }))
    }

    fn take<T>(
        &self,
        member: &'static str,
        as_kind: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, TransactionError> {
        let value = self.members.get(member).and_then(as_kind);
        value.ok_or_else(|| bad(self.at, member))
    }
}

fn parse(at: &Key, bytes: &[u8]) -> Result<Value, TransactionError> {
    serde_json::from_slice(bytes).map_err(|_| no_json(at))
}

pub(super) fn no_json(at: &Key) -> TransactionError {
    TransactionError::Record {
        key: at.clone(),
        fault: RecordError::Json,
    }
}

pub(super) fn bad(at: &Key, member: &'static str) -> TransactionError {
    TransactionError::Record {
        key: at.clone(),
        fault: RecordError::Member(member),
    }
}
