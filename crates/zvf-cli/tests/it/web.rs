//! The command on stores on a web server without listings.

use zvf_testkit::{golden::Golden, web::Web};

use crate::{text, zvf};

/// Serves every store of an archive.
fn serve(archive: &str) -> Web {
    let golden = Golden::open(archive);
    let files = golden
        .files()
        .map(|(path, bytes)| (path.to_owned(), bytes.to_vec()));
    Web::serve(files.collect(), 405)
}

#[track_caller]
fn check(archive: &str, store: &str, error: &str) {
    let address = format!("{}/{store}", serve(archive).address());
    let output = zvf(&["info", &address]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let expected = format!("error: {address} cannot list its contents, {error}: ");
    let found = text(&output.stderr);
    assert!(found.starts_with(&expected), "{found}");
}

#[test]
fn counting_without_a_listing_gives_a_hint() {
    check(
        "zvf-09",
        "graph_3d/store.zarrvectors",
        "which counting requires; allow listing, or count a copy in a folder or zip file",
    );
    check(
        "zvf-07",
        "graph.zv",
        "and only stores of format 0.9 open without a listing; \
         allow listing, open a copy in a folder or zip file, or migrate it to 0.9",
    );
}
