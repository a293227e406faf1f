//! A proxy between a client and a web server that injects faults into responses.
//!
//! The choice of responses is deterministic: those to the first requests for a target, or all. A
//! client with more retries than faults gets every response, independent of concurrency.

use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Fault of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// Another status, with the message of an overloaded bucket.
    Status(u16),
    /// The connection closes instead.
    Hangup,
    /// The body ends after half of its bytes, and the connection with it.
    Cut,
    /// The body stops after half of its bytes, and the connection stays open until the client
    /// closes it.
    Stall,
    /// The response is delayed by this duration.
    Late(Duration),
    /// The body is half as long, with a matching length but an unchanged range.
    Short,
    /// A response to a request for a whole object contains only half, declared as complete.
    Shrunk,
    /// The whole object instead of the requested range.
    Whole,
    /// The declared range is shifted by one byte.
    Elsewhere,
}

impl ProxyFault {
    /// Returns whether the fault applies to requests with or without a range.
    fn is_for(self, range: bool) -> bool {
        match self {
            Self::Short | Self::Whole | Self::Elsewhere => range,
            Self::Shrunk => !range,
            _ => true,
        }
    }
}

/// Selection of the responses with a fault.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// The fault.
    pub fault: ProxyFault,
    /// Substring of the affected targets (path and query, unescaped); all targets if empty.
    pub of: String,
    /// Number of affected requests for each target, whatever their ranges.
    pub times: usize,
}

impl FaultPlan {
    /// Affects the first response for each target.
    pub fn once(fault: ProxyFault) -> Self {
        Self::times(fault, 1)
    }

    /// Affects the first responses for each target.
    pub fn times(fault: ProxyFault, times: usize) -> Self {
        Self {
            fault,
            of: String::new(),
            times,
        }
    }

    /// Affects all responses.
    pub fn always(fault: ProxyFault) -> Self {
        Self::times(fault, usize::MAX)
    }

    /// Restricts the plan to targets that contain this text.
    #[must_use]
    pub fn of(self, of: &str) -> Self {
        let of = of.to_owned();
        Self { of, ..self }
    }
}

/// A running proxy. Its threads end with the proxy and the connections of clients.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<ProxyState>,
}

#[derive(Debug)]
struct ProxyState {
    upstream: SocketAddr,
    plan: FaultPlan,
    stopped: AtomicBool,
    seen: Mutex<RequestCounts>,
}

#[derive(Debug, Default)]
struct RequestCounts {
    requests: usize,
    faults: usize,
    of_target: HashMap<String, usize>,
}

impl Proxy {
    /// Listens on a free port of this machine for the server at `upstream`.
    ///
    /// # Panics
    ///
    /// Panics if there is no free port.
    pub fn start(upstream: SocketAddr, plan: FaultPlan) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its number");
        let shared = Arc::new(ProxyState {
            upstream,
            plan,
            stopped: AtomicBool::new(false),
            seen: Mutex::default(),
        });
        let here = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if here.stopped.load(Ordering::Relaxed) {
                    break;
                }
                let here = Arc::clone(&here);
                // A disconnected client or server is not an error.
                thread::spawn(move || client.and_then(|client| here.respond(client)));
            }
        });
        Self { address, shared }
    }

    /// Returns the `http://` address of the proxy.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> usize {
        self.shared.seen().requests
    }

    /// Returns the number of faults so far.
    pub fn faults(&self) -> usize {
        self.shared.seen().faults
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for clients.
        drop(TcpStream::connect(self.address));
    }
}

impl ProxyState {
    fn seen(&self) -> MutexGuard<'_, RequestCounts> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles one request of a connection; the next request takes another connection.
    fn respond(&self, mut client: TcpStream) -> io::Result<()> {
        let request = Message::read(&mut BufReader::new(&client), false)?;
        let fault = self.fault(&request);
        match fault {
            Some(ProxyFault::Hangup) => return Ok(()),
            Some(ProxyFault::Late(time)) => thread::sleep(time),
            _ => {}
        }
        let mut response = match fault {
            Some(ProxyFault::Status(status)) => Message::busy(status),
            Some(ProxyFault::Whole) => self.forward(&request.without("range"))?,
            _ => self.forward(&request)?,
        };
        let mut body = core::mem::take(&mut response.body);
        let mut announced = body.len();
        match fault {
            Some(ProxyFault::Cut | ProxyFault::Stall) => body.truncate(body.len() / 2),
            Some(ProxyFault::Short | ProxyFault::Shrunk) => {
                body.truncate(body.len() / 2);
                announced = body.len();
            }
            Some(ProxyFault::Elsewhere) => response.shift_range(),
            _ => {}
        }
        response.body = body;
        client.write_all(&response.bytes(announced))?;
        if fault == Some(ProxyFault::Stall) {
            // Wait until the client closes the connection.
            client.read_to_end(&mut Vec::new())?;
        }
        Ok(())
    }

    /// Returns the fault for this request and counts it.
    fn fault(&self, request: &Message) -> Option<ProxyFault> {
        let target = request.start.split(' ').nth(1).unwrap_or_default();
        // Clients differ in what they escape.
        let target = unescaped(target);
        let plan = &self.plan;
        let meant = target.contains(&plan.of) && plan.fault.is_for(request.has("range"));
        let mut seen = self.seen();
        seen.requests += 1;
        if !meant {
            return None;
        }
        let before = seen.of_target.entry(target).or_default();
        if *before >= plan.times {
            return None;
        }
        *before += 1;
        seen.faults += 1;
        Some(plan.fault)
    }

    fn forward(&self, request: &Message) -> io::Result<Message> {
        let mut server = TcpStream::connect(self.upstream)?;
        let length = request.body.len();
        server.write_all(&request.bytes(length))?;
        Message::read(&mut BufReader::new(server), true)
    }
}

/// A request or a response. Headers that frame the body are omitted and written anew.
#[derive(Debug)]
struct Message {
    start: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Message {
    /// Reads a message; without a length, the body extends to the end if `to_end`, otherwise it is
    /// empty.
    fn read(from: &mut impl BufRead, to_end: bool) -> io::Result<Self> {
        let start = line(from)?;
        let mut message = Self {
            start,
            headers: Vec::new(),
            body: Vec::new(),
        };
        let (mut length, mut chunked) = (None, false);
        loop {
            let header = line(from)?;
            let Some((name, value)) = header.split_once(':') else {
                break;
            };
            let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
            match name.as_str() {
                "content-length" => length = Some(value.parse().map_err(bad)?),
                "transfer-encoding" => chunked = true,
                "connection" | "keep-alive" => {}
                _ => message.headers.push((name, value)),
            }
        }
        if chunked {
            loop {
                let size = usize::from_str_radix(line(from)?.trim(), 16).map_err(bad)?;
                read_exact(from, size, &mut message.body)?;
                line(from)?;
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = length {
            read_exact(from, length, &mut message.body)?;
        } else if to_end {
            from.read_to_end(&mut message.body)?;
        }
        Ok(message)
    }

    fn busy(status: u16) -> Self {
        let body = "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>";
        Self {
            start: format!("HTTP/1.1 {status} Busy"),
            headers: vec![("content-type".to_owned(), "application/xml".to_owned())],
            body: body.into(),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(header, _)| header == name)
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| header != name);
        self
    }

    /// Changes `bytes 3-5/9` to `bytes 4-6/9`.
    fn shift_range(&mut self) {
        let next = |number: &str| {
            let number: Option<u64> = number.parse().ok();
            number.map_or_else(|| "?".to_owned(), |number| (number + 1).to_string())
        };
        for (_, value) in self
            .headers
            .iter_mut()
            .filter(|(name, _)| name == "content-range")
        {
            let range = value.trim_start_matches("bytes ");
            let (range, size) = range.split_once('/').unwrap_or((range, "*"));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            *value = format!("bytes {}-{}/{size}", next(first), next(last));
        }
    }

    /// Encodes the message with this declared length and a closing connection.
    fn bytes(&self, announced: usize) -> Vec<u8> {
        let mut head = vec![self.start.clone(), "connection: close".to_owned()];
        let headers = self.headers.iter();
        head.extend(headers.map(|(name, value)| format!("{name}: {value}")));
        // Requests without a body have no length, and a signature may depend on that.
        if self.start.starts_with("HTTP/") || announced > 0 {
            head.push(format!("content-length: {announced}"));
        }
        let head = head.join("\r\n") + "\r\n\r\n";
        [head.as_bytes(), &self.body].concat()
    }
}

/// Decodes `a%2Fb` as `a/b`. Invalid escapes are kept.
fn unescaped(target: &str) -> String {
    let mut parts = target.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).map(|digits| u8::from_str_radix(digits, 16));
        if let Some(Ok(byte)) = byte {
            bytes.push(byte);
            bytes.extend_from_slice(&part.as_bytes()[2..]);
        } else {
            bytes.push(b'%');
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_exact(from: &mut impl BufRead, length: usize, to: &mut Vec<u8>) -> io::Result<()> {
    let length = u64::try_from(length).map_err(bad)?;
    match u64::try_from(from.take(length).read_to_end(to)?) {
        Ok(read) if read == length => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn bad(error: impl core::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
