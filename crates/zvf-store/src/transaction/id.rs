//! Unique identifiers of transactions.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    time::SystemTime,
};

/// The unique identifier of a transaction, which names its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TransactionId(String);

impl TransactionId {
    /// Creates an identifier of 128 random bits. The standard library seeds its hashers from the
    /// operating system, each one differently.
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

    /// Parses 1 to 64 hexadecimal digits, so that no identifier leads out of the folder.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (hex && (1..=64).contains(&text.len())).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
