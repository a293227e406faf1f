//! Objects of a store: a bucket, a folder, or memory.

use core::{fmt, ops::Range};
use std::{borrow::Cow, io, sync::mpsc, thread};

use zvf_model::key::Key;
use zvf_store::Read;
use zvf_store::{OpenOptions, Store};

use super::ByteSource;
use crate::DenseError;

/// Maximum number of sibling objects; the size of the object is found by listing its folder.
const MAX_SIBLINGS: usize = 1 << 20;

/// An object of a store: a bucket, a folder, or memory.
///
/// Ranges of one call are fetched together, with nearby ranges in one request. A separate thread makes
/// the requests, so that any thread can read.
pub struct StoreSource {
    name: String,
    len: u64,
    requests: mpsc::Sender<ReadRequest>,
}

/// Ranges to read, and the channel of the result.
struct ReadRequest {
    ranges: Vec<Range<u64>>,
    reply: mpsc::Sender<io::Result<Vec<Vec<u8>>>>,
}

impl fmt::Debug for StoreSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreSource({:?}, {} bytes)", self.name, self.len)
    }
}

impl StoreSource {
    /// Opens the object at an address such as `s3://bucket/folder/a.tet`. This build must support the kind
    /// of store, and the store must support listing.
    ///
    /// # Errors
    ///
    /// If the object does not exist, or the store cannot be reached.
    pub fn open(address: &str, options: &OpenOptions) -> Result<Self, DenseError> {
        let in_store = |error: io::Error| DenseError::io(address, error);
        let (folder, name) = address
            .rsplit_once('/')
            .ok_or_else(|| in_store(io::Error::other("an address has a folder and a name")))?;
        let store = options
            .open(folder)
            .map_err(|error| in_store(io::Error::other(error)))?;
        Self::of(store, name, address.to_owned())
    }

    /// Opens the object at a key of a store; `name` is for messages.
    ///
    /// # Errors
    ///
    /// If the object does not exist, or the store cannot be reached.
    pub fn of(store: Store, key: &str, name: String) -> Result<Self, DenseError> {
        let in_store = |error: io::Error| DenseError::io(&name, error);
        let key = Key::parse(key).map_err(|error| in_store(io::Error::other(error)))?;
        let (requests, received) = mpsc::channel();
        let (ready, starts) = mpsc::channel();
        thread::Builder::new()
            .name("zvf-dense reads".to_owned())
            .spawn(move || serve(&store, &key, &ready, &received))
            .map_err(in_store)?;
        let len = starts
            .recv()
            .map_err(|_| in_store(disconnected()))?
            .map_err(in_store)?;
        Ok(Self {
            name,
            len,
            requests,
        })
    }

    fn fetch(&self, ranges: Vec<Range<u64>>) -> io::Result<Vec<Vec<u8>>> {
        let (reply, replied) = mpsc::channel();
        let request = ReadRequest { ranges, reply };
        self.requests.send(request).map_err(|_| disconnected())?;
        replied.recv().map_err(|_| disconnected())?
    }
}

fn disconnected() -> io::Error {
    io::Error::other("the thread that reads has ended")
}

/// Sends the length of the object, then serves requests until the channel closes.
fn serve(
    store: &Store,
    key: &Key,
    ready: &mpsc::Sender<io::Result<u64>>,
    requests: &mpsc::Receiver<ReadRequest>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            ready.send(Err(error)).ok();
            return;
        }
    };
    let sizes = runtime.block_on(store.sizes(core::slice::from_ref(key), MAX_SIBLINGS));
    let len = sizes.map_err(io::Error::other).and_then(|sizes| {
        let len = sizes.into_iter().next().flatten();
        len.ok_or_else(|| io::ErrorKind::NotFound.into())
    });
    // The receiver may be gone.
    ready.send(len).ok();
    for ReadRequest { ranges, reply } in requests {
        let reads: Vec<Read> = ranges
            .into_iter()
            .map(|range| Read::bounded(key.clone(), range))
            .collect();
        let read = runtime
            .block_on(store.read(&reads))
            .map_err(io::Error::other);
        let parts = read.and_then(|parts| {
            let parts = parts
                .into_iter()
                .map(|part| Ok(part.ok_or(io::ErrorKind::NotFound)?.to_vec()));
            parts.collect()
        });
        // The reader may have stopped waiting.
        reply.send(parts).ok();
    }
}

impl ByteSource for StoreSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let len = u64::try_from(into.len()).unwrap_or(u64::MAX);
        let end = offset
            .checked_add(len)
            .filter(|end| *end <= self.len)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        if into.is_empty() {
            return Ok(());
        }
        let part = self.fetch(core::iter::once(offset..end).collect())?;
        let part = part.first().filter(|part| part.len() == into.len());
        into.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Returns the preferred size of a read; each read is a request.
    fn run(&self) -> u64 {
        8 << 20
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Cow<'_, [u8]>>, DenseError> {
        let in_store = |error| DenseError::io(&self.name, error);
        let is_inside = |range: &Range<u64>| range.start <= range.end && range.end <= self.len;
        if !ranges.iter().all(is_inside) {
            return Err(in_store(io::ErrorKind::UnexpectedEof.into()));
        }
        // An empty range needs no request.
        let wanted: Vec<Range<u64>> = ranges
            .iter()
            .filter(|range| !range.is_empty())
            .cloned()
            .collect();
        let mut parts = if wanted.is_empty() {
            Vec::new()
        } else {
            self.fetch(wanted).map_err(in_store)?
        }
        .into_iter();
        let parts: Result<Vec<_>, _> = ranges
            .iter()
            .map(|range| {
                if range.is_empty() {
                    return Ok(Cow::Borrowed(&[][..]));
                }
                let part = parts.next().filter(|part| {
                    u64::try_from(part.len()) == Ok(range.end.saturating_sub(range.start))
                });
                part.map(Cow::Owned).ok_or(io::ErrorKind::UnexpectedEof)
            })
            .collect();
        parts.map_err(|kind| in_store(kind.into()))
    }
}
