//! Detection of conflicts with transactions that were committed meanwhile.

use std::collections::BTreeSet;

use zvf_model::key::{Key, KeyError};

use super::{
    CommitError, Transaction, TransactionError,
    head::Head,
    layout::{MAX_LOGS, log_key},
    log::CommitLog,
};
use crate::{io::Read, store::Store};

impl Transaction {
    /// Returns the error of a commit whose base is outdated: a conflict, if names overlap.
    pub(super) async fn outdated_error(
        &self,
        head: &Head,
    ) -> Result<CommitError, TransactionError> {
        match self.changed_since(head).await {
            Err(CommitError::Failed(source)) => Err(source),
            Err(error) => Ok(error),
            Ok(_) => Ok(CommitError::Outdated {
                base: self.base(),
                current: head.state.transaction,
            }),
        }
    }

    /// Returns the keys that other transactions changed between the base and `head`.
    ///
    /// # Errors
    ///
    /// [`CommitError::Conflict`] when they touched a name that this transaction touched, or when
    /// their logs are gone.
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

    /// Returns whether this transaction was committed between the base and `head`.
    pub(super) async fn is_committed(&self, head: &Head) -> Result<bool, TransactionError> {
        let logs = self.logs_to(head).await?.unwrap_or_default();
        Ok(logs.iter().any(|log| log.id == self.id.as_str()))
    }

    /// Reads the logs after the base up to `head`; `None` when one is gone, or when the root was
    /// written by a program that does not count transactions.
    async fn logs_to(&self, head: &Head) -> Result<Option<Vec<CommitLog>>, TransactionError> {
        let (base, current) = (self.base(), head.state.transaction);
        let behind = current.checked_sub(base);
        if behind.is_none_or(|behind| behind == 0 || behind > MAX_LOGS) {
            return Ok(None);
        }
        let since = base.saturating_add(1)..=current;
        let keys: Result<Vec<Key>, KeyError> = since.map(log_key).collect();
        self.store.read_logs(&keys?).await
    }
}

impl Store {
    async fn read_logs(&self, keys: &[Key]) -> Result<Option<Vec<CommitLog>>, TransactionError> {
        let reads: Vec<Read> = keys.iter().cloned().map(Read::full).collect();
        let found = self.read(&reads).await?;
        let logs = keys.iter().zip(found).map(|(key, bytes)| match bytes {
            None => Ok(None),
            Some(bytes) => CommitLog::parse(key, &bytes).map(Some),
        });
        logs.collect()
    }
}
