//! Caching of cells in an open store.

use std::{fs, path::Path};

use zvf::{Dataset, OpenOptions, Query};
use zvf_testkit::stores::Cells;

use super::{Files, cases::around, kinds};
use crate::block_on;

/// Counts the requests of a query.
fn requests(dataset: &Dataset, query: &Query) -> usize {
    block_on(dataset.query(query)).unwrap();
    dataset.store().take_request_log().len()
}

fn write(files: &Files, folder: &Path) {
    for (key, bytes) in files {
        let path = folder.join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn cells_of_regions_are_cached_and_those_of_whole_levels_are_not() {
    for (name, kind, _) in kinds::KINDS {
        for cells in [Cells::Zstd, Cells::Sharded] {
            let folder = tempfile::tempdir().unwrap();
            let made = kinds::fixed(kind, cells);
            write(&kinds::files(&made), folder.path());
            let place = &made.truth.vertices[made.truth.vertices.len() / 2].position;
            let bbox = around(place, &made.truth.chunk_shape, 0.3);
            let address = folder.path().display().to_string();
            let near = Query::new().region(bbox);
            let options = OpenOptions::default().record_requests(true);
            let open = block_on(Dataset::open_with(&address, &options)).unwrap();
            requests(&open, &Query::new());
            assert!(
                requests(&open, &near) > 0,
                "{name}: a whole level was cached"
            );
            assert_eq!(requests(&open, &near), 0, "{name}");
            let bare = options.clone().cache(0);
            let bare = block_on(Dataset::open_with(&address, &bare)).unwrap();
            requests(&bare, &near);
            assert!(requests(&bare, &near) > 0, "{name}: cached without a cache");
        }
    }
}
