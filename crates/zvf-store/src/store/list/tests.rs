//! Listings of buckets with markers of folders, as consoles, rclone and Hadoop make them.

use core::fmt;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use futures_util::{FutureExt, StreamExt, stream, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};
use zvf_model::key::Key;

use crate::{
    backend::{Backend, BackendProfile},
    io::ListError,
    store::{OpenOptions, Store},
};

const ROOT: &[u8] = br#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;

/// A bucket with the markers `store.zv/` and `store.zv/.zvf/`. `object_store` returns their paths
/// without the slash.
#[derive(Debug, Default)]
struct Marked {
    memory: InMemory,
    /// There is a marker `store.zv/0/` as well.
    marks_level: AtomicBool,
}

impl Marked {
    /// Returns the markers whose key begins with `prefix` and a slash.
    fn markers(&self, prefix: Option<&Path>) -> Vec<ObjectMeta> {
        let level = self.marks_level.load(SeqCst).then_some("store.zv/0");
        let all = ["store.zv", "store.zv/.zvf"].into_iter().chain(level);
        let prefix = prefix.map_or(String::new(), |prefix| format!("{prefix}/"));
        let below = all.filter(|name| format!("{name}/").starts_with(&prefix));
        let marker = |name: &str| ObjectMeta {
            location: Path::from(name),
            last_modified: "2020-01-01T00:00:00Z".parse().unwrap(),
            size: 0,
            e_tag: None,
            version: None,
        };
        below.map(marker).collect()
    }
}

impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Marked {
    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.memory.get_opts(at, options).await
    }

    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.memory.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.memory.put_multipart_opts(at, options).await
    }

    fn delete_stream(
        &self,
        at: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.memory.delete_stream(at)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let markers = self.markers(prefix).into_iter().map(Ok);
        stream::iter(markers)
            .chain(self.memory.list(prefix))
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut listed = self.memory.list_with_delimiter(prefix).await?;
        for marker in self.markers(prefix) {
            if Some(&marker.location) == prefix {
                listed.objects.push(marker);
            } else if !listed.common_prefixes.contains(&marker.location) {
                listed.common_prefixes.push(marker.location);
            }
        }
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.memory.copy_opts(from, to, options).await
    }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

/// Creates a store in a bucket with markers.
fn created() -> (Store, Arc<Marked>) {
    let bucket = Arc::new(Marked::default());
    let objects: Arc<dyn ObjectStore> = Arc::<Marked>::clone(&bucket);
    let store = Store::new(
        "bucket".to_owned(),
        Backend::Objects(objects),
        Path::from("store.zv"),
        None,
        BackendProfile::NETWORK,
        &OpenOptions::default(),
    );
    now(async {
        for abort in [true, false] {
            let creation = store.begin_create().await.unwrap();
            let object = (key("0/a"), "x".into());
            creation.put_many(vec![object]).await.unwrap();
            if abort {
                creation.abort().await.unwrap();
            } else {
                creation.commit(ROOT).await.unwrap();
            }
        }
    });
    (store, bucket)
}

#[test]
fn a_store_is_created_where_a_folder_is_marked() {
    let (store, _) = created();
    now(async {
        let files = store.list_all(&Key::root(), 2).await.unwrap();
        let names = files.iter().map(|file| &*file.name);
        assert!(names.eq(["0/a", "zarr.json"]), "{files:?}");
    });
}

#[test]
fn markers_of_folders_are_not_listed() {
    let (store, bucket) = created();
    bucket.marks_level.store(true, SeqCst);
    now(async {
        let files = store.list_all(&Key::root(), 2).await.unwrap();
        let names = files.iter().map(|file| &*file.name);
        assert!(names.eq(["0/a", "zarr.json"]), "{files:?}");
        let error = store.list_all(&Key::root(), 1).await.unwrap_err();
        assert!(matches!(error, ListError::TooMany { .. }), "{error:?}");
        let root = store.list(&Key::root(), 2).await.unwrap();
        assert_eq!((root.folders.len(), root.files.len()), (1, 1), "{root:?}");
        let level = store.list(&key("0"), 1).await.unwrap();
        assert_eq!((level.folders.len(), level.files.len()), (0, 1));
        assert_eq!(store.list_all(&key("0"), 1).await.unwrap().len(), 1);
        // An empty object without a folder of its name is one.
        store.put_many(vec![(key("1"), "".into())]).await.unwrap();
        assert_eq!(store.list_all(&Key::root(), 9).await.unwrap().len(), 3);
        assert_eq!(store.list(&Key::root(), 9).await.unwrap().files.len(), 2);
    });
}

#[test]
fn a_store_with_markers_is_sealed_and_swept() {
    let (store, bucket) = created();
    bucket.marks_level.store(true, SeqCst);
    now(async {
        let mut transaction = store.begin().await.unwrap();
        transaction.seal().await.unwrap();
        transaction.commit(ROOT).await.unwrap();
        store.sweep(core::time::Duration::ZERO).await.unwrap();
        let root = crate::io::Read::full(key("zarr.json"));
        let root = store.read_one(root).await.unwrap().unwrap();
        let view = store.with_seal(&root).unwrap();
        assert!(view.is_sealed());
        view.list(&Key::root(), 9).await.unwrap();
        let differences = store.seal_differences(&root).await.unwrap();
        assert!(differences.is_empty(), "{differences:?}");
    });
}
