//! Jobs: work that one process plans, others do in parts, and a last one commits.
//!
//! Everything that the processes share is in the files of the job, in the reserved folder of the
//! store: `job.json` and the input of the parts, written by the plan, and a file for each part that
//! is done: `result-N`, or `filled-N` and `divided-N` in the phases before. A result appears whole
//! or not at all, so a part may be done again, or twice at once.

use core::ops::Range;
use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::Value;
use zvf_dataset::{Failure, TaskPlanError};
use zvf_store::{JobFiles, Store};

/// Name of the file that describes a job.
const DESCRIPTION: &str = "job.json";

/// Number of bytes that are read at once.
const AT_ONCE: u64 = 64 << 20;

/// A planned job, before it is written to a plan.
#[derive(Debug)]
pub struct PlannedJob {
    /// Identifier of the creation or transaction.
    pub id: String,
    /// Number of parts.
    pub parts: usize,
}

/// Returns the share of a part in a list of `len` items, which is divided evenly among all parts.
pub fn share(len: usize, part: usize, parts: usize) -> Range<usize> {
    let end = |part: usize| {
        let end = (len as u128).saturating_mul(part as u128) / (parts.max(1) as u128);
        usize::try_from(end).unwrap_or(len).min(len)
    };
    end(part)..end(part.saturating_add(1))
}

/// The files of a job.
#[derive(Debug)]
pub struct Job {
    store: Store,
    files: JobFiles,
}

impl Job {
    /// Opens the files of a job of the store.
    pub fn open(store: &Store, id: &str) -> Result<Self, Failure> {
        Ok(Self {
            files: store.job_files(id)?,
            store: store.clone(),
        })
    }

    /// Writes the description of the job.
    pub async fn describe(&self, description: &Value) -> Result<(), Failure> {
        self.put(DESCRIPTION, description.to_string().into()).await
    }

    /// Reads the description of the job.
    pub async fn description(&self) -> Result<Value, Failure> {
        self.json(DESCRIPTION).await
    }

    /// Reads the description of the job and parses it.
    pub async fn described<T>(
        &self,
        parse: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, Failure> {
        let parsed = parse(&self.description().await?);
        parsed.ok_or_else(|| self.problem(TaskPlanError::Invalid))
    }

    /// Reads a file of JSON.
    pub async fn json(&self, name: &str) -> Result<Value, Failure> {
        let bytes = self.get(name).await?;
        serde_json::from_slice(&bytes).map_err(|_| self.problem(TaskPlanError::Invalid))
    }

    /// Writes a file of the job.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), Failure> {
        Ok(self.files.put(name, bytes).await?)
    }

    /// Reads a file of the job. An absent file is an error: the job was swept or replaced.
    pub async fn get(&self, name: &str) -> Result<Bytes, Failure> {
        let found = self.files.get(name).await?;
        found.ok_or_else(|| self.problem(TaskPlanError::Outdated))
    }

    /// Reads ranges of files of the job, concurrently. The memory budget of the store applies to about
    /// 64 MiB, not to all ranges together.
    pub async fn read(&self, ranges: Vec<(String, Range<u64>)>) -> Result<Vec<Bytes>, Failure> {
        let mut found = Vec::with_capacity(ranges.len());
        let mut left = ranges.as_slice();
        while !left.is_empty() {
            let (now, later) = left.split_at(fitting(left, AT_ONCE));
            let read = self.files.read(now).await?;
            found.extend(read.ok_or_else(|| self.problem(TaskPlanError::Outdated))?);
            left = later;
        }
        Ok(found)
    }

    /// Writes the result of a part.
    pub async fn put_result(&self, part: usize, bytes: Bytes) -> Result<(), Failure> {
        self.put(&result(part), bytes).await
    }

    /// Reads the result of a part as JSON.
    pub async fn json_result(&self, part: usize) -> Result<Value, Failure> {
        self.json(&result(part)).await
    }

    /// Reads the result of a part.
    pub async fn result(&self, part: usize) -> Result<Bytes, Failure> {
        self.get(&result(part)).await
    }

    /// Puts a result of JSON and numbers.
    pub async fn put_table(
        &self,
        part: usize,
        json: &Value,
        numbers: &[u8],
    ) -> Result<(), Failure> {
        let json = json.to_string();
        let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
        bytes.extend(json.bytes());
        bytes.extend(numbers);
        self.put_result(part, bytes.into()).await
    }

    /// Reads the output of [`put_table`](Self::put_table).
    pub async fn table(&self, part: usize) -> Result<(Value, Bytes), Failure> {
        let invalid = || self.problem(TaskPlanError::Invalid);
        let result = self.result(part).await?;
        let (length, rest) = result.split_first_chunk().ok_or_else(invalid)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| invalid())?;
        let (json, numbers) = rest.split_at_checked(length).ok_or_else(invalid)?;
        let json = serde_json::from_slice(json).map_err(|_| invalid())?;
        Ok((json, result.slice_ref(numbers)))
    }

    /// Returns the parts whose files `prefix-N` exist. Fails if the job has no description.
    pub async fn done(&self, prefix: &str) -> Result<BTreeSet<usize>, Failure> {
        let sizes = self.files.sizes().await?;
        if !sizes.contains_key(DESCRIPTION) {
            return Err(self.problem(TaskPlanError::Outdated));
        }
        let parts = sizes
            .keys()
            .filter_map(|name| name.strip_prefix(prefix)?.strip_prefix('-')?.parse().ok());
        Ok(parts.collect())
    }

    /// Deletes all files of the job.
    pub async fn delete(&self) -> Result<(), Failure> {
        Ok(self.files.delete_all().await?)
    }

    /// Returns the error of a plan for this store.
    pub fn problem(&self, source: TaskPlanError) -> Failure {
        Failure::Plan {
            address: self.store.to_string(),
            source,
        }
    }
}

/// Returns the number of first ranges that have at most `bytes` together, at least 1.
fn fitting(ranges: &[(String, Range<u64>)], bytes: u64) -> usize {
    let mut end = 0_u64;
    let fitting = ranges.iter().take_while(|(_, range)| {
        end = end.saturating_add(range.end.saturating_sub(range.start));
        end <= bytes
    });
    fitting.count().max(1)
}

fn result(part: usize) -> String {
    format!("result-{part}")
}

#[cfg(test)]
mod tests {
    use super::{fitting, share};

    #[test]
    fn ranges_are_read_in_groups() {
        let ranges = |sizes: &[u64]| -> Vec<_> {
            let range = |size: &u64| ("a".to_owned(), 7..7 + size);
            sizes.iter().map(range).collect()
        };
        for (sizes, expected) in [
            (&[3_u64, 3, 4, 1][..], 3),
            (&[11, 1], 1),
            (&[0, 0, 10, 0], 4),
            (&[9, 2], 1),
            (&[5], 1),
        ] {
            assert_eq!(fitting(&ranges(sizes), 10), expected, "{sizes:?}");
        }
    }

    #[test]
    fn shares_cover_a_list_once() {
        for (len, parts) in [(0, 1), (0, 3), (1, 3), (10, 3), (7, 7), (5, 300)] {
            let mut next = 0;
            for part in 0..parts {
                let own = share(len, part, parts);
                assert_eq!(own.start, next, "{len} {parts}");
                assert!(own.len() <= len.div_ceil(parts), "{len} {parts}");
                next = own.end;
            }
            assert_eq!(next, len);
        }
        assert_eq!(share(usize::MAX, usize::MAX - 1, usize::MAX).len(), 1);
    }
}
