//! The HTTP server.

mod cache;
mod cells;
mod connections;
mod encoding_cost;
mod live;
mod live_meshes;
mod live_skeletons;
mod live_store;
mod object_cache;
mod object_rows;
mod object_sizes;
mod open_object;
mod page_report;
mod pool;
mod reply;
mod request;
mod site;
mod stored_mesh;
mod stored_object;
mod stored_objects;
mod stored_skeleton;
mod viewer_client;
mod volume;

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::future::{Either, select};
use hyper::{
    HeaderMap, Method, Response, StatusCode,
    body::Incoming,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HeaderName, VARY,
    },
    http::request::Parts,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_io_timeout::TimeoutStream;
use zvf::Dataset;
use zvf_dense::DenseArray;
use zvf_store::Store;

use crate::{layers::Report, view::HOSTED_VIEWER};
use cache::ResponseCache;
use connections::{Connections, Place};
use live_store::LiveStore;
use object_cache::ObjectCache;
pub use page_report::PageReport;
use reply::{Body, Reply, set, set_common};
use request::{Request, RequestRules, origin};
use site::{ServedSource, Site};
use stored_objects::StoredObjects;
use viewer_client::ViewerClient;
use volume::VolumeSource;
pub use volume::{VolumePlacement, VolumePlacementError};

/// Maximum number of concurrent requests. Others wait.
const MAX_REQUESTS: usize = 64;
/// Time for a response, including the wait.
const RESPONSE_TIME: Duration = Duration::from_mins(2);
/// Time in which a client sends the headers of the next request.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Time in which a client takes a part of a response. A part is as large as the buffers of the sockets,
/// which is megabytes.
const WRITE_TIME: Duration = Duration::from_mins(2);
/// Time for the last responses at the end.
const DRAIN_TIME: Duration = Duration::from_secs(5);
/// Bytes of memory by default.
const DEFAULT_MEMORY: u64 = 300 << 20;
const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");
const EXPOSED: &str = "Content-Range, Content-Length, Content-Encoding, Accept-Ranges, ETag";

/// Choices of a [`Server`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The address on which the server listens: a free port of the loopback interface by default.
    pub bind: SocketAddr,
    /// A secret that the path of every request begins with. Required unless the address is one of
    /// the loopback interface.
    pub token: Option<String>,
    /// Additional names of this server that are accepted in the `Host` header of requests.
    pub hosts: Vec<String>,
    /// Additional origins whose pages may read responses; `*` allows all.
    pub origins: Vec<String>,
    /// The address of the viewer that links lead to.
    pub viewer: String,
    /// A folder with the files of a viewer, which is then served and linked to.
    pub client: Option<PathBuf>,
    /// Bytes of responses that are kept.
    pub cache: usize,
    /// Bytes of memory for the annotations of all stores: for the coarse cells of points, or for an
    /// index of the paths in each cell. Finer cells are computed on request.
    pub coarse_cells: usize,
    /// Bytes of encoded skeletons and meshes that are kept. An object that takes more than 5/8 of them is
    /// kept in a temporary file.
    pub objects: usize,
    /// Bytes of memory for the skeletons and meshes that are encoded at once. An object that takes more is
    /// encoded in temporary files.
    pub encoding: u64,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            token: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            viewer: HOSTED_VIEWER.to_owned(),
            client: None,
            cache: 0,
            coarse_cells: 0,
            objects: 0,
            encoding: 0,
        }
        .memory(DEFAULT_MEMORY)
    }
}

impl ServeOptions {
    /// Creates the default choices.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        bind: SocketAddr,
        cache: usize,
        client: Option<PathBuf>,
        coarse_cells: usize,
        encoding: u64,
        hosts: Vec<String>,
        objects: usize,
        origins: Vec<String>,
        token: Option<String>,
        viewer: into String,
    }

    /// Divides about this many bytes of memory among what is kept and what is encoded at once.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        let share = |part: u64| usize::try_from(bytes / part).unwrap_or(usize::MAX);
        self.cache = share(12);
        self.coarse_cells = share(10);
        self.objects = share(4);
        self.encoding = bytes / 2;
        self
    }
}

/// An error of [`Server::bind`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A source cannot be shown.
    #[error("{name} cannot be shown")]
    Source {
        /// The name of the source.
        name: String,
        /// The cause.
        source: Box<dyn core::error::Error + Send + Sync>,
    },
    /// The address cannot be bound.
    #[error("{address} cannot be bound")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The address is reachable from other machines, and there is no token.
    #[error(
        "other machines can reach {0}; set a token (--token), which the path of each request begins with"
    )]
    Token(SocketAddr),
    /// The token cannot be part of a path.
    #[error("a token must have 8 to 128 letters, digits, hyphens and underscores")]
    TokenText,
    /// The folder has no viewer.
    #[error("{} has no viewer", folder.display())]
    Client {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Something to serve.
#[derive(Debug)]
pub struct LayerSource {
    name: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Store(Box<Dataset>),
    Objects(Store),
    Volume {
        array: Arc<dyn DenseArray>,
        map: VolumePlacement,
    },
}

impl LayerSource {
    /// Creates a source of the layers of a store.
    pub fn store(name: impl Into<String>, dataset: Dataset) -> Self {
        Self {
            name: name.into(),
            content: Content::Store(Box::new(dataset)),
        }
    }

    /// Creates a source of the objects of a store, for the page that [`Server::page_link`] opens.
    pub fn objects(name: impl Into<String>, store: Store) -> Self {
        Self {
            name: name.into(),
            content: Content::Objects(store),
        }
    }

    /// Creates a source of the values of a dense array with three axes, whose voxels are placed by
    /// `map`.
    pub fn volume(
        name: impl Into<String>,
        array: Arc<dyn DenseArray>,
        map: VolumePlacement,
    ) -> Self {
        Self {
            name: name.into(),
            content: Content::Volume { array, map },
        }
    }

    async fn open(
        self,
        coarse_cells: usize,
        objects: &Arc<ObjectCache>,
        report: &Report<'_>,
    ) -> Result<ServedSource, ServeError> {
        let Self { name, content } = self;
        let failed = |source| ServeError::Source {
            name: name.clone(),
            source,
        };
        match content {
            Content::Store(dataset) => {
                let objects = Arc::clone(objects);
                match LiveStore::open(name.clone(), *dataset, coarse_cells, objects, report).await {
                    Ok(store) => Ok(ServedSource::Store(Arc::new(store))),
                    Err(error) => Err(failed(Box::new(error))),
                }
            }
            Content::Objects(store) => Ok(ServedSource::Objects {
                name,
                stored: StoredObjects::new(store, Arc::clone(objects)),
            }),
            Content::Volume { array, map } => match VolumeSource::new(name.clone(), array, &map) {
                Ok(volume) => Ok(ServedSource::Volume(volume)),
                Err(error) => Err(failed(Box::new(error))),
            },
        }
    }
}

/// A server of layers that listens on an address.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Arc<ServerState>,
}

#[derive(Debug)]
struct ServerState {
    site: Site,
    rules: RequestRules,
    /// Origins whose pages may read responses.
    origins: Vec<String>,
    requests: Semaphore,
    report: PageReport,
}

impl Server {
    /// Reads the sources for the bounds and ranges that a viewer needs, and listens. `report`
    /// is called with the vertices read so far.
    ///
    /// # Errors
    ///
    /// [`ServeError`].
    pub async fn bind(
        sources: Vec<LayerSource>,
        options: &ServeOptions,
        report: &(dyn Fn(u64, u64) + Send + Sync),
    ) -> Result<Self, ServeError> {
        let address = options.bind;
        let is_loopback = address.ip().is_loopback();
        match &options.token {
            None if !is_loopback => return Err(ServeError::Token(address)),
            Some(token) if !is_token(token) => return Err(ServeError::TokenText),
            _ => {}
        }
        let client = match &options.client {
            None => None,
            Some(folder) => {
                let opened = ViewerClient::open(folder);
                let folder = || folder.clone();
                Some(opened.map_err(|source| ServeError::Client {
                    folder: folder(),
                    source,
                })?)
            }
        };
        let failed = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let mut served: Vec<ServedSource> = Vec::new();
        let objects = ObjectCache::new(options.objects, options.encoding);
        let objects = Arc::new(objects);
        let coarse_cells = options.coarse_cells.checked_div(sources.len()).unwrap_or(0);
        for mut source in sources {
            source.name = free_name(&source.name, &served);
            served.push(source.open(coarse_cells, &objects, report).await?);
        }
        let port = bound.port();
        let host = match options.hosts.first() {
            Some(host) => with_port(host, port),
            None if bound.ip().is_unspecified() => format!("127.0.0.1:{port}"),
            None => bound.to_string(),
        };
        let own = format!("http://{host}");
        let origins = options
            .origins
            .iter()
            .chain([&own, &options.viewer])
            .map(|address| origin_of(address))
            .collect();
        let hosts = host_names(host, &options.hosts, port);
        // With a token, a foreign host name that resolves to this machine is harmless.
        let is_named = is_loopback || !options.hosts.is_empty();
        let token = options.token.as_ref();
        let prefix = token.map_or_else(String::new, |token| format!("/{token}"));
        Ok(Self {
            listener,
            shared: Arc::new(ServerState {
                site: Site {
                    sources: served,
                    client,
                    cache: ResponseCache::new(options.cache, options.cache / 4),
                    address: format!("{own}{prefix}"),
                    viewer: options.viewer.clone(),
                },
                rules: RequestRules {
                    hosts: is_named.then_some(hosts),
                    token: options.token.clone(),
                },
                origins,
                requests: Semaphore::new(MAX_REQUESTS),
                report: PageReport::default(),
            }),
        })
    }

    /// Returns the address of the server, with its token.
    pub fn address(&self) -> &str {
        &self.shared.site.address
    }

    /// Returns the link that opens the viewer with all layers.
    pub fn link(&self) -> String {
        self.shared.site.link()
    }

    /// Returns the link that opens the page with all stores, which needs no other server.
    pub fn page_link(&self) -> String {
        self.shared.site.page_link()
    }

    /// Returns a handle on what the page tells about itself, if `&report` ends its link.
    pub fn page_report(&self) -> PageReport {
        self.shared.report.clone()
    }

    /// Returns the state of the viewer, as JSON.
    pub fn state(&self) -> String {
        self.shared.site.state()
    }

    /// Returns what a user should know about each source, with its name: rounded values, for
    /// example.
    pub fn notes(&self) -> Vec<String> {
        let sources = self.shared.site.sources.iter();
        let notes = sources.flat_map(|source| match source {
            ServedSource::Store(store) => {
                let layers = store.layers();
                let notes = layers.notes.iter();
                notes
                    .map(|note| format!("{}: {note}", store.name))
                    .collect()
            }
            ServedSource::Volume(_) | ServedSource::Objects { .. } => Vec::new(),
        });
        notes.collect()
    }

    /// Serves requests until `stop` completes, then finishes the responses that were begun.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, shared } = self;
        let warming = tokio::spawn(warm(Arc::clone(&shared)));
        let connections = Arc::new(Connections::new());
        let (closing, closed) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let next = pin!(accept(&listener, &connections));
            let accepted = match select(next, &mut stop).await {
                Either::Left((accepted, _)) => accepted,
                Either::Right(_) => break,
            };
            let Some((stream, place)) = accepted else {
                continue;
            };
            while tasks.try_join_next().is_some() {}
            let (shared, closed) = (Arc::clone(&shared), closed.clone());
            tasks.spawn(serve(stream, shared, closed, place));
        }
        warming.abort();
        drop(listener);
        // Without receivers, there is no connection to tell.
        let _ = closing.send(true);
        let all = async { while tasks.join_next().await.is_some() {} };
        // Slow clients are cut off.
        let _ = timeout(DRAIN_TIME, all).await;
    }
}

/// Computes what the first requests to all sources need. Requests report errors.
async fn warm(shared: Arc<ServerState>) {
    for source in &shared.site.sources {
        if let ServedSource::Store(store) = source {
            let _ = store.layers().warm().await;
        }
    }
}

/// Waits for a connection and a place for it.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
) -> Option<(TcpStream, Place)> {
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, connections.place().await?)),
        Err(_) => {
            // The process has too many open files, for example.
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Serves the requests of a connection.
async fn serve(
    stream: TcpStream,
    shared: Arc<ServerState>,
    mut closed: watch::Receiver<bool>,
    place: Place,
) {
    let Place {
        first,
        evicted,
        permit,
    } = place;
    // Responses are written without delay.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    // Not for reads: hyper reads while it responds, to notice that a client breaks off.
    stream.set_write_timeout(Some(WRITE_TIME));
    let stopping = closed.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (shared, stopping) = (Arc::clone(&shared), stopping.clone());
        first.arrived();
        async move {
            let (parts, body) = request.into_parts();
            Ok::<_, Infallible>(shared.respond(&parts, body, stopping).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_headers(64)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut connection = pin!(connection);
    let is_closing = pin!(closed.changed());
    let served = select(connection.as_mut(), is_closing);
    // A client that breaks off is not an error of the server.
    match select(served, pin!(evicted)).await {
        Either::Left((Either::Left(_), _)) | Either::Right(_) => {}
        Either::Left((Either::Right(_), _)) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    drop(permit);
}

impl ServerState {
    async fn respond(
        &self,
        parts: &Parts,
        body: Incoming,
        stopping: watch::Receiver<bool>,
    ) -> Response<Body> {
        let mut response = match self.preflight(parts) {
            Some(response) => response,
            None => match self.rules.accept(parts) {
                Ok(request) if request.is_report => {
                    self.report.take(parts, body).await.respond(&request)
                }
                Ok(request) => self.reply(&request, stopping).await.respond(&request),
                Err(refusal) => Reply::from(refusal).respond(&Request::default()),
            },
        };
        set_common(&mut response);
        self.allow_origin(&parts.headers, &mut response);
        response
    }

    async fn reply(&self, request: &Request, mut stopping: watch::Receiver<bool>) -> Reply {
        let reply = async {
            let Ok(_permit) = self.requests.acquire().await else {
                return Reply::not_found();
            };
            self.site.response(request).await
        };
        match timeout(RESPONSE_TIME, reply).await {
            // A stream of events ends with the server.
            Ok(Reply::Events(pieces)) => {
                let stop = async move {
                    let _ = stopping.changed().await;
                };
                Reply::Events(Box::pin(futures_util::StreamExt::take_until(
                    pieces,
                    Box::pin(stop),
                )))
            }
            Ok(reply) => reply,
            Err(_) => Reply::Failed(
                StatusCode::SERVICE_UNAVAILABLE,
                "the response took too long; build coarser levels of the store, or export it"
                    .to_owned(),
            ),
        }
    }

    /// Returns the response to a preflight request of a browser.
    fn preflight(&self, parts: &Parts) -> Option<Response<Body>> {
        if parts.method != Method::OPTIONS || self.rules.check_host(parts).is_err() {
            return None;
        }
        let empty = Reply::document(reply::TEXT, "");
        let mut response = empty.respond(&Request {
            is_head: true,
            ..Request::default()
        });
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().clear();
        if self.is_allowed(&parts.headers) {
            set(&mut response, ACCESS_CONTROL_ALLOW_METHODS, reply::METHODS);
            set(
                &mut response,
                ACCESS_CONTROL_ALLOW_HEADERS,
                "authorization, if-match, if-none-match, range",
            );
            set(&mut response, ACCESS_CONTROL_MAX_AGE, "600");
            set(&mut response, PRIVATE_NETWORK, "true");
        }
        Some(response)
    }

    fn is_allowed(&self, headers: &HeaderMap) -> bool {
        origin(headers).is_some_and(|origin| {
            let mut allowed = self.origins.iter();
            allowed.any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin))
        })
    }

    /// Lets the pages of allowed origins read a response.
    fn allow_origin(&self, headers: &HeaderMap, response: &mut Response<Body>) {
        set(response, VARY, "Origin");
        if let (Some(origin), true) = (origin(headers), self.is_allowed(headers)) {
            set(response, ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            set(response, ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

/// Returns whether a token can be part of a path and is not easily guessed.
fn is_token(token: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (8..=128).contains(&token.len()) && token.bytes().all(is_plain)
}

/// Returns a name that no other source has, and that no path of the site has.
fn free_name(name: &str, served: &[ServedSource]) -> String {
    let is_free = |name: &str| {
        !["v", "events", "state.json"].contains(&name)
            && served.iter().all(|source| source.name() != name)
    };
    let name: String = name
        .chars()
        .map(|letter| match letter {
            '/' | '\\' => '_',
            letter if letter.is_control() => '_',
            letter => letter,
        })
        .collect();
    let name = match name.as_str() {
        "" | "." | ".." => "store".to_owned(),
        _ => name,
    };
    if is_free(&name) {
        return name;
    }
    let mut number = 2_u64;
    loop {
        let other = format!("{name}_{number}");
        if is_free(&other) {
            return other;
        }
        number = number.saturating_add(1);
    }
}

fn with_port(host: &str, port: u16) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    if has_port {
        host.to_owned()
    } else {
        format!("{host}:{port}")
    }
}

/// Returns the names that the `Host` header of a request may have: those of this machine, `host` and
/// `others`.
fn host_names(host: String, others: &[String], port: u16) -> Vec<String> {
    let local = ["127.0.0.1", "localhost", "[::1]"];
    let mut names = vec![host];
    names.extend(local.map(|name| format!("{name}:{port}")));
    for name in others {
        names.extend([name.clone(), with_port(name, port)]);
    }
    if port == 80 {
        // Clients leave out the port of the scheme.
        let short = names.iter().filter_map(|name| name.strip_suffix(":80"));
        names.extend(short.map(str::to_owned).collect::<Vec<_>>());
    }
    names
}

/// Returns the scheme and host of an address, without the port of the scheme, as browsers send it in
/// the `Origin` header.
fn origin_of(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let host = rest.split('/').next().unwrap_or(rest);
    let host = match scheme {
        "http" => host.strip_suffix(":80"),
        "https" => host.strip_suffix(":443"),
        _ => None,
    }
    .unwrap_or(host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_parts_of_addresses() {
        assert_eq!(origin_of("https://host:8/a/b#c"), "https://host:8");
        assert_eq!(origin_of("https://host"), "https://host");
        assert_eq!(origin_of("*"), "*");
    }

    /// Clients of port 80 send neither it nor its colon.
    #[test]
    fn the_port_of_the_scheme_may_be_left_out() {
        assert_eq!(origin_of("http://127.0.0.1:80"), "http://127.0.0.1");
        assert_eq!(origin_of("https://host:443/a"), "https://host");
        assert_eq!(origin_of("https://host:80"), "https://host:80");
        assert_eq!(origin_of("http://[::1]:80"), "http://[::1]");
        let names = |port| host_names(with_port("lab", port), &["other".to_owned()], port);
        for name in ["lab", "127.0.0.1", "localhost", "[::1]", "other"] {
            let with_port = format!("{name}:80");
            let names = names(80);
            assert!(names.contains(&name.to_owned()), "{name}");
            assert!(names.contains(&with_port), "{with_port}");
        }
        for name in ["lab", "127.0.0.1", "localhost", "[::1]"] {
            assert!(!names(8080).contains(&name.to_owned()), "{name}");
        }
    }

    #[test]
    fn tokens_stand_in_paths() {
        assert!(is_token("abc-DEF_123"));
        for token in ["", "short", "with space", "a/bcdefghi"] {
            assert!(!is_token(token), "{token}");
        }
    }

    #[test]
    fn hosts_get_a_port() {
        assert_eq!(with_port("lab.example", 80), "lab.example:80");
        assert_eq!(with_port("lab.example:8080", 80), "lab.example:8080");
    }
}
