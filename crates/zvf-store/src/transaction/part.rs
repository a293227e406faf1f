//! Parts of a transaction: other processes stage objects for it.

use bytes::Bytes;
use zvf_model::key::Key;

use super::{
    Transaction, TransactionError,
    id::TransactionId,
    journal::Journal,
    layout::{ROOT, journal_key, transaction_folder},
    record::invalid_member,
    sealing::SealChanges,
};
use crate::store::Store;

impl Transaction {
    /// Returns the unique identifier of this transaction, for
    /// [`Store::join_transaction`] in other processes.
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Returns a record of the objects staged so far, for
    /// [`merge_staged`](Self::merge_staged).
    pub fn staged_journal(&self) -> Bytes {
        let journal = Journal {
            transaction: self.base(),
            id: self.id.clone(),
            puts: self.puts.values().cloned().collect(),
            deletes: Vec::new(),
            touched: Vec::new(),
            seal: Some(self.seal.to_text()),
        };
        journal.encode()
    }

    /// Adds the objects that a part of this transaction has [staged](Self::staged_journal) to the
    /// commit. Objects of a part that is never merged are swept.
    ///
    /// # Errors
    ///
    /// [`TransactionError::Record`] when the record is not from a part of this transaction, and
    /// [`TransactionError::Reserved`] for nodes, which the transaction puts itself.
    pub async fn merge_staged(&mut self, staged: &[u8]) -> Result<(), TransactionError> {
        self.check_open()?;
        let journal = Journal::parse(&self.id, staged)?;
        let key = journal_key(&self.id)?;
        if journal.transaction != self.base() {
            return Err(invalid_member(&key, "transaction"));
        }
        for put in &journal.puts {
            if put.key.name() == Some(ROOT) {
                return Err(TransactionError::Reserved {
                    key: put.key.clone(),
                });
            }
        }
        let invalid_seal = || invalid_member(&key, "seal");
        let seal = journal.seal.as_deref().map(SealChanges::from_text);
        let Some(Ok(seal)) = seal else {
            return Err(invalid_seal());
        };
        for put in &journal.puts {
            let Some(entry) = seal.entry(&put.key).filter(|entry| entry.size == put.bytes) else {
                return Err(invalid_seal());
            };
            self.seal.put(&put.key, entry.clone());
            if let Some(rows) = seal.rows(&put.key) {
                self.seal.put_rows((put.key.clone(), rows));
            }
        }
        self.add_puts(journal.puts.into_iter()).await
    }
}

impl Store {
    /// Joins a transaction that another process began, by its [identifier](Transaction::id).
    ///
    /// Objects that the returned part puts are staged beside those of the transaction, which has to
    /// [merge](Transaction::merge_staged) them. Only the transaction can commit.
    ///
    /// # Errors
    ///
    /// [`TransactionError`], as for [`begin`](Self::begin); [`TransactionError::Finished`] for an invalid
    /// identifier.
    pub async fn join_transaction(&self, id: &str) -> Result<Transaction, TransactionError> {
        let mut part = self.begin().await?;
        part.id = TransactionId::parse(id).ok_or(TransactionError::Finished)?;
        // A part that runs twice stages its objects under different names.
        part.part = Some(TransactionId::random());
        part.is_part = true;
        Ok(part)
    }
}

impl Transaction {
    /// Returns the key of the next staged object.
    pub(super) fn next_staged_key(&mut self) -> Result<Key, TransactionError> {
        let number = self.staged_count;
        self.staged_count = number.saturating_add(1);
        let name = match &self.part {
            None => number.to_string(),
            Some(part) => format!("{}-{number}", part.as_str()),
        };
        Ok(transaction_folder(&self.id)?.join(&name)?)
    }

    /// Checks that this is an open transaction and not a part of one.
    pub(super) fn check_committable(&self) -> Result<(), TransactionError> {
        if self.is_part {
            return Err(TransactionError::Finished);
        }
        self.check_open()
    }
}
