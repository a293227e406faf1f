//! Requests: path, headers, and the rules that admit them.

use std::ops::Range;

use hyper::{
    HeaderMap, Method, Version,
    header::{AUTHORIZATION, HOST, HeaderName, IF_MATCH, IF_NONE_MATCH, IF_RANGE, ORIGIN, RANGE},
    http::{request::Parts, uri::Authority},
};

/// The path to which the page reports what it shows.
const REPORT: [&str; 2] = ["view", "selection"];
/// Maximum length of a path in bytes.
const MAX_PATH: usize = 4096;

/// The part of an object that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteSpan {
    /// From the first to the last byte, both included.
    Bounded(u64, u64),
    /// From this byte to the end.
    From(u64),
    /// The last bytes.
    Last(u64),
}

/// A request that the rules admit.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) is_head: bool,
    /// True for a report of the page about its selection.
    pub(super) is_report: bool,
    /// Decoded segments of the path, without the token.
    pub(super) path: Vec<String>,
    pub(super) span: Option<ByteSpan>,
    /// Entity tags; the object must have one of them.
    pub(super) if_match: Option<String>,
    pub(super) if_none_match: Option<String>,
}

impl Request {
    /// Returns the requested part of an object of `size` bytes.
    pub(super) fn range(&self, size: u64) -> Range<u64> {
        match self.span {
            None => 0..size,
            Some(ByteSpan::Bounded(first, last)) => first..last.saturating_add(1).min(size),
            Some(ByteSpan::From(first)) => first..size,
            Some(ByteSpan::Last(bytes)) => size.saturating_sub(bytes)..size,
        }
    }

    /// Returns whether the client wants another version of an object than that with this tag. Weak tags
    /// name no version.
    pub(super) fn wants_other_version(&self, e_tag: Option<&str>) -> bool {
        let is_this = |tag: &str| e_tag == Some(tag) && !tag.starts_with("W/");
        let wanted = self.if_match.as_deref();
        wanted.is_some_and(|wanted| {
            wanted != "*" && !wanted.split(',').any(|tag| is_this(tag.trim()))
        })
    }

    /// Returns whether the client has the version of an object with this tag.
    pub(super) fn has_version(&self, e_tag: Option<&str>) -> bool {
        let known = self.if_none_match.as_deref().unwrap_or_default();
        e_tag.is_some_and(|tag| {
            let mut tags = known.split(',');
            known == "*" || tags.any(|known| known.trim().trim_start_matches("W/") == tag)
        })
    }

    /// Returns the part of an object of `size` bytes that the body of the response has; `None` for
    /// an empty body, or an error in its place.
    pub(super) fn body(&self, size: u64, e_tag: Option<&str>) -> Option<Range<u64>> {
        let range = self.range(size);
        let is_empty = self.is_head
            || self.wants_other_version(e_tag)
            || self.has_version(e_tag)
            || range.is_empty();
        (!is_empty).then_some(range)
    }
}

/// Reason that a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another method than GET, HEAD and OPTIONS, and PUT for reports of the page.
    Method,
    /// A path that is too long or not encoded well.
    Path,
    /// No `Host` header, several, or one that is not text.
    HostHeader,
    /// A host name that is not that of this server.
    Host,
    /// No token, or another one.
    Token,
}

/// The rules for requests.
#[derive(Clone, Debug)]
pub(super) struct RequestRules {
    /// Names in the `Host` header, with the port where it is not that of the scheme; any if `None`.
    pub(super) hosts: Option<Vec<String>>,
    pub(super) token: Option<String>,
}

impl RequestRules {
    /// Checks a request.
    pub(super) fn accept(&self, parts: &Parts) -> Result<Request, Refusal> {
        self.check_host(parts)?;
        let is_head = parts.method == Method::HEAD;
        let is_report = parts.method == Method::PUT;
        if !is_head && !is_report && parts.method != Method::GET {
            return Err(Refusal::Method);
        }
        let mut path = segments(parts.uri.path())?;
        if let Some(token) = &self.token {
            let is_first = path.first().is_some_and(|first| is_equal(first, token));
            let bearer = text(&parts.headers, AUTHORIZATION)
                .and_then(|header| header.strip_prefix("Bearer "))
                .is_some_and(|given| is_equal(given, token));
            match (is_first, bearer) {
                (true, _) => drop(path.remove(0)),
                (false, true) => {}
                (false, false) => return Err(Refusal::Token),
            }
        }
        if is_report && path != REPORT {
            return Err(Refusal::Method);
        }
        let span = text(&parts.headers, RANGE).and_then(span);
        // A conditional range gets the whole object, because no dates or weak tags are compared.
        let span = span.filter(|_| !parts.headers.contains_key(IF_RANGE));
        Ok(Request {
            is_head,
            is_report,
            path,
            span,
            if_match: list(&parts.headers, IF_MATCH),
            if_none_match: list(&parts.headers, IF_NONE_MATCH),
        })
    }

    /// Refuses names that another site may let point to this machine, and requests that name no host, or
    /// several (RFC 9112, section 3.2).
    pub(super) fn check_host(&self, parts: &Parts) -> Result<(), Refusal> {
        let named = parts.headers.get_all(HOST).iter().count();
        let host = text(&parts.headers, HOST);
        let may_lack = named == 0 && parts.version < Version::HTTP_11;
        if !may_lack && (named != 1 || host.is_none()) {
            return Err(Refusal::HostHeader);
        }
        let Some(hosts) = &self.hosts else {
            return Ok(());
        };
        // The target of a request replaces the header.
        let authority = parts.uri.authority().map(Authority::as_str);
        let host = authority.or(host);
        let is_ours =
            host.is_some_and(|host| hosts.iter().any(|own| own.eq_ignore_ascii_case(host)));
        if is_ours { Ok(()) } else { Err(Refusal::Host) }
    }
}

/// Returns the origin that a script names.
pub(super) fn origin(headers: &HeaderMap) -> Option<&str> {
    text(headers, ORIGIN)
}

/// Returns whether a page of this server sends a request. Its host is checked already.
pub(super) fn is_same_origin(headers: &HeaderMap) -> bool {
    let own = origin(headers).and_then(|origin| origin.strip_prefix("http://"));
    own.is_some() && own == text(headers, HOST)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the members of a list, which may be in several lines of the header.
fn list(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let lines: Vec<&str> = headers
        .get_all(name)
        .into_iter()
        .filter_map(|line| line.to_str().ok())
        .collect();
    (!lines.is_empty()).then(|| lines.join(","))
}

/// Compares in a time that depends on the length only.
fn is_equal(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let differences = given.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differences == 0
}

/// Returns the decoded segments of a path. Empty segments are left out.
fn segments(path: &str) -> Result<Vec<String>, Refusal> {
    if path.len() > MAX_PATH {
        return Err(Refusal::Path);
    }
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| decoded(segment).ok_or(Refusal::Path))
        .collect()
}

/// Undoes percent encoding. Returns `None` for names that could lead out of a folder.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    let name = String::from_utf8(bytes).ok()?;
    let is_safe = name != "."
        && name != ".."
        && !name.contains(['/', '\\', '\0'])
        && !name.chars().any(char::is_control);
    is_safe.then_some(name)
}

/// Reads a header with one range; `None` for others, which are ignored.
fn span(header: &str) -> Option<ByteSpan> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let number = |digits: &str| {
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| digits.parse::<u64>().unwrap_or(u64::MAX))
    };
    match (first, last) {
        ("", last) => Some(ByteSpan::Last(number(last)?)),
        (first, "") => Some(ByteSpan::From(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(ByteSpan::Bounded(first, last))
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::http;

    use super::*;

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn rules(token: Option<&str>) -> RequestRules {
        RequestRules {
            hosts: Some(vec!["127.0.0.1:80".to_owned()]),
            token: token.map(str::to_owned),
        }
    }

    #[test]
    fn paths_stay_inside() {
        let host = [("host", "127.0.0.1:80")];
        let path = |uri| {
            rules(None)
                .accept(&parts(uri, &host))
                .map(|request| request.path)
        };
        assert_eq!(
            path("/a/b%20c//"),
            Ok(vec!["a".to_owned(), "b c".to_owned()])
        );
        for uri in [
            "/../a",
            "/a/%2e%2E",
            "/a%2fb",
            "/a%5cb",
            "/%00",
            "/%zz",
            "/%f",
            "/%ff",
        ] {
            assert_eq!(path(uri), Err(Refusal::Path), "{uri}");
        }
        assert_eq!(path(&format!("/{}", "a".repeat(5000))), Err(Refusal::Path));
    }

    #[test]
    fn other_host_names_are_refused() {
        for host in ["evil.example:80", "127.0.0.1", "127.0.0.1:81"] {
            let refused = rules(None).accept(&parts("/", &[("host", host)]));
            assert_eq!(refused.unwrap_err(), Refusal::Host, "{host}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let ours = ("host", "127.0.0.1:80");
        let theirs = ("host", "evil.example");
        let mut old = parts("/", &[]);
        old.version = Version::HTTP_10;
        for rules in [rules(None), rules(Some("secret"))] {
            for (headers, refusal) in [
                (vec![], Refusal::HostHeader),
                (vec![ours, ours], Refusal::HostHeader),
                (vec![ours, theirs], Refusal::HostHeader),
                (vec![theirs], Refusal::Host),
            ] {
                let refused = rules.check_host(&parts("/", &headers));
                assert_eq!(refused, Err(refusal), "{headers:?}");
            }
            assert_eq!(rules.check_host(&old), Err(Refusal::Host));
            let absolute = |uri, host| rules.check_host(&parts(uri, &[host]));
            assert_eq!(absolute("http://127.0.0.1:80/a", theirs), Ok(()));
            let elsewhere = absolute("http://evil.example/a", ours);
            assert_eq!(elsewhere, Err(Refusal::Host));
        }
    }

    #[test]
    fn versions_are_compared() {
        let other = |if_match: Option<&str>, e_tag| {
            let headers: Vec<_> = if_match
                .map(|tags| ("if-match", tags))
                .into_iter()
                .chain([("host", "127.0.0.1:80")])
                .collect();
            let request = rules(None).accept(&parts("/", &headers)).unwrap();
            request.wants_other_version(e_tag)
        };
        for same in [None, Some("*"), Some("\"a\""), Some("\"b\", \"a\"")] {
            assert!(!other(same, Some("\"a\"")), "{same:?}");
        }
        for different in ["\"b\"", "W/\"a\"", "a", ""] {
            assert!(other(Some(different), Some("\"a\"")), "{different}");
        }
        assert!(other(Some("W/\"a\""), Some("W/\"a\"")));
        assert!(other(Some("\"a\""), None) && !other(Some("*"), None));
    }

    #[test]
    fn tokens_open_the_server() {
        let host = ("host", "127.0.0.1:80");
        let rules = rules(Some("secret"));
        for uri in ["/a", "/", "/secre/a", "/secrets/a"] {
            let refused = rules.accept(&parts(uri, &[host]));
            assert_eq!(refused.unwrap_err(), Refusal::Token, "{uri}");
        }
        let path = |uri, headers: &[_]| rules.accept(&parts(uri, headers)).unwrap().path;
        assert_eq!(path("/secret/a", &[host]), ["a"]);
        assert_eq!(
            path("/a", &[host, ("authorization", "Bearer secret")]),
            ["a"]
        );
    }

    #[test]
    fn ranges_are_read() {
        assert_eq!(span("bytes=0-9"), Some(ByteSpan::Bounded(0, 9)));
        assert_eq!(span("bytes=5-"), Some(ByteSpan::From(5)));
        assert_eq!(span("bytes=-5"), Some(ByteSpan::Last(5)));
        for header in [
            "bytes=9-0",
            "bytes=-",
            "bytes=+1-2",
            "bytes=0-1,3-4",
            "items=0-1",
            "0-1",
        ] {
            assert_eq!(span(header), None, "{header}");
        }
    }
}
