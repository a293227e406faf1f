//! The archives in `testdata/`, unpacked into memory.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// Files by path, the input of `Store::from_memory`.
pub type Files = Vec<(String, Vec<u8>)>;

/// One unpacked golden archive: file contents by path below its top folder.
#[derive(Debug)]
pub struct Golden {
    files: BTreeMap<String, Vec<u8>>,
}

impl Golden {
    /// Unpacks `testdata/<name>.tar.gz`.
    ///
    /// # Panics
    ///
    /// Panics if the archive is missing or damaged.
    pub fn open(name: &str) -> Self {
        let path = testdata().join(format!("{name}.tar.gz"));
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
        let mut files = BTreeMap::new();
        for entry in archive.entries().expect("a tar archive") {
            let mut entry = entry.expect("a tar entry");
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = entry.path().expect("a path").into_owned();
            let below: PathBuf = path.components().skip(1).collect();
            let below = below.to_str().expect("a UTF-8 path").to_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("an intact entry");
            files.insert(below, bytes);
        }
        Self { files }
    }

    /// Returns the contents of one file.
    ///
    /// # Panics
    ///
    /// Panics if the archive has no such file.
    pub fn file(&self, path: &str) -> &[u8] {
        let file = self.files.get(path);
        file.unwrap_or_else(|| panic!("{path} is not in the archive"))
    }

    /// Returns one file as JSON.
    ///
    /// # Panics
    ///
    /// Panics if there is no such file or it is not JSON.
    pub fn json(&self, path: &str) -> serde_json::Value {
        serde_json::from_slice(self.file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Returns the files of one recorded store, by their path below its root.
    ///
    /// # Panics
    ///
    /// Panics if the archive has no such store.
    pub fn store(&self, path: &str) -> Files {
        let prefix = format!("{path}/");
        let below = self.files().filter_map(|(path, bytes)| {
            let key = path.strip_prefix(&prefix)?;
            Some((key.to_owned(), bytes.to_vec()))
        });
        let files: Files = below.collect();
        assert!(!files.is_empty(), "the archive has no store {path}");
        files
    }

    /// Returns every file with its path, in path order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }
}

/// Returns the workspace's `testdata/` folder.
pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// Decodes hexadecimal text.
///
/// # Panics
///
/// Panics if the text is not hexadecimal.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(c.to_digit(16).expect("a hex digit")).expect("below 16"))
        .collect();
    assert!(digits.len().is_multiple_of(2), "half a byte");
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}
