//! HTTP as clients speak it, well and badly.

use std::{
    io::{Read, Write},
    net::Shutdown,
    time::Duration,
};

use zvf::{Dataset, GeometryKind};
use zvf_serve::{LayerSource, ServeError, ServeOptions, Server};

use crate::{
    client::{Response, TestServer},
    stores::{TestStores, block_on, points},
};

fn served(options: ServeOptions) -> (TestStores, TestServer) {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(500));
    let server = TestServer::start(&[("a", &address)], options);
    (stores, server)
}

#[test]
fn objects_of_the_store_are_served_in_ranges() {
    let (stores, server) = served(ServeOptions::new());
    let whole = std::fs::read(stores.folder.path().join("a.zv/zarr.json")).unwrap();
    let size = whole.len();
    let path = "/a/store/zarr.json";
    let response = server.send("GET", path, &[]);
    assert_eq!((response.status, &response.body), (200, &whole));
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("accept-ranges"), Some("bytes"));
    let last = size - 1;
    for (range, part, content_range) in [
        ("bytes=0-9", &whole[..10], format!("bytes 0-9/{size}")),
        (
            "bytes=5-999999",
            &whole[5..],
            format!("bytes 5-{last}/{size}"),
        ),
        (
            "bytes=-4",
            &whole[size - 4..],
            format!("bytes {}-{last}/{size}", size - 4),
        ),
        ("bytes=7-", &whole[7..], format!("bytes 7-{last}/{size}")),
    ] {
        let response = server.send("GET", path, &[("Range", range)]);
        assert_eq!(
            (response.status, response.body.as_slice()),
            (206, part),
            "{range}"
        );
        assert_eq!(
            response.header("content-range"),
            Some(content_range.as_str())
        );
        assert_eq!(
            response.header("content-length"),
            Some(part.len().to_string().as_str())
        );
    }
    let beyond = server.send("GET", path, &[("Range", "bytes=999999-")]);
    assert_eq!(beyond.status, 416);
    assert_eq!(
        beyond.header("content-range"),
        Some(format!("bytes */{size}").as_str())
    );
    let head = server.send("HEAD", path, &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(
        head.header("content-length"),
        Some(size.to_string().as_str())
    );
    let tag = head.header("etag").unwrap();
    assert_eq!(
        server.send("GET", path, &[("If-None-Match", tag)]).status,
        304
    );
    let lines = [("If-None-Match", "\"other\""), ("If-None-Match", tag)];
    assert_eq!(server.send("GET", path, &lines).status, 304);
    for path in [path, "/a/annotations/info"] {
        let whole = server.send("GET", path, &[]);
        let tag = whole.header("etag").unwrap();
        let range = ("Range", "bytes=0-3");
        for (tags, status) in [(tag, 206), ("*", 206), ("\"other\"", 412)] {
            let response = server.send("GET", path, &[("If-Match", tags), range]);
            assert_eq!(response.status, status, "{path}: {tags}");
        }
    }
    for path in [
        "/a/store/nothing",
        "/a/store",
        "/a/store/vertices",
        "/a/store/../a.zv/zarr.json",
    ] {
        let status = server.send("GET", path, &[]).status;
        assert!(status == 404 || status == 400, "{path}: {status}");
    }
}

#[test]
fn only_the_pages_of_the_viewer_may_read_responses() {
    let (_stores, server) = served(ServeOptions::new().viewer("https://viewer.example/v/1/"));
    let path = "/a/annotations/info";
    let from_origin = |origin: &str| server.send("GET", path, &[("Origin", origin)]);
    let allowed = from_origin("https://viewer.example");
    let origin = "access-control-allow-origin";
    assert_eq!(allowed.header(origin), Some("https://viewer.example"));
    let exposed = allowed.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("Content-Range"), "{exposed}");
    for other in [
        "https://evil.example",
        "null",
        "https://viewer.example.evil.example",
    ] {
        let response = from_origin(other);
        assert_eq!(response.header(origin), None, "{other}");
        assert_eq!(response.header("vary"), Some("Origin"));
    }
    let preflight = [
        ("Origin", "https://viewer.example"),
        ("Access-Control-Request-Method", "GET"),
        ("Access-Control-Request-Headers", "range"),
    ];
    let response = server.send("OPTIONS", path, &preflight);
    assert_eq!(response.status, 204);
    let headers = response.header("access-control-allow-headers").unwrap();
    assert!(headers.contains("range"));
    assert_eq!(
        response.header("access-control-allow-private-network"),
        Some("true")
    );
    let refused = server.send("OPTIONS", path, &[("Origin", "https://evil.example")]);
    assert_eq!(refused.header("access-control-allow-headers"), None);

    let (_stores, open) = served(ServeOptions::new().origins(vec!["*".to_owned()]));
    let response = open.send("GET", path, &[("Origin", "https://any.example")]);
    assert_eq!(response.header(origin), Some("https://any.example"));
}

#[test]
fn other_names_methods_and_paths_are_refused() {
    let (_stores, server) = served(ServeOptions::new());
    let path = "/a/annotations/info";
    let port = server.address.port();
    assert_eq!(
        server.send("GET", path, &[("Host", "evil.example")]).status,
        403
    );
    let local = format!("localhost:{port}");
    assert_eq!(server.send("GET", path, &[("Host", &local)]).status, 200);
    let two = [("Host", local.as_str()), ("Host", "evil.example")];
    assert_eq!(server.send("GET", path, &two).status, 400);
    // The target of a request replaces the header.
    for (host, status) in [("evil.example", 403), (local.as_str(), 200)] {
        let absolute = format!("http://{host}{path}");
        let response = server.send("GET", &absolute, &[("Host", &local)]);
        assert_eq!(response.status, status, "{absolute}");
    }
    let mut stream = server.connect();
    let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    assert_eq!(Response::read(&mut stream).status, 400);
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let refused = server.send(method, path, &[]);
        assert_eq!(refused.status, 405, "{method}");
        assert_eq!(refused.header("allow"), Some("GET, HEAD, OPTIONS"));
    }
    // Only the page itself reports what it shows.
    let own = format!("http://{}", server.address);
    let report = |headers: &[(&str, &str)]| server.send("PUT", "/view/selection", headers).status;
    assert_eq!(report(&[("Origin", &own), ("Content-Length", "0")]), 200);
    assert_eq!(report(&[("Content-Length", "0")]), 403);
    for other in ["null", "http://evil.example", "https://localhost"] {
        let headers = [("Origin", other), ("Content-Length", "0")];
        assert_eq!(report(&headers), 403, "{other}");
    }
    let large = [("Origin", own.as_str()), ("Content-Length", "99999999999")];
    assert_eq!(report(&large), 413);
    assert_eq!(
        server
            .send("GET", "/a/%2e%2e/a/annotations/info", &[])
            .status,
        400
    );
    assert_eq!(
        server
            .send("GET", &format!("/{}", "a".repeat(9000)), &[])
            .status,
        400
    );
}

#[test]
fn other_machines_need_a_token() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(500));
    let everyone = "0.0.0.0:0".parse().unwrap();
    let open = || {
        let dataset = block_on(Dataset::open(address.as_str())).unwrap();
        vec![LayerSource::store("a", dataset)]
    };
    let bind =
        |options: ServeOptions| block_on(Server::bind(open(), &options, &|_, _| {})).map(drop);
    let without = ServeOptions::new().bind(everyone);
    assert!(matches!(bind(without), Err(ServeError::Token(_))));
    let short = ServeOptions::new()
        .bind(everyone)
        .token(Some("abc".to_owned()));
    assert!(matches!(bind(short), Err(ServeError::TokenText)));

    let token = "0123456789abcdef";
    let options = ServeOptions::new().token(Some(token.to_owned()));
    let server = TestServer::start(&[("a", &address)], options);
    assert_eq!(server.path, token);
    for path in [
        "/a/annotations/info",
        "/state.json",
        "/",
        "/0123456789abcdee/a/annotations/info",
    ] {
        let refused = server.send("GET", path, &[]);
        assert_eq!(refused.status, 401, "{path}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    }
    server.get(&format!("/{token}/a/annotations/info"));
    let state = server.get(&format!("/{token}/state.json"));
    assert!(
        String::from_utf8(state)
            .unwrap()
            .contains(&format!("/{token}/a/annotations"))
    );
    let bearer = format!("Bearer {token}");
    let response = server.send("GET", "/state.json", &[("Authorization", &bearer)]);
    assert_eq!(response.status, 200);
}

/// They took all places once, until their headers were overdue.
#[test]
fn connections_without_a_request_do_not_delay_others() {
    let (_stores, server) = served(ServeOptions::new());
    let half_open: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    let info = server.get_within("/a/annotations/info", Duration::from_secs(5));
    assert!(info.is_some());
    drop(half_open);
}

#[test]
fn clients_that_stall_or_break_off_hold_up_nobody() {
    let (_stores, mut server) = served(ServeOptions::new());
    let mut stalled = Vec::new();
    for at in 0..40 {
        let mut stream = server.connect();
        let text: &[u8] = match at % 4 {
            0 => b"GET /a/annotations/info HTTP/1.1\r\nHost:",
            1 => b"",
            2 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            _ => b"GET /a/annotations/spatial0/0_0_0 HTTP/1.1\r\nHost: x\r\n\r\n",
        };
        stream.write_all(text).unwrap();
        if at % 4 == 3 {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        stalled.push(stream);
    }
    for _ in 0..5 {
        server.get("/a/annotations/info");
    }
    drop(stalled.split_off(20));
    server.get("/a/annotations/info");
    // The headers never come; the server ends within its time to drain.
    server.stop();
    drop(stalled);
}

#[test]
fn the_server_ends_after_the_responses_it_began() {
    let (_stores, mut server) = served(ServeOptions::new());
    let mut stream = server.connect();
    let host = server.address.to_string();
    write!(
        stream,
        "GET /a/annotations/spatial0/0_0_0 HTTP/1.1\r\nHost: {host}\r\n\r\n"
    )
    .unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    server.stop();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let text = String::from_utf8_lossy(&rest);
    let length: usize = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap()
        .parse()
        .unwrap();
    let end = rest
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    assert_eq!(rest.len() - end - 4, length);
    assert!(std::net::TcpStream::connect(server.address).is_err());
}

#[test]
fn connections_stay_open_for_further_requests() {
    let (_stores, server) = served(ServeOptions::new());
    let mut stream = server.connect();
    let host = server.address.to_string();
    for _ in 0..3 {
        write!(
            stream,
            "HEAD /a/annotations/info HTTP/1.1\r\nHost: {host}\r\n\r\n"
        )
        .unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    write!(
        stream,
        "GET /state.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200").count(), 4, "{text}");
}

#[test]
fn a_viewer_is_served_beside_the_layers() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Points, &points(500));
    let folder = stores.folder.path().join("client");
    std::fs::create_dir(&folder).unwrap();
    let options = || ServeOptions::new().client(Some(folder.clone()));
    let dataset = block_on(Dataset::open(address.as_str())).unwrap();
    let sources = vec![LayerSource::store("a", dataset)];
    let bound = block_on(Server::bind(sources, &options(), &|_, _| {}));
    assert!(matches!(bound, Err(ServeError::Client { .. })));
    std::fs::write(folder.join("index.html"), "<p>").unwrap();
    std::fs::write(folder.join("draco.wasm"), "\0asm").unwrap();
    let server = TestServer::start(&[("a", &address)], options());
    let page = server.send("GET", "/v/zvf/", &[]);
    assert_eq!((page.status, page.text().as_str()), (200, "<p>"));
    let code = server.send("GET", "/v/zvf/draco.wasm", &[]);
    assert_eq!(code.header("content-type"), Some("application/wasm"));
    for path in [
        "/v/zvf/a.txt",
        "/v/zvf/../a.zv/zarr.json",
        "/v/other/index.html",
    ] {
        assert!(
            [400, 404].contains(&server.send("GET", path, &[]).status),
            "{path}"
        );
    }
    let mut events = server.connect();
    let host = server.address.to_string();
    write!(events, "GET /events/zvf?x HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut start = [0; 512];
    let read = events.read(&mut start).unwrap();
    let start = String::from_utf8_lossy(&start[..read]).into_owned();
    assert!(start.contains("text/event-stream"), "{start}");
    // The stream ends with the server.
    drop(server);
}

/// Regression test: responses ended after two minutes, also while the client read them.
#[tokio::test(start_paused = true)]
async fn streams_of_events_outlast_idle_connections() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>").unwrap();
    let options = ServeOptions::new().client(Some(folder.path().to_path_buf()));
    let server = Server::bind(Vec::new(), &options, &|_, _| {})
        .await
        .unwrap();
    let address = server.address().strip_prefix("http://").unwrap().to_owned();
    let running = tokio::spawn(server.run(std::future::pending()));
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut streams = Vec::new();
    for path in ["/events/zvf?x", "/state.json"] {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        stream.write_all(request(path).as_bytes()).await.unwrap();
        let mut start = [0; 4096];
        let read = stream.read(&mut start).await.unwrap();
        assert!(start[..read].starts_with(b"HTTP/1.1 200"), "{path}");
        streams.push(stream);
    }
    tokio::time::sleep(Duration::from_mins(10)).await;
    let mut rest = Vec::new();
    let hour = Duration::from_hours(1);
    let [events, idle] = streams.as_mut_slice() else {
        unreachable!()
    };
    let ended = tokio::time::timeout(hour, events.read_to_end(&mut rest)).await;
    assert!(ended.is_err(), "{}", String::from_utf8_lossy(&rest));
    idle.read_to_end(&mut rest).await.unwrap();
    running.abort();
}
