//! Requests to a local web server, and the errors that its faults cause.

use core::time::Duration;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use zvf_model::fetch::{CellOptions, CellRef, CellRequest, Fetch, FetchProblem};
use zvf_store::{
    ByteRange, CellReader, ListError, MergeLimits, OpenError, OpenOptions, Read, ReadError, Store,
};

use crate::support::{block_on, bounded, full, key, numbered, part};

/// A fault in a response of the server.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The response has this status.
    Status(u16),
    /// The connection closes after half of the body.
    Cut,
    /// The body stops after half of its bytes, and the connection stays open.
    Stall,
    /// The body is sent byte by byte.
    Slow,
    /// The response contains the whole object and ignores the range.
    Whole,
    /// The response declares a different range.
    Elsewhere,
    /// The response declares and contains half of the body.
    Short,
    /// The response declares a body of this size.
    Announce(u64),
}

struct Server {
    objects: BTreeMap<&'static str, Vec<u8>>,
    /// Taken from the end, one per request. If `stuck`, the last one applies to every request.
    faults: Mutex<Vec<Fault>>,
    stuck: bool,
    etag: bool,
    log: Mutex<Vec<String>>,
}

impl Server {
    fn new(faults: &[Fault]) -> Self {
        Self {
            objects: [("/s/a", numbered(100_000)), ("/s/empty", Vec::new())].into(),
            faults: Mutex::new(faults.iter().rev().copied().collect()),
            stuck: false,
            etag: true,
            log: Mutex::default(),
        }
    }

    fn stuck(fault: Fault) -> Self {
        Self {
            stuck: true,
            ..Self::new(&[fault])
        }
    }

    fn fault(&self) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        if self.stuck {
            faults.last().copied()
        } else {
            faults.pop()
        }
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let server = Arc::clone(&self);
            tokio::spawn(async move { server.response(stream).await });
        }
    }

    /// Serves one request. Errors of a client that disconnected are ignored.
    async fn response(&self, mut stream: TcpStream) -> Option<()> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.ok()?);
        }
        let request = String::from_utf8(request).unwrap();
        let mut words = request.split(' ');
        let (method, path) = (words.next()?, words.next()?);
        let range = request.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("range").then_some(value)
        });
        let line = format!("{method} {path} {}", range.unwrap_or("whole"));
        self.log.lock().unwrap().push(line);
        let fault = self.fault();
        let object = self.objects.get(path);
        let (status, range) = match (fault, object, range) {
            (Some(Fault::Status(status)), ..) => (status, 0..0),
            (_, None, _) => (404, 0..0),
            (Some(Fault::Whole), Some(object), _) | (_, Some(object), None) => {
                (200, 0..object.len())
            }
            (_, Some(object), Some(range)) => {
                let range = range_of(range, object.len());
                range.map_or((416, 0..0), |range| (206, range))
            }
        };
        let body = object.map_or(&[][..], |object| &object[range.clone()]);
        let mut head = vec![
            format!("HTTP/1.1 {status} -"),
            "Connection: close".to_owned(),
        ];
        let announced = match fault {
            Some(Fault::Announce(size)) => size,
            Some(Fault::Short) => u64::try_from(body.len() / 2).unwrap(),
            _ => u64::try_from(body.len()).unwrap(),
        };
        head.push(format!("Content-Length: {announced}"));
        if self.etag {
            head.push("ETag: \"1\"".to_owned());
        }
        if status == 206 {
            let shift = usize::from(matches!(fault, Some(Fault::Elsewhere)));
            let (first, last) = (range.start + shift, range.end - 1 + shift);
            let size = object.map_or(0, Vec::len);
            head.push(format!("Content-Range: bytes {first}-{last}/{size}"));
        }
        stream
            .write_all(format!("{}\r\n\r\n", head.join("\r\n")).as_bytes())
            .await
            .ok()?;
        match fault {
            Some(Fault::Cut | Fault::Short) => {
                stream.write_all(&body[..body.len() / 2]).await.ok()?;
            }
            Some(Fault::Stall) => {
                stream.write_all(&body[..body.len() / 2]).await.ok()?;
                core::future::pending::<()>().await;
            }
            Some(Fault::Slow) => {
                for byte in body {
                    stream.write_all(&[*byte]).await.ok()?;
                    tokio::task::yield_now().await;
                }
            }
            _ => stream.write_all(body).await.ok()?,
        }
        stream.shutdown().await.ok()
    }
}

/// Returns the range in a range header, limited to `len`, or `None` if it is empty.
fn range_of(range: &str, len: usize) -> Option<core::ops::Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", suffix) => len.saturating_sub(suffix.parse().ok()?)..len,
        (first, "") => first.parse().ok()?..len,
        (first, last) => first.parse().ok()?..len.min(last.parse::<usize>().ok()? + 1),
    };
    (range.start < range.end).then_some(range)
}

type Responses = Result<Vec<Option<Vec<u8>>>, ReadError>;

/// Reads from a server. Returns the results and the requests that the server received.
fn run(server: Server, options: &OpenOptions, reads: &[Read]) -> (Responses, Vec<String>) {
    let server = Arc::new(server);
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/s", listener.local_addr().unwrap());
        tokio::spawn(Arc::clone(&server).serve(listener));
        let store = options.open(&address).unwrap();
        let responses = store.read(reads).await;
        let vecs = |responses: Vec<Option<bytes::Bytes>>| {
            let responses = responses.into_iter();
            responses.map(|bytes| bytes.map(|b| b.to_vec())).collect()
        };
        let log = server.log.lock().unwrap().clone();
        (responses.map(vecs), log)
    })
}

#[track_caller]
fn check(server: Server, reads: &[Read], want: &[Option<&[u8]>], log: &[&str]) {
    let (responses, requested) = run(server, &OpenOptions::default().retries(2), reads);
    let bodies = responses.unwrap();
    let responses: Vec<Option<&[u8]>> = bodies.iter().map(Option::as_deref).collect();
    assert!(responses == want, "{requested:?}");
    assert_eq!(requested, log);
}

#[track_caller]
fn check_error(server: Server, read: Read, is: impl Fn(&ReadError) -> bool) {
    let stalls = matches!(server.faults.lock().unwrap()[..], [Fault::Stall]);
    let patience = if stalls { 200 } else { 20_000 };
    let options = OpenOptions::default()
        .retries(1)
        .timeout(Duration::from_millis(patience));
    let (responses, requested) = run(server, &options, &[read]);
    let error = responses.unwrap_err();
    assert!(is(&error), "{error:?} {requested:?}");
    assert_eq!(error.key(), &key("a"));
}

#[test]
fn ranges_are_merged_and_sizes_are_never_requested() {
    let all = numbered(100_000);
    let reads = [
        bounded("a", 70..80),
        bounded("a", 0..10),
        bounded("a", 5000..5010),
    ];
    let want = [Some(&all[70..80]), Some(&all[..10]), Some(&all[5000..5010])];
    check(Server::new(&[]), &reads, &want, &["GET /s/a bytes=0-5009"]);
    let suffix = [part("a", ByteRange::Suffix(16))];
    let want = [Some(&all[99_984..])];
    check(Server::new(&[]), &suffix, &want, &["GET /s/a bytes=-16"]);
    let open = [part("a", ByteRange::From(99_990))];
    let want = [Some(&all[99_990..])];
    check(Server::new(&[]), &open, &want, &["GET /s/a bytes=99990-"]);
    let whole = [full("a"), full("empty")];
    let (responses, _) = run(Server::new(&[]), &OpenOptions::default(), &whole);
    assert!(responses.unwrap() == [Some(all), Some(Vec::new())]);
}

#[test]
fn an_absent_object_is_none() {
    let reads = [full("b")];
    check(Server::new(&[]), &reads, &[None], &["GET /s/b whole"]);
    let reads = [bounded("b", 0..4)];
    check(Server::new(&[]), &reads, &[None], &["GET /s/b bytes=0-3"]);
}

#[test]
fn server_errors_are_retried() {
    let all = numbered(100_000);
    let faults = [Fault::Status(503), Fault::Status(500)];
    let want = [Some(&all[..10])];
    let log = ["GET /s/a bytes=0-9"; 3];
    check(Server::new(&faults), &[bounded("a", 0..10)], &want, &log);
}

#[test]
fn statuses_map_to_distinct_errors() {
    use ReadError as E;
    let read = || bounded("a", 0..10);
    let check = |status, is: fn(&E) -> bool| {
        check_error(Server::stuck(Fault::Status(status)), read(), is);
    };
    check(503, |e| {
        matches!(e, E::Throttled { .. }) && e.is_transient()
    });
    check(429, |e| matches!(e, E::Throttled { .. }));
    check(500, |e| {
        matches!(e, E::Unavailable { .. }) && e.is_transient()
    });
    check(401, |e| {
        matches!(e, E::Unauthenticated { .. }) && !e.is_transient()
    });
    check(403, |e| matches!(e, E::Forbidden { .. }));
    check(416, |e| matches!(e, E::Truncated { .. }));
    check(400, |e| matches!(e, E::Io { .. }) && !e.is_transient());
}

#[test]
fn an_interrupted_body_is_resumed_or_fails() {
    let all = numbered(100_000);
    let want = [Some(&all[..1000])];
    let log = ["GET /s/a bytes=0-999", "GET /s/a bytes=500-999"];
    let reads = [bounded("a", 0..1000)];
    check(Server::new(&[Fault::Cut]), &reads, &want, &log);
    // Without an entity tag, the object may have changed in between, so the read starts over.
    let untagged = |server| Server {
        etag: false,
        ..server
    };
    let log = ["GET /s/a bytes=0-999"; 2];
    check(untagged(Server::new(&[Fault::Cut])), &reads, &want, &log);
    let is = |e: &ReadError| matches!(e, ReadError::Unavailable { .. });
    check_error(untagged(Server::stuck(Fault::Cut)), full("a"), is);
    check_error(Server::stuck(Fault::Cut), full("a"), is);
}

#[test]
fn a_slow_body_is_read_and_a_stalled_one_times_out() {
    let all = numbered(100_000);
    let reads = [bounded("a", 0..300)];
    let log = ["GET /s/a bytes=0-299"];
    check(
        Server::new(&[Fault::Slow]),
        &reads,
        &[Some(&all[..300])],
        &log,
    );
    let is = |e: &ReadError| matches!(e, ReadError::Unavailable { .. });
    check_error(Server::stuck(Fault::Stall), bounded("a", 0..300), is);
}

#[test]
fn an_unreachable_server_is_unavailable() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/s", listener.local_addr().unwrap());
        drop(listener);
        let store = OpenOptions::default().retries(0).open(&address).unwrap();
        let error = store.read_one(full("a")).await.unwrap_err();
        assert!(matches!(error, ReadError::Unavailable { .. }), "{error:?}");
    });
}

#[test]
fn a_range_past_the_end_is_an_error() {
    let truncated = |e: &ReadError| matches!(e, ReadError::Truncated { .. });
    for range in [
        ByteRange::Bounded(99_990..100_001),
        ByteRange::Bounded(100_000..100_001),
        ByteRange::From(100_000),
        ByteRange::Suffix(100_001),
    ] {
        check_error(Server::new(&[]), part("a", range), truncated);
    }
}

#[test]
fn a_server_without_range_support_is_asked_for_whole_objects() {
    let all = numbered(100_000);
    let reads = [bounded("a", 10..20)];
    let log = ["GET /s/a bytes=10-19", "GET /s/a whole"];
    check(
        Server::stuck(Fault::Whole),
        &reads,
        &[Some(&all[10..20])],
        &log,
    );
}

#[test]
fn an_object_that_is_returned_whole_once_does_not_count_for_others() {
    let mut server = Server::new(&[Fault::Whole]);
    server.objects.insert("/s/b", numbered(1000));
    let server = Arc::new(server);
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/s", listener.local_addr().unwrap());
        tokio::spawn(Arc::clone(&server).serve(listener));
        let limits = MergeLimits {
            gap: 0,
            size: 1 << 20,
        };
        let options = OpenOptions::default().merge_limits(limits);
        let store = options.open(&address).unwrap();
        let whole = ["a", "a", "b"].map(|name| bounded(name, 10..20));
        for read in whole {
            let found = store.read_one(read).await.unwrap().unwrap();
            assert_eq!(found, numbered(20)[10..]);
        }
        // Ranges of an object without ranges are cut from one response.
        let reads = [bounded("a", 0..10), bounded("a", 50_000..50_010)];
        store.read(&reads).await.unwrap();
    });
    let log = [
        "GET /s/a bytes=10-19",
        "GET /s/a whole",
        "GET /s/a whole",
        "GET /s/b bytes=10-19",
        "GET /s/a whole",
    ];
    assert_eq!(*server.log.lock().unwrap(), log);
}

#[test]
fn a_response_with_a_different_range_is_an_error() {
    let is = |e: &ReadError| matches!(e, ReadError::Unavailable { .. });
    check_error(Server::stuck(Fault::Elsewhere), bounded("a", 10..20), is);
    let all = numbered(100_000);
    let log = ["GET /s/a bytes=10-19"; 2];
    let reads = [bounded("a", 10..20)];
    let server = Server::new(&[Fault::Elsewhere]);
    check(server, &reads, &[Some(&all[10..20])], &log);
}

/// The body has its declared length, but is shorter than its declared range.
#[test]
fn a_body_shorter_than_its_range_is_retried() {
    let all = numbered(100_000);
    let reads = [bounded("a", 10..20)];
    let log = ["GET /s/a bytes=10-19"; 2];
    let server = Server::new(&[Fault::Short]);
    check(server, &reads, &[Some(&all[10..20])], &log);
    let is = |e: &ReadError| matches!(e, ReadError::Unavailable { .. });
    check_error(Server::stuck(Fault::Short), bounded("a", 10..20), is);
}

#[test]
fn a_declared_size_over_the_budget_is_not_read() {
    let server = Server::stuck(Fault::Announce(1 << 40));
    let is = |e: &ReadError| matches!(e, ReadError::OverBudget { size, .. } if *size == 1 << 40);
    check_error(server, full("a"), is);
}

#[test]
fn missing_list_support_is_distinguished_from_server_errors() {
    let list = |status| {
        let server = Arc::new(Server::stuck(Fault::Status(status)));
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}/s", listener.local_addr().unwrap());
            tokio::spawn(Arc::clone(&server).serve(listener));
            let store: Store = OpenOptions::default().retries(0).open(&address).unwrap();
            let error = store.list(&key(""), 10).await.unwrap_err();
            let kind = CellReader::new(store).children(&key("")).await.unwrap_err();
            (error, kind.problem)
        })
    };
    for status in [401, 403, 405, 501] {
        let (error, problem) = list(status);
        assert!(
            matches!(error, ListError::Unlistable { .. }),
            "{status}: {error:?}"
        );
        assert_eq!(problem, FetchProblem::Unlistable, "{status}");
    }
    for status in [429, 500, 503] {
        let (error, problem) = list(status);
        assert!(error.is_transient(), "{status}: {error:?}");
        assert_eq!(problem, FetchProblem::Unavailable, "{status}");
    }
}

#[test]
fn server_errors_are_reported_to_queries_as_unavailable() {
    let server = Arc::new(Server::stuck(Fault::Status(503)));
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/s", listener.local_addr().unwrap());
        tokio::spawn(Arc::clone(&server).serve(listener));
        let store: Store = OpenOptions::default().retries(0).open(&address).unwrap();
        let reader = CellReader::new(store);
        let cell = CellRef::Child(key("a"));
        let wanted = [CellRequest { cell, part: None }];
        let got = reader.cells(&wanted, CellOptions::default()).await;
        let error = got.into_iter().next().unwrap().unwrap_err();
        assert_eq!(error.problem, FetchProblem::Unavailable);
        assert_eq!(error.key, key("a"));
        let error = reader.nodes(&[key("a")]).await.unwrap_err();
        assert_eq!(error.problem, FetchProblem::Unavailable);
    });
}

#[test]
fn options_have_the_names_of_object_store() {
    let opened = |name: &str, value: &str| {
        let options = OpenOptions::default().option(name, value);
        options.open("http://localhost/s")
    };
    assert!(opened("connect_timeout", "5s").is_ok());
    let error = opened("no_such_option", "1").unwrap_err();
    assert!(matches!(error, OpenError::Option(name) if name == "no_such_option"));
    let error = opened("timeout", "soon").unwrap_err();
    assert!(
        matches!(error, OpenError::Configuration { .. }),
        "{error:?}"
    );
}
