//! A plain web server: it gives files, whole or a range of them, and knows
//! nothing else.

use core::ops::Range;
use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// A web server on loopback, which runs as long as the test does.
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
    /// Serves `files` by their path, and answers anything but `GET` with the
    /// status `refusal`: servers differ in it.
    ///
    /// # Panics
    ///
    /// When nothing can listen on loopback.
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
                // A client that went away is none of our business.
                thread::spawn(move || served.answer(stream).ok());
            }
        });
        Self { address, log }
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked since the last call, as `GET /a/b` or `GET /a/b
    /// bytes=0-9`.
    pub fn take_log(&self) -> Vec<String> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut *log)
    }
}

impl Server {
    fn answer(&self, stream: TcpStream) -> io::Result<()> {
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
        let asked = range
            .iter()
            .fold(format!("{method} {path}"), |line, range| {
                format!("{line} {range}")
            });
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(asked);
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

/// The bytes a range header names; `None` when there are none of them.
fn range_of(range: &str, len: usize) -> Option<Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", suffix) => len.saturating_sub(suffix.parse().ok()?)..len,
        (first, "") => first.parse().ok()?..len,
        (first, last) => first.parse().ok()?..len.min(last.parse::<usize>().ok()? + 1),
    };
    (range.start < range.end).then_some(range)
}
