//! An HTTP client that keeps its connection, as browsers do.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail};

/// A connection to a server.
pub(super) struct Connection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

/// The status and the body of a response.
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Connection {
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_mins(2)))?;
        Ok(Self {
            address,
            stream: BufReader::new(stream),
        })
    }

    /// Requests a path.
    pub(super) fn get(&mut self, path: &str) -> Result<HttpAnswer> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut line, mut status, mut length) = (String::new(), None, 0);
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("{path}: the server closed the connection");
            }
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if status.is_none() {
                let code = text.split(' ').nth(1).context("no status")?;
                status = Some(code.parse()?);
            } else if let Some((name, value)) = text.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(HttpAnswer {
            status: status.context("no status")?,
            body,
        })
    }
}
