//! Web servers that cannot list, as opposed to empty prefixes.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
};

use zvf_model::fetch::{Fetch, FetchProblem};
use zvf_store::{CellReader, ListError, Store};
use zvf_testkit::web::Web;

use crate::support::{block_on, key};

#[test]
fn a_server_that_lists_nothing_at_the_root_cannot_list() {
    let files = [("s/zarr.json".to_owned(), b"{}".to_vec())];
    let web = Web::serve(files.into(), 404);
    let store = Store::open(&format!("{}/s", web.address())).unwrap();
    for _ in 0..2 {
        let error = block_on(store.list(&key("0"), 10)).unwrap_err();
        assert!(matches!(error, ListError::Unlistable { .. }), "{error:?}");
        let error = block_on(store.list_all(&key("0"), 10)).unwrap_err();
        assert!(matches!(error, ListError::Unlistable { .. }), "{error:?}");
    }
    // The root was listed once, to check that listing works.
    assert_eq!(web.take_log().len(), 5);
    assert_eq!(store.activity().lists, 5);
    let reader = CellReader::new(store);
    let error = block_on(reader.children(&key("0/links"))).unwrap_err();
    assert_eq!(error.problem, FetchProblem::Unlistable);
}

/// Starts a `WebDAV` server that lists one file at the root and nothing below.
fn webdav() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/s", listener.local_addr().unwrap());
    let file = "<response><href>/s/zarr.json</href><propstat><prop>\
        <getlastmodified>Thu, 01 Jan 1970 00:00:00 GMT</getlastmodified>\
        <getcontentlength>2</getcontentlength><resourcetype/></prop>\
        <status>HTTP/1.1 200 OK</status></propstat></response>";
    let top = format!("<?xml version=\"1.0\"?><multistatus xmlns=\"DAV:\">{file}</multistatus>");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut request = String::new();
            while reader.read_line(&mut request).unwrap() > 2 {}
            let is_top =
                request.starts_with("PROPFIND /s ") || request.starts_with("PROPFIND /s/ ");
            let (status, body) = if is_top { (207, &*top) } else { (404, "") };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} -\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
            );
            let stream = reader.get_mut();
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn an_empty_prefix_on_a_listing_server_is_empty() {
    let store = Store::open(&webdav()).unwrap();
    for _ in 0..2 {
        let listing = block_on(store.list(&key("0"), 10)).unwrap();
        assert!(listing.folders.is_empty() && listing.files.is_empty());
    }
    // The check that listing works is made once.
    assert_eq!(store.activity().lists, 3);
    let top = block_on(store.list(&key(""), 10)).unwrap();
    assert_eq!(top.files.len(), 1);
}
