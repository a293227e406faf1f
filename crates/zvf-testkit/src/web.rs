//! A plain web server that only serves files, whole or in ranges.

use core::ops::Range;
use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// A web server on loopback that runs until it is dropped.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct Server {
    files: BTreeMap<String, Vec<u8>>,
    refusal: u16,
    log: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// Serves `files` by path. Other methods than `GET` get the status `refusal`, because servers
    /// differ in it.
    ///
    /// # Panics
    ///
    /// Panics if no port on loopback is available.
    pub fn serve(files: BTreeMap<String, Vec<u8>>, refusal: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let log = Arc::new(Mutex::default());
        let served = Arc::new(Server {
            files,
            refusal,
            log: Arc::clone(&log),
        });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                // A disconnected client is not an error.
                thread::spawn(move || served.respond(stream).ok());
            }
        });
        Self { address, log }
    }

    /// Returns its address.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests since the last call, as `GET /a/b` or `GET /a/b bytes=0-9`.
    pub fn take_log(&self) -> Vec<String> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut *log)
    }
}

impl Server {
    fn respond(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let mut range = None;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
                break;
            }
            if let Some((name, value)) = line.trim_end().split_once(": ")
                && name.eq_ignore_ascii_case("range")
            {
                range = Some(value.to_owned());
            }
        }
        let mut words = first.split(' ');
        let (method, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let request = range
            .iter()
            .fold(format!("{method} {path}"), |line, range| {
                format!("{line} {range}")
            });
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(request);
        drop(log);
        let file = self.files.get(path.trim_start_matches('/'));
        let (status, extra, body) = match (method, file, range) {
            ("GET", Some(file), None) => (200, String::new(), file.as_slice()),
            ("GET", Some(file), Some(range)) => match range_of(&range, file.len()) {
                Some(range) => {
                    let (first, last, size) = (range.start, range.end - 1, file.len());
                    let extra = format!("Content-Range: bytes {first}-{last}/{size}\r\n");
                    (206, extra, file.get(range).unwrap_or_default())
                }
                None => (416, String::new(), &[][..]),
            },
            ("GET", None, _) => (404, String::new(), &[][..]),
            _ => (self.refusal, String::new(), &[][..]),
        };
        let head = format!(
            "HTTP/1.1 {status} -\r\nConnection: close\r\nETag: \"1\"\r\n\
             Content-Length: {}\r\n{extra}\r\n",
            body.len()
        );
        let stream = reader.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)
    }
}

/// Parses the byte range in a range header; `None` if it is empty.
fn range_of(range: &str, len: usize) -> Option<Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", suffix) => len.saturating_sub(suffix.parse().ok()?)..len,
        (first, "") => first.parse().ok()?..len,
        (first, last) => first.parse().ok()?..len.min(last.parse::<usize>().ok()? + 1),
    };
    (range.start < range.end).then_some(range)
}
