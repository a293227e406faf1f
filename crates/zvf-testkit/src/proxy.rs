//! A proxy between a client and a web server that spoils answers.
//!
//! Which answers does not depend on time or luck: those to the first requests
//! for a target, or all of them. A client that asks again more often than that
//! gets everything, however many requests are on their way at once.

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

/// What becomes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// Another status, with the words of a bucket that is asked too much.
    Status(u16),
    /// The connection closes instead.
    Hangup,
    /// The body ends after half of its bytes, and the connection with it.
    Cut,
    /// The body stops after half of its bytes, and the connection stays until
    /// the client leaves.
    Stall,
    /// It comes this much later.
    Late(Duration),
    /// The body is half as long, and the head says so. The range it names stays.
    Short,
    /// Of a request for a whole object only half comes, and the head says that it
    /// is all.
    Shrunk,
    /// All of the object, whatever range was asked for.
    Whole,
    /// The range it says it is begins and ends a byte later.
    Elsewhere,
}

impl ProxyFault {
    /// Whether an answer can have it, by whether a range was asked for.
    fn is_for(self, range: bool) -> bool {
        match self {
            Self::Short | Self::Whole | Self::Elsewhere => range,
            Self::Shrunk => !range,
            _ => true,
        }
    }
}

/// Which answers have a fault.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The fault.
    pub fault: ProxyFault,
    /// Part of the targets (path and query, unescaped) that it is for; all have
    /// the empty one.
    pub of: String,
    /// How many requests for each target get it, whatever their ranges.
    pub times: usize,
}

impl Plan {
    /// The first answer for each target has it.
    pub fn once(fault: ProxyFault) -> Self {
        Self::times(fault, 1)
    }

    /// The first answers for each target have it.
    pub fn times(fault: ProxyFault, times: usize) -> Self {
        Self {
            fault,
            of: String::new(),
            times,
        }
    }

    /// All answers have it.
    pub fn always(fault: ProxyFault) -> Self {
        Self::times(fault, usize::MAX)
    }

    /// Only those for targets with this in them.
    #[must_use]
    pub fn of(self, of: &str) -> Self {
        let of = of.to_owned();
        Self { of, ..self }
    }
}

/// A running proxy. Its threads end with it and the clients' connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    plan: Plan,
    stopped: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: usize,
    faults: usize,
    of_target: HashMap<String, usize>,
}

impl Proxy {
    /// Listens on a free port of this machine for the server at `upstream`.
    ///
    /// # Panics
    ///
    /// When there is no free port.
    pub fn start(upstream: SocketAddr, plan: Plan) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its number");
        let shared = Arc::new(Shared {
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
                // A client or server that goes away is none of our business.
                thread::spawn(move || client.and_then(|client| here.answer(client)));
            }
        });
        Self { address, shared }
    }

    /// `http://` and where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        self.shared.seen().requests
    }

    /// Answers spoilt so far.
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

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request of a connection; the next one takes another.
    fn answer(&self, mut client: TcpStream) -> io::Result<()> {
        let request = Message::read(&mut BufReader::new(&client), false)?;
        let fault = self.fault(&request);
        match fault {
            Some(ProxyFault::Hangup) => return Ok(()),
            Some(ProxyFault::Late(time)) => thread::sleep(time),
            _ => {}
        }
        let mut answer = match fault {
            Some(ProxyFault::Status(status)) => Message::busy(status),
            Some(ProxyFault::Whole) => self.forward(&request.without("range"))?,
            _ => self.forward(&request)?,
        };
        let mut body = core::mem::take(&mut answer.body);
        let mut announced = body.len();
        match fault {
            Some(ProxyFault::Cut | ProxyFault::Stall) => body.truncate(body.len() / 2),
            Some(ProxyFault::Short | ProxyFault::Shrunk) => {
                body.truncate(body.len() / 2);
                announced = body.len();
            }
            Some(ProxyFault::Elsewhere) => answer.shift_range(),
            _ => {}
        }
        answer.body = body;
        client.write_all(&answer.bytes(announced))?;
        if fault == Some(ProxyFault::Stall) {
            // Until it leaves: it has nothing more to say.
            client.read_to_end(&mut Vec::new())?;
        }
        Ok(())
    }

    /// The fault for this request, counted.
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

/// A request or an answer. What says how the body is framed is not among the
/// headers: it is written anew.
#[derive(Debug)]
struct Message {
    start: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Message {
    /// Reads one; without a length its body goes `to_end` or is empty.
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

    /// `bytes 3-5/9` becomes `bytes 4-6/9`.
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

    /// With this length announced, and the connection closed behind it.
    fn bytes(&self, announced: usize) -> Vec<u8> {
        let mut head = vec![self.start.clone(), "connection: close".to_owned()];
        let headers = self.headers.iter();
        head.extend(headers.map(|(name, value)| format!("{name}: {value}")));
        // A request for something has none, and a signature may count on that.
        if self.start.starts_with("HTTP/") || announced > 0 {
            head.push(format!("content-length: {announced}"));
        }
        let head = head.join("\r\n") + "\r\n\r\n";
        [head.as_bytes(), &self.body].concat()
    }
}

/// `a%2Fb` as `a/b`. What is no escape stays.
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
