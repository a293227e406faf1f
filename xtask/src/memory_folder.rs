//! A temporary folder in memory for tests, which create and delete thousands of files.

use std::{env, path::Path};

use tempfile::TempDir;

use crate::run::{Run, program};

/// The folder in which Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";
/// Free space that tests may need, in kibibytes.
const NEEDED_KIB: u64 = 8_000_000;

/// A folder in memory that is deleted when the value is dropped; none if `TMPDIR` is set, or if
/// there is no memory to spare.
pub(crate) struct MemoryFolder(Option<TempDir>);

impl MemoryFolder {
    pub(crate) fn new() -> Self {
        if env::var_os("TMPDIR").is_some() || free(MEMORY).is_none_or(|free| free < NEEDED_KIB) {
            return Self(None);
        }
        Self(TempDir::with_prefix_in("zvf-tests.", MEMORY).ok())
    }

    /// Makes a program use the folder for temporary files.
    pub(crate) fn set(&self, program: Run) -> Run {
        match &self.0 {
            Some(folder) => program.env("TMPDIR", folder.path()),
            None => program,
        }
    }
}

/// Returns the free space of a file system in kibibytes; `None` if it does not exist.
fn free(folder: &str) -> Option<u64> {
    if !Path::new(folder).exists() {
        return None;
    }
    let table = program("df").words("-Pk").arg(folder).read().ok()?;
    available(&table)
}

/// Returns the column `Available` of the second line of a table of `df -P`.
fn available(table: &str) -> Option<u64> {
    table
        .lines()
        .nth(1)?
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_is_the_fourth_column() {
        let table = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
            tmpfs 24684096 1100000 23584096 5% /dev/shm\n";
        assert_eq!(available(table), Some(23_584_096));
        assert_eq!(available("Filesystem\n"), None);
    }
}
