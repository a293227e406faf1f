//! JSON records of transactions, read member by member.

use serde_json::{Map, Value};
use zvf_model::key::Key;

use super::error::{RecordError, TransactionError};
use crate::io::ObjectVersion;

/// The format version of journals and logs.
pub(super) const FORMAT: u64 = 1;

/// A JSON object and the key it was read from.
pub(super) struct Record<'a> {
    key: &'a Key,
    members: &'a Map<String, Value>,
}

impl<'a> Record<'a> {
    pub(super) fn new(key: &'a Key, json: &'a Value) -> Result<Self, TransactionError> {
        let members = json.as_object().ok_or_else(|| not_json(key))?;
        Ok(Self { key, members })
    }

    /// Checks that the record has the supported format version.
    pub(super) fn check_format(&self) -> Result<(), TransactionError> {
        match self.number("format")? {
            FORMAT => Ok(()),
            other => Err(TransactionError::Record {
                key: self.key.clone(),
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

    /// Returns a member that is text; `None` if it is missing.
    pub(super) fn optional_text(
        &self,
        member: &'static str,
    ) -> Result<Option<&'a str>, TransactionError> {
        let is_given = self.members.contains_key(member);
        is_given.then(|| self.text(member)).transpose()
    }

    /// Returns a boolean member; `false` if it is missing.
    pub(super) fn flag(&self, member: &'static str) -> Result<bool, TransactionError> {
        match self.members.get(member) {
            None => Ok(false),
            Some(flag) => flag
                .as_bool()
                .ok_or_else(|| invalid_member(self.key, member)),
        }
    }

    pub(super) fn list(&self, member: &'static str) -> Result<&'a Vec<Value>, TransactionError> {
        self.take(member, Value::as_array)
    }

    pub(super) fn texts(&self, member: &'static str) -> Result<Vec<&'a str>, TransactionError> {
        let texts: Option<Vec<&str>> = self.list(member)?.iter().map(Value::as_str).collect();
        texts.ok_or_else(|| invalid_member(self.key, member))
    }

    /// Returns the version of an object; `None` if it is missing or null.
    pub(super) fn version(
        &self,
        member: &'static str,
    ) -> Result<Option<ObjectVersion>, TransactionError> {
        let version = match self.members.get(member) {
            None | Some(Value::Null) => return Ok(None),
            Some(version) => Self::new(self.key, version)?,
        };
        let part = |name: &'static str| match version.members.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(invalid_member(self.key, name)),
        };
        Ok(Some(ObjectVersion {
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
        value.ok_or_else(|| invalid_member(self.key, member))
    }
}

pub(super) fn parse(key: &Key, bytes: &[u8]) -> Result<Value, TransactionError> {
    serde_json::from_slice(bytes).map_err(|_| not_json(key))
}

/// Returns the error of a record that is not a JSON object.
pub(super) fn not_json(key: &Key) -> TransactionError {
    TransactionError::Record {
        key: key.clone(),
        fault: RecordError::Json,
    }
}

/// Returns the error of a record with an invalid member.
pub(super) fn invalid_member(key: &Key, member: &'static str) -> TransactionError {
    TransactionError::Record {
        key: key.clone(),
        fault: RecordError::Member(member),
    }
}
