//! What others did since a transaction began.

use std::collections::BTreeSet;

use zvf_model::key::{Key, KeyError};

use super::{CommitError, Head, Transaction, TransactionError, record::Log};
use crate::{overlay::HOME, range::Read, store::Store};

/// How many logs are kept, and so how many transactions one may sleep through.
pub(super) const KEPT: u64 = 256;

/// Where the log of a transaction is.
pub(super) fn log_of(transaction: u64) -> Result<Key, KeyError> {
    let name = format!("{transaction}.json");
    Key::parse(HOME)?.join("log")?.join(&name)
}

impl Transaction {
    /// What to say of a commit that came too late.
    pub(super) async fn overtaken(&self, head: &Head) -> Result<CommitError, TransactionError> {
        match self.changed_since(head).await {
            Err(CommitError::Failed(source)) => Err(source),
            Err(error) => Ok(error),
            Ok(_) => Ok(CommitError::Outdated {
                base: self.base(),
                current: head.state.transaction,
            }),
        }
    }

    /// Keys that others changed from the base to `head`.
    pub(super) async fn changed_since(&self, head: &Head) -> Result<BTreeSet<Key>, CommitError> {
        if head.document == self.base.document {
            return Ok(BTreeSet::new());
        }
        let Some(logs) = self.logs_to(head).await? else {
            let names = self.touched.iter().cloned().collect();
            return Err(CommitError::Conflict { names });
        };
        let touched = logs.iter().flat_map(|log| &log.touched);
        let names: BTreeSet<&String> = touched
            .filter(|name| self.touched.contains(*name))
            .collect();
        if !names.is_empty() {
            let names = names.into_iter().cloned().collect();
            return Err(CommitError::Conflict { names });
        }
        Ok(logs.into_iter().flat_map(|log| log.keys).collect())
    }

    /// Whether this very transaction is among those up to `head`.
    pub(super) async fn is_among(&self, head: &Head) -> Result<bool, TransactionError> {
        let logs = self.logs_to(head).await?.unwrap_or_default();
        Ok(logs.iter().any(|log| log.id == self.id.as_str()))
    }

    /// The logs after the base up to `head`; `None` when one is gone, or when
    /// the root was put by something that counts otherwise.
    async fn logs_to(&self, head: &Head) -> Result<Option<Vec<Log>>, TransactionError> {
        let (base, current) = (self.base(), head.state.transaction);
        let apart = current.checked_sub(base);
        if apart.is_none_or(|apart| apart == 0 || apart > KEPT) {
            return Ok(None);
        }
        let since = base.saturating_add(1)..=current;
        let keys: Result<Vec<Key>, KeyError> = since.map(log_of).collect();
        self.store.logs(&keys?).await
    }
}

impl Store {
    async fn logs(&self, keys: &[Key]) -> Result<Option<Vec<Log>>, TransactionError> {
        let reads: Vec<Read> = keys.iter().cloned().map(Read::full).collect();
        let found = self.read(&reads).await?;
        let logs = keys.iter().zip(found).map(|(key, bytes)| match bytes {
            None => Ok(None),
            Some(bytes) => Log::parse(key, &bytes).map(Some),
        });
        logs.collect()
    }
}
