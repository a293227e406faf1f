//! The page that shows stores in a browser, which the folder `viewer` of the repository builds.
//!
//! The page is one file without links to others. It shows the stores that its address names as
//! `?store=URL`, or the one that it contains.

use std::io::{Cursor, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use zip::{CompressionMethod, ZipWriter, result::ZipError, write::SimpleFileOptions};
use zvf_model::key::{Key, KeyError};
use zvf_store::{ListError, Read, ReadError, SnapshotError, Store};

/// The page.
pub const PAGE: &str = include_str!("viewer.html");
/// The element that contains a store, as a zip file in base64.
const ELEMENT: &str = r#"id="store" data-name="">"#;
/// The largest store that a page contains, in bytes. Browsers keep several copies of it.
pub const MAX_INLINE: u64 = 64 << 20;
/// The most objects of a store that a page contains.
const MAX_OBJECTS: usize = 10_000;

/// An error of [`inline`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InlineError {
    /// The store is too large.
    #[error(
        "the store has {bytes} bytes, and a page can contain {MAX_INLINE}; write the page without \
         --inline, beside the store"
    )]
    TooLarge {
        /// The bytes of the store.
        bytes: u64,
    },
    /// The store cannot be listed.
    #[error("the store cannot be listed")]
    List(#[from] ListError),
    /// An object has a name that no key has.
    #[error("an object of the store has an invalid name")]
    Name(#[from] KeyError),
    /// An object cannot be read.
    #[error("the store cannot be read")]
    Read(#[from] ReadError),
    /// The store was changed meanwhile.
    #[error("the store cannot be read in one state")]
    Snapshot(#[from] SnapshotError),
    /// The zip file cannot be written.
    #[error("the zip file cannot be written")]
    Zip(#[from] ZipError),
}

/// Returns the page with a store inside. It needs no server: a browser opens it as a file.
///
/// # Errors
///
/// [`InlineError`].
pub async fn inline(name: &str, store: &Store) -> Result<String, InlineError> {
    let listed = store.list_all(&Key::root(), MAX_OBJECTS).await?;
    let bytes = listed
        .iter()
        .fold(0, |sum: u64, file| sum.saturating_add(file.size));
    if bytes > MAX_INLINE {
        return Err(InlineError::TooLarge { bytes });
    }
    let mut reads = Vec::with_capacity(listed.len());
    for file in &listed {
        reads.push(Read::full(Key::root().join_path(&file.name)?));
    }
    let objects = store.read(&reads).await?;
    store.confirm_snapshot().await?;
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (read, object) in reads.iter().zip(objects) {
        if let Some(object) = object {
            zip.start_file(read.key.as_str(), stored)?;
            zip.write_all(&object).map_err(ZipError::from)?;
        }
    }
    let zip = zip.finish()?.into_inner();
    let (before, after) = PAGE.split_once(ELEMENT).unwrap_or((PAGE, ""));
    let name = escaped(name);
    let store = BASE64_STANDARD.encode(zip);
    Ok(format!(
        "{before}id=\"store\" data-name=\"{name}\">{store}{after}"
    ))
}

/// Returns text as the value of an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_place_for_a_store() {
        assert_eq!(PAGE.matches(ELEMENT).count(), 1);
        assert!(PAGE.contains("Content-Security-Policy"));
    }

    #[test]
    fn names_cannot_be_markup() {
        let name = escaped("<img src=\"x\">&");
        assert_eq!(name, "&lt;img src=&quot;x&quot;&gt;&amp;");
    }
}
