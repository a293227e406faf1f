//! Changes that are committed but cannot be finished.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use zvf::{Dataset, Editor, OpenOptions};
use zvf_build::OutOfBounds;

use super::{place::Place, writers};
use crate::{block_on, written::content::Content};

/// The rename of the first object fails at first and would succeed later; retrying the whole change
/// would add its content twice, and reporting an error would be wrong: it is committed.
#[test]
fn a_committed_change_is_reported_as_such_and_not_repeated() {
    let place = Place::folder();
    let address = place.address();
    block_on(writers::begin(&address));
    let root = PathBuf::from(&address);
    let (renames, kept) = (AtomicUsize::new(0), root.with_file_name("kept"));
    let hook = move |operation: &str, key: &zvf_model::key::Key| {
        let at = root.join(key.as_str());
        match (operation, renames.load(Ordering::SeqCst)) {
            ("rename", 0) => {
                fs::rename(&at, &kept).unwrap();
                fs::create_dir_all(at.join("in the way")).unwrap();
            }
            ("rename", 1) => {
                fs::remove_dir_all(&at).unwrap();
                fs::rename(&kept, &at).unwrap();
            }
            _ => {}
        }
        renames.fetch_add(usize::from(operation == "rename"), Ordering::SeqCst);
    };
    // Operations run one by one, so that the second call follows the first rename.
    let open = OpenOptions::default()
        .concurrency(1)
        .write_hook(Arc::new(hook));
    block_on(async {
        let editor = Editor::open_with(&address, &open).await.unwrap();
        let more = writers::of(0);
        let changed = editor
            .append(&more.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        assert_eq!(changed.transaction, 1);
        let why = changed.unfinished.unwrap();
        assert!(why.contains("directory"), "{why}");
        Editor::open(&address).await.unwrap();
        let dataset = Dataset::open(&address).await.unwrap();
        let content = Content::read(&dataset).await;
        let ids: Vec<i64> = content.objects.keys().copied().collect();
        assert_eq!(ids, [0, 1, 2]);
    });
}
