//! Stores on real servers have the content that they have on disk, also with network faults. `cargo
//! xtask servers` starts the servers, fills them and runs these tests, which are ignored otherwise.

use std::{
    env, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use zvf::{Bbox, Dataset, Error, OpenOptions, Query, QueryResult, Selection, StoreInfo};
use zvf_model::{
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{ByteRange, CellArray, CellRead, CellReader, ListedFile, Read, Store};
use zvf_testkit::proxy::Proxy;

mod credentials;
mod faults;
#[cfg(unix)]
mod killed;
mod snapshots;

/// A server and the client that reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    S3,
    Azure,
    /// The Google Cloud Storage client on the S3 server, with the S3 dialect.
    Gcs,
    /// A server without listings.
    Http,
}

impl Place {
    fn address(self, bucket: &str, store: &str) -> String {
        match self {
            Self::S3 => format!("s3://{bucket}/{store}"),
            Self::Azure => format!("az://{bucket}/{store}"),
            Self::Gcs => format!("gs://{bucket}/{store}"),
            Self::Http => format!("{}/{store}", variable("ZVF_TEST_HTTP")),
        }
    }

    fn server(self) -> SocketAddr {
        let url = variable(match self {
            Self::S3 | Self::Gcs => "AWS_ENDPOINT_URL",
            Self::Azure => "AZURE_STORAGE_ENDPOINT",
            Self::Http => "ZVF_TEST_HTTP",
        });
        let host = url.strip_prefix("http://").unwrap();
        host.split('/').next().unwrap().parse().unwrap()
    }

    /// Opens a store of the public bucket through a proxy, anonymously, because the proxy may
    /// change requests and signatures would break.
    fn through(self, proxy: &Proxy, store: &str, options: &OpenOptions) -> Store {
        let options = options.clone().anonymous(true);
        let url = proxy.url();
        let options = match self {
            Self::S3 => options.option("aws_endpoint_url", url),
            Self::Azure => {
                let account = variable("AZURE_STORAGE_ACCOUNT_NAME");
                options.option("azure_storage_endpoint", format!("{url}/{account}"))
            }
            Self::Gcs => options.option("google_base_url", url),
            Self::Http => return options.open(&format!("{url}/{store}")).unwrap(),
        };
        options.open(&self.address("public", store)).unwrap()
    }

    fn lists(self) -> bool {
        self != Self::Http
    }
}

/// Reads a variable that `cargo xtask servers` sets.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask servers`"))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

#[expect(clippy::print_stdout, reason = "`xtask servers` shows these lines")]
fn report(line: core::fmt::Arguments<'_>) {
    println!("servers: {line}");
}

/// Lists the names of the stores below the bucket.
fn names() -> Vec<String> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        if folder.join("zarr.json").exists() {
            found.push(folder.to_owned());
            return;
        }
        for entry in fs::read_dir(folder).unwrap() {
            below(&entry.unwrap().path(), found);
        }
    }
    let root = PathBuf::from(variable("ZVF_TEST_STORES"));
    let mut found = Vec::new();
    below(&root, &mut found);
    let name = |path: &PathBuf| {
        path.strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    found.iter().map(name).collect()
}

/// Returns the address of the same store on disk.
fn on_disk(store: &str) -> String {
    format!("{}/{store}", variable("ZVF_TEST_STORES"))
}

/// Results of queries on a dataset, for comparison.
#[derive(Debug, PartialEq)]
struct Responses {
    info: Option<StoreInfo>,
    queries: Vec<QueryResult>,
}

/// Queries a dataset. Counting and finding all attributes require a server with listings.
async fn responses(dataset: &Dataset, lists: bool) -> Result<Responses, Error> {
    let bounds = dataset.root().bounds.as_ref().unwrap();
    let corners = bounds.lower().iter().zip(bounds.upper());
    let middle: Vec<f64> = corners.map(|(lo, hi)| lo.midpoint(*hi)).collect();
    let part = Bbox::new(bounds.lower(), &middle).unwrap();
    let mut found = Responses {
        info: None,
        queries: Vec::new(),
    };
    for query in [Query::new(), Query::new().region(part)] {
        let bare = query.clone().columns(Selection::none());
        found.queries.push(dataset.query(&bare).await?);
        if lists {
            found.queries.push(dataset.query(&query).await?);
        }
    }
    if lists {
        found.info = Some(dataset.info().await?);
    }
    Ok(found)
}

/// Content of a store, for comparison: all objects read in several ways, and all cells of its
/// arrays.
#[derive(Debug, PartialEq)]
struct Contents {
    objects: Vec<Vec<Option<Vec<u8>>>>,
    cells: Vec<Vec<Option<Vec<u8>>>>,
}

impl Contents {
    fn count(&self) -> usize {
        self.objects.iter().chain(&self.cells).map(Vec::len).sum()
    }
}

async fn contents(store: &Store, files: &[ListedFile]) -> Result<Contents, zvf_store::CellError> {
    let to_vecs = |responses: Vec<Option<bytes::Bytes>>| {
        let responses = responses.into_iter();
        responses.map(|bytes| bytes.map(|bytes| bytes.to_vec()))
    };
    let absent = ListedFile {
        name: "0/no such thing".to_owned(),
        size: 8,
    };
    let ways: [fn(u64) -> ByteRange; 4] = [
        |_| ByteRange::Full,
        |size| ByteRange::Bounded(size / 3..size - size / 4),
        |size| ByteRange::From(size / 2),
        |size| ByteRange::Suffix(size.div_ceil(3)),
    ];
    let mut objects = Vec::new();
    for way in ways {
        let reads = files.iter().chain([&absent]).map(|file| {
            let key = Key::parse(&file.name).unwrap();
            Read::new(key, way(file.size))
        });
        let responses = store.read(&reads.collect::<Vec<_>>()).await?;
        assert_eq!(responses.last(), Some(&None), "an absent object");
        objects.push(to_vecs(responses).collect());
    }
    let reader = CellReader::new(store.clone());
    let mut cells = Vec::new();
    for array in arrays(store, files).await? {
        let indexes = indexes(array.metadata());
        let wanted = indexes.iter().map(|index| CellRead {
            array: &array,
            index,
            part: None,
        });
        let responses = reader.read(&wanted.collect::<Vec<_>>()).await?;
        cells.push(to_vecs(responses).collect());
    }
    Ok(Contents { objects, cells })
}

/// Opens the arrays with readable cells.
async fn arrays(
    store: &Store,
    files: &[ListedFile],
) -> Result<Vec<CellArray>, zvf_store::ReadError> {
    let mut arrays = Vec::new();
    for file in files {
        let Some(node) = file.name.strip_suffix("/zarr.json") else {
            continue;
        };
        let node = Key::parse(node).unwrap();
        let metadata = node.metadata().unwrap();
        let bytes = store.read_one(Read::full(metadata)).await?.unwrap();
        let Node::Array(array) = Node::parse(&node, &bytes).unwrap() else {
            continue;
        };
        arrays.extend(CellArray::new(node, array));
    }
    Ok(arrays)
}

/// Samples the cells of an array; returns all if they are few.
fn indexes(array: &Array) -> Vec<Vec<u64>> {
    let mut indexes = vec![Vec::new()];
    let chunk = match array.sharding() {
        Some(sharding) => sharding.chunk_shape.clone(),
        None => array.decoded_shape().to_vec(),
    };
    for (size, chunk) in array.shape.iter().zip(chunk) {
        let longer = |index: &Vec<u64>| {
            let index = index.clone();
            let cells = size.div_ceil(chunk.max(1));
            (0..cells).map(move |cell| [index.as_slice(), &[cell]].concat())
        };
        indexes = indexes.iter().flat_map(longer).take(500).collect();
    }
    indexes
}

fn same(place: Place) {
    let (mut stores, mut equal, mut queried) = (0, 0, 0);
    for name in names() {
        let address = place.address("stores", &name);
        let disk = Store::open(&on_disk(&name)).unwrap();
        let there = Store::open(&address).unwrap();
        block_on(async {
            let root = Key::root();
            let files = disk.list_all(&root, usize::MAX).await.unwrap();
            if place.lists() {
                let listed = there.list_all(&root, usize::MAX).await.unwrap();
                assert_eq!(listed, files, "{address}");
            }
            let here = Dataset::open(&on_disk(&name)).await.unwrap();
            // Older generations require a server with listings.
            let generation = here.detection().generation;
            if place.lists() || generation.is_current() {
                let opened = Dataset::open(&address).await.unwrap();
                let want = responses(&here, place.lists()).await.unwrap();
                let found = responses(&opened, place.lists()).await.unwrap();
                assert_eq!(found, want, "{address}");
                queried += want.queries.len();
            }
            let want = contents(&disk, &files).await.unwrap();
            let found = contents(&there, &files).await.unwrap();
            assert!(found == want, "{address}");
            equal += want.count();
        });
        stores += 1;
    }
    assert!(stores >= 8, "{stores} stores");
    report(format_args!(
        "{place:?}: {stores} stores, {queried} queries and {equal} reads as on disk"
    ));
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn stores_in_an_s3_bucket_equal_those_on_disk() {
    same(Place::S3);
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn stores_in_an_azure_container_equal_those_on_disk() {
    same(Place::Azure);
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn stores_read_by_the_gcs_client_equal_those_on_disk() {
    same(Place::Gcs);
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn stores_on_a_web_server_equal_those_on_disk() {
    same(Place::Http);
}
