//! Transactions that several processes put objects for.

use bytes::Bytes;
use zvf_model::key::Key;

use super::{Id, Journal, Transaction, TransactionError, head::ROOT, journal_of, record::bad};
use crate::store::Store;

impl Transaction {
    /// What tells it from all others, also in other processes: see [`Store::join_transaction`].
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// What was put so far, for the transaction that this is a part of.
    pub fn staged_journal(&self) -> Bytes {
        let journal = Journal {
            transaction: self.base(),
            id: self.id.clone(),
            puts: self.puts.values().cloned().collect(),
            deletes: Vec::new(),
            touched: Vec::new(),
        };
        journal.encode()
    }

    /// Puts with the commit what a part of this has [staged](Self::staged_journal). Whatever the same
    /// part staged before in vain is swept like all that nobody commits.
    ///
    /// # Errors
    ///
    /// [`TransactionError::Record`] when a part of this did not say so, and
    /// [`TransactionError::Reserved`] of nodes, which the transaction puts itself.
    pub async fn merge_staged(&mut self, staged: &[u8]) -> Result<(), TransactionError> {
        self.check_open()?;
        let journal = Journal::parse(&self.id, staged)?;
        if journal.transaction != self.base() {
            return Err(bad(&journal_of(&self.id)?, "transaction"));
        }
        for put in &journal.puts {
            if put.key.name() == Some(ROOT) {
                let key = put.key.clone();
                return Err(TransactionError::Reserved { key });
            }
        }
        let mut replaced = Vec::new();
        for put in journal.puts {
            self.deletes.remove(&put.key);
            self.stale.remove(&put.key);
            let before = self.puts.insert(put.key.clone(), put);
            replaced.extend(before.map(|put| put.staged));
        }
        Ok(self.store.delete_many(replaced).await?)
    }
}

impl Store {
    /// A part of a transaction that another process began, by its
    /// [name](Transaction::id). What is put here waits beside what the transaction has put;
    /// it does not count before that [takes](Transaction::merge_staged) it, and only the transaction
    /// can commit.
    ///
    /// # Errors
    ///
    /// As for [`begin`](Self::begin); [`TransactionError::Finished`] for what is no name.
    pub async fn join_transaction(&self, name: &str) -> Result<Transaction, TransactionError> {
        let mut part = self.begin().await?;
        part.id = Id::parse(name).ok_or(TransactionError::Finished)?;
        // A part that runs twice puts nothing where the other did.
        part.part = Some(Id::random());
        Ok(part)
    }
}

impl Transaction {
    /// Where the next object waits.
    pub(super) fn next_staged(&mut self) -> Result<Key, TransactionError> {
        let number = self.names;
        self.names = number.saturating_add(1);
        let name = match &self.part {
            None => number.to_string(),
            Some(part) => format!("{}-{number}", part.as_str()),
        };
        Ok(self.id.folder()?.join(&name)?)
    }

    /// A part ends with what it has staged.
    pub(super) fn check_whole(&self) -> Result<(), TransactionError> {
        match self.part {
            Some(_) => Err(TransactionError::Finished),
            None => self.check_open(),
        }
    }
}
