//! Reads from simulated stores with faulty responses or missing capabilities.

use core::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, memory::InMemory, path::Path,
};
use zvf_model::key::Key;

use crate::{
    backend::{Backend, BackendProfile},
    io::{ByteRange, Read, ReadError},
    store::{OpenOptions, Store},
};

/// A fault of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    /// Suffix ranges are not supported, as on Azure.
    NoSuffix,
    /// Bodies are one byte short.
    Short,
    /// Bodies have one byte too many.
    Long,
    /// Bodies arrive in parts of three bytes.
    Parts,
}

#[derive(Debug)]
struct Flawed(InMemory, Flaw);

impl fmt::Display for Flawed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Flawed {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let suffix = matches!(options.range, Some(GetRange::Suffix(_)));
        if suffix && self.1 == Flaw::NoSuffix {
            let source = "no suffixes here".into();
            return Err(object_store::Error::NotSupported { source });
        }
        assert!(!options.head, "a HEAD request");
        let mut response = self.0.get_opts(location, options).await?;
        let GetResultPayload::Stream(body) = response.payload else {
            panic!("a file in memory");
        };
        let flaw = self.1;
        let body = body.flat_map(move |part| {
            let part = part.unwrap();
            let parts: Vec<Result<Bytes>> = match flaw {
                Flaw::NoSuffix => vec![Ok(part)],
                Flaw::Short => vec![Ok(part.slice(1..))],
                Flaw::Long => vec![Ok(part), Ok(Bytes::from_static(b"x"))],
                Flaw::Parts => part
                    .chunks(3)
                    .map(|b| Ok(Bytes::copy_from_slice(b)))
                    .collect(),
            };
            futures_util::stream::iter(parts)
        });
        response.payload = GetResultPayload::Stream(body.boxed());
        Ok(response)
    }

    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.0.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(at, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

fn flawed(flaw: Flaw) -> Store {
    let memory = InMemory::new();
    let at = Path::from("root/a");
    let put = memory.put(&at, "0123456789".into());
    put.now_or_never().unwrap().unwrap();
    let backend = Backend::Objects(Arc::new(Flawed(memory, flaw)));
    let options = OpenOptions::default().record_requests(true);
    let root = Path::from("root");
    Store::new(
        "flawed".to_owned(),
        backend,
        root,
        None,
        BackendProfile::NETWORK,
        &options,
    )
}

type ReadResult = core::result::Result<Option<Bytes>, ReadError>;

fn read(store: &Store, key: &str, range: ByteRange) -> ReadResult {
    let read = Read::new(Key::parse(key).unwrap(), range);
    store.read_one(read).now_or_never().unwrap()
}

fn log(store: &Store) -> Vec<ByteRange> {
    let log = store.take_request_log().into_iter();
    log.map(|read| read.range).collect()
}

#[test]
fn a_suffix_is_read_without_suffix_ranges_and_head_requests() {
    use ByteRange::{Bounded, Suffix};
    let store = flawed(Flaw::NoSuffix);
    assert_eq!(read(&store, "a", Suffix(3)).unwrap().unwrap(), "789");
    assert_eq!(log(&store), [Suffix(3), Bounded(0..1), Bounded(7..10)]);
    // The missing capability is remembered.
    assert_eq!(
        read(&store, "a", Suffix(10)).unwrap().unwrap(),
        "0123456789"
    );
    assert_eq!(log(&store), [Bounded(0..1), Bounded(0..10)]);
    assert!(read(&store, "b", Suffix(1)).unwrap().is_none());
    let error = read(&store, "a", Suffix(11)).unwrap_err();
    assert!(matches!(error, ReadError::Truncated { size: Some(10), .. }));
}

#[test]
fn a_body_of_unexpected_length_is_an_error() {
    for range in [
        ByteRange::Full,
        ByteRange::Bounded(2..7),
        ByteRange::Suffix(4),
    ] {
        let error = read(&flawed(Flaw::Short), "a", range.clone()).unwrap_err();
        assert!(matches!(error, ReadError::Unavailable { .. }), "{error:?}");
        let error = read(&flawed(Flaw::Long), "a", range).unwrap_err();
        assert!(matches!(error, ReadError::Unavailable { .. }), "{error:?}");
    }
}

#[test]
fn a_body_in_parts_is_assembled() {
    let store = flawed(Flaw::Parts);
    assert_eq!(
        read(&store, "a", ByteRange::Full).unwrap().unwrap(),
        "0123456789"
    );
    assert_eq!(
        read(&store, "a", ByteRange::Bounded(1..9))
            .unwrap()
            .unwrap(),
        "12345678"
    );
}

/// Reads and lists a bucket without any credentials, and returns both errors.
#[cfg(all(feature = "aws", feature = "azure"))]
fn without_credentials(objects: Arc<dyn ObjectStore>) -> (ReadError, crate::io::ListError) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let options = OpenOptions::default().retries(0);
    let backend = Backend::Objects(objects);
    let name = "bucket".to_owned();
    let store = Store::new(
        name,
        backend,
        Path::default(),
        None,
        BackendProfile::NETWORK,
        &options,
    );
    runtime.block_on(async {
        let read = store.read_one(Read::full(Key::parse("a").unwrap())).await;
        let list = store.list(&Key::root(), 10).await;
        (read.unwrap_err(), list.unwrap_err())
    })
}

#[cfg(all(feature = "aws", feature = "azure"))]
#[test]
fn missing_credentials_are_reported() {
    use core::error::Error;
    use object_store::{aws::AmazonS3Builder, azure::MicrosoftAzureBuilder};
    // Binding and releasing a port yields an address without a listener.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let machine = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let retry = || object_store::RetryConfig {
        max_retries: 0,
        ..object_store::RetryConfig::default()
    };
    let s3 = AmazonS3Builder::new()
        .with_bucket_name("b")
        .with_metadata_endpoint(&machine)
        .with_retry(retry());
    let azure = MicrosoftAzureBuilder::new()
        .with_account("a")
        .with_container_name("c")
        .with_msi_endpoint(format!("{machine}/metadata/identity/oauth2/token"))
        .with_retry(retry());
    let stores: [Arc<dyn ObjectStore>; 2] = [
        Arc::new(s3.build().unwrap()),
        Arc::new(azure.build().unwrap()),
    ];
    for store in stores {
        let (read, list) = without_credentials(store);
        let said = read.source().map(ToString::to_string);
        assert!(
            matches!(read, ReadError::Unauthenticated { .. }),
            "{read:?}"
        );
        assert!(said.unwrap().starts_with("no credentials"), "{read:?}");
        let is = matches!(list, crate::io::ListError::Unauthenticated { .. });
        assert!(is, "{list:?}");
    }
}
