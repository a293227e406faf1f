//! A client that sends requests byte by byte, and a server to talk to.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{Read, Write as _},
    net::{SocketAddr, TcpStream},
    thread::JoinHandle,
    time::Duration,
};

use tokio::sync::oneshot;
use zvf::{Dataset, Follow, OpenOptions};
use zvf_serve::{LayerSource, ServeOptions, Server};

/// A running server. Dropping it stops it.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    /// Things that a user should know.
    pub(crate) notes: Vec<String>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Serves stores by name.
    pub(crate) fn start(stores: &[(&str, &str)], options: ServeOptions) -> Self {
        Self::start_with(stores, options, &OpenOptions::default())
    }

    /// Serves stores by name, which are opened with options.
    pub(crate) fn start_with(
        stores: &[(&str, &str)],
        options: ServeOptions,
        open: &OpenOptions,
    ) -> Self {
        let open = open.clone().follow(Follow::Never);
        let stores: Vec<(String, String)> = stores
            .iter()
            .map(|(name, address)| ((*name).to_owned(), (*address).to_owned()))
            .collect();
        let (stop, stopped) = oneshot::channel();
        let (started, start) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let mut sources = Vec::new();
                for (name, address) in &stores {
                    let dataset = Dataset::open_with(address.as_str(), &open).await;
                    sources.push(LayerSource::store(name, dataset.unwrap()));
                }
                let server = Server::bind(sources, &options, &|_, _| {}).await.unwrap();
                let notes = server.notes();
                started.send((server.address().to_owned(), notes)).unwrap();
                let stop = async move {
                    let _ = stopped.await;
                };
                server.run(stop).await;
            });
        });
        let (url, notes) = start.recv().unwrap();
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        Self {
            address: host.parse().unwrap(),
            path: path.to_owned(),
            notes,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Stops the server and waits for its last responses.
    pub(crate) fn stop(&mut self) {
        if let (Some(stop), Some(thread)) = (self.stop.take(), self.thread.take()) {
            let _ = stop.send(());
            thread.join().unwrap();
        }
    }

    /// Sends a request and disconnects if there is no response within a time.
    pub(crate) fn get_within(&self, path: &str, time: Duration) -> Option<Vec<u8>> {
        let mut stream = self.connect();
        let host = self.address;
        let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_read_timeout(Some(time)).unwrap();
        stream.peek(&mut [0]).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        let response = Response::read(&mut stream);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        Some(response.body)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        stream
    }

    /// Sends a request with headers and returns the response.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut stream = self.connect();
        let host = self.address.to_string();
        let has_host = headers.iter().any(|(name, _)| *name == "Host");
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !has_host {
            write!(request, "Host: {host}\r\n").unwrap();
        }
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").unwrap();
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        Response::read(&mut stream)
    }

    /// Returns the body at a path, which must exist.
    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        let response = self.send("GET", path, &[]);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.body
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A response of the server.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Reads until the server closes the connection.
    pub(crate) fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&bytes)));
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers: BTreeMap<String, String> = lines
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap();
                (name.to_ascii_lowercase(), value.to_owned())
            })
            .collect();
        assert_eq!(headers.get("transfer-encoding"), None);
        Self {
            status: status.parse().unwrap(),
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
