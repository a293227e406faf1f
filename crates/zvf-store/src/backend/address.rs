//! Store addresses: paths and URLs, distinguished by scheme.

use std::path::{Path, PathBuf};

use url::Url;

use super::error::OpenError;

/// A parsed address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Path(PathBuf),
    Memory,
    Network(Scheme, Url),
}

/// A kind of network store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    S3,
    Gcs,
    Azure,
}

impl Scheme {
    /// Returns the Cargo feature that supports the scheme.
    #[cfg(not(all(feature = "aws", feature = "azure", feature = "gcp", feature = "http")))]
    pub(crate) const fn feature(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::S3 => "aws",
            Self::Gcs => "gcp",
            Self::Azure => "azure",
        }
    }
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, OpenError> {
        if text.is_empty() {
            return Err(OpenError::Address(text.to_owned()));
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return Ok(Self::Path(text.into()));
        };
        // `C:\data` and `./a:b` are paths.
        let is_scheme = scheme.len() > 1
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        if !is_scheme || Path::new(text).exists() {
            return Ok(Self::Path(text.into()));
        }
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "memory" if rest.trim_matches('/').is_empty() => return Ok(Self::Memory),
            "file" => return file_path(text).map(Self::Path),
            "http" | "https" => Scheme::Http,
            "s3" | "s3a" => Scheme::S3,
            "gs" => Scheme::Gcs,
            "az" | "azure" | "abfs" | "abfss" => Scheme::Azure,
            _ => return Err(OpenError::Scheme(scheme.to_owned())),
        };
        let url = url(text)?;
        // A signature or version in the query would not hold for the other keys of the store.
        let is_prefix = url.has_host() && url.query().is_none() && url.fragment().is_none();
        if is_prefix {
            Ok(Self::Network(scheme, url))
        } else {
            Err(OpenError::Address(text.to_owned()))
        }
    }
}

/// Returns the absolute path of a local store, and other addresses as they are: plans and open
/// datasets are used from other working directories.
///
/// ```
/// use zvf_store::absolute_address;
///
/// assert_eq!(absolute_address("s3://bucket/a.zv"), "s3://bucket/a.zv");
/// assert!(absolute_address("./a:b.zv").ends_with("a:b.zv"));
/// assert!(std::path::Path::new(&absolute_address("a.zv")).is_absolute());
/// ```
pub fn absolute_address(address: &str) -> String {
    let path = match Address::parse(address) {
        // `file:` addresses name absolute paths.
        Ok(Address::Path(path)) if path.as_os_str() == address => std::path::absolute(path).ok(),
        _ => None,
    };
    // A working directory that is not UTF-8 cannot be part of an address.
    let text = path.as_deref().and_then(Path::to_str);
    text.unwrap_or(address).to_owned()
}

/// Returns the path of an address in the folder of another, and `None` if it is elsewhere. The path is
/// empty if both name one place. Symbolic links of local folders are followed.
///
/// ```
/// use std::path::Path;
/// use zvf_store::path_in_folder;
///
/// let found = path_in_folder("s3a://bucket/a.zv/0", "s3://bucket/a.zv");
/// assert_eq!(found.as_deref(), Some(Path::new("0")));
/// assert_eq!(path_in_folder("/data/a.zv.old", "/data/a.zv"), None);
/// ```
pub fn path_in_folder(address: &str, folder: &str) -> Option<PathBuf> {
    let path = match (Address::parse(address).ok()?, Address::parse(folder).ok()?) {
        (Address::Path(path), Address::Path(folder)) => {
            let path = resolved(&path);
            path.strip_prefix(resolved(&folder)).map(Path::to_path_buf)
        }
        (Address::Network(scheme, url), Address::Network(other, folder)) => {
            let place = |url: &Url| {
                let host = url.host_str().map(str::to_owned);
                (url.username().to_owned(), host, url.port())
            };
            if scheme != other || place(&url) != place(&folder) {
                return None;
            }
            let path = Path::new(url.path());
            path.strip_prefix(folder.path()).map(Path::to_path_buf)
        }
        _ => return None,
    };
    path.ok()
}

/// Returns the path of a local address without symbolic links, and `None` for memory and the network.
/// The last parts of the path may not exist.
pub(crate) fn local_path(address: &str) -> Option<PathBuf> {
    match Address::parse(address).ok()? {
        Address::Path(path) => Some(resolved(&path)),
        Address::Memory | Address::Network(..) => None,
    }
}

/// Returns a path without symbolic links; its last parts may not exist.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let found = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(ancestor.canonicalize().ok()?.join(rest))
    });
    found.unwrap_or(path)
}

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
fn file_path(text: &str) -> Result<PathBuf, OpenError> {
    let path = url(text)?.to_file_path();
    path.map_err(|()| OpenError::Address(text.to_owned()))
}

/// Browsers have no files.
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
fn file_path(text: &str) -> Result<PathBuf, OpenError> {
    Err(OpenError::Address(text.to_owned()))
}

fn url(text: &str) -> Result<Url, OpenError> {
    Url::parse(text).map_err(|_| OpenError::Address(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_path(text: &str, want: &str) {
        assert_eq!(Address::parse(text).unwrap(), Address::Path(want.into()));
    }

    #[track_caller]
    fn check_network(text: &str, want: Scheme) {
        let address = Address::parse(text).unwrap();
        assert_eq!(address, Address::Network(want, Url::parse(text).unwrap()));
    }

    #[test]
    fn addresses_are_distinguished_by_scheme() {
        check_path("store.zv", "store.zv");
        check_path("/data/a b/store.zv", "/data/a b/store.zv");
        check_path("C:\\data", "C:\\data");
        check_path("./a:b", "./a:b");
        check_path("file:///data/a%20b", "/data/a b");
        assert_eq!(Address::parse("memory:").unwrap(), Address::Memory);
        assert_eq!(Address::parse("memory://").unwrap(), Address::Memory);
        check_network("http://localhost:80/x/y.zv", Scheme::Http);
        check_network("https://example.org/x", Scheme::Http);
        check_network("s3://bucket/x", Scheme::S3);
        check_network("gs://bucket/x", Scheme::Gcs);
        check_network("az://container/x", Scheme::Azure);
    }

    #[test]
    fn places_in_a_folder_are_found_in_every_spelling() {
        let found = |address: &str, folder: &str| path_in_folder(address, folder);
        let is_in = |address: &str, folder: &str, path: &str| {
            assert_eq!(found(address, folder).as_deref(), Some(Path::new(path)));
        };
        is_in("/a b.zv/0/x", "/a b.zv/", "0/x");
        is_in("file:///a%20b.zv/x", "/a b.zv", "x");
        is_in("file:/a.zv/x", "FILE:///a.zv", "x");
        is_in("/a.zv/", "/a.zv", "");
        is_in("s3://b/a.zv/x/", "s3a://b/a.zv", "x");
        is_in("https://h:80/a.zv", "https://h:80/a.zv/", "");
        for (address, folder) in [
            ("/a.zv2", "/a.zv"),
            ("/", "/a.zv"),
            ("s3://b/a.zv2", "s3://b/a.zv"),
            ("s3://c/a.zv/x", "s3://b/a.zv"),
            ("gs://b/a.zv/x", "s3://b/a.zv"),
            ("https://h:81/a.zv/x", "https://h:80/a.zv"),
            ("/a.zv/x", "s3://b/a.zv"),
            ("memory:", "memory:"),
        ] {
            assert_eq!(found(address, folder), None, "{address} in {folder}");
        }
    }

    /// Encodes them alike with either set of tables of `idna_adapter`.
    #[test]
    fn host_names_of_other_scripts_are_encoded() {
        for (text, host) in [
            ("https://B\u{fc}cher.example/x", "xn--bcher-kva.example"),
            ("https://bu\u{308}cher.example/x", "xn--bcher-kva.example"),
            ("https://\u{65e5}\u{672c}.example/x", "xn--wgv71a.example"),
        ] {
            let Address::Network(_, url) = Address::parse(text).unwrap() else {
                panic!("{text} is not on a network");
            };
            assert_eq!(url.host_str(), Some(host));
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for text in ["s3:", "http://", "https://h/x?sig=1", "file://host/x"] {
            let error = Address::parse(text).unwrap_err();
            assert!(matches!(error, OpenError::Address(_)), "{text}: {error:?}");
        }
        let error = Address::parse("ftp://host/x").unwrap_err();
        assert!(matches!(error, OpenError::Scheme(scheme) if scheme == "ftp"));
    }
}
