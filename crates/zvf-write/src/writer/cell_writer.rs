//! The writer of nodes and cells that create, edit, migrate, pyramid and sample share.
//!
//! [`CellWriter`] encodes on other threads, uploads the objects, counts them and reports progress.
//! After a failed upload it uploads nothing more and starts no further task.

use core::{borrow::BorrowMut, fmt, iter, mem};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{
    future::BoxFuture,
    lock::Mutex as AsyncMutex,
    stream::{self, StreamExt},
};
use zvf_build::Output;
use zvf_dataset::{Failure, Progress};
use zvf_model::{generation::Generation, key::Key};
use zvf_store::{Creation, CreationPart, Transaction, spawn_cpu};

use super::{
    WriteReport,
    encode::{Arrays, encoded},
    run,
};

/// Tasks that run in addition to one per core: their objects are being uploaded.
const UPLOADING: usize = 2;
/// Number of objects uploaded between two reports of progress.
const OBJECTS_PER_REPORT: usize = 1024;

/// The objects of a store, by key.
pub type Objects = Vec<(Key, Bytes)>;

/// The part of a store that a [`CellWriter`] uploads to.
pub trait Destination: Send + Sync {
    /// Uploads objects.
    fn put(&self, objects: Objects) -> BoxFuture<'_, Result<(), Failure>>;
}

impl<D: Destination + ?Sized> Destination for &D {
    fn put(&self, objects: Objects) -> BoxFuture<'_, Result<(), Failure>> {
        (**self).put(objects)
    }
}

impl Destination for Creation {
    fn put(&self, objects: Objects) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move { Ok(self.put_many(objects).await?) })
    }
}

/// A part of a store that another process creates.
impl Destination for CreationPart {
    fn put(&self, objects: Objects) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move { Ok(self.put_many(objects).await?) })
    }
}

/// A transaction, `Transaction` or `&mut Transaction`, that objects are staged in.
#[derive(Debug)]
pub struct StagedTransaction<T> {
    transaction: AsyncMutex<T>,
    /// Keys of staged objects, if the caller deletes the others in the end.
    keys: Option<Mutex<HashSet<Key>>>,
}

impl<T: BorrowMut<Transaction>> StagedTransaction<T> {
    /// Stages objects in a transaction, without a record of their keys.
    pub fn new(transaction: T) -> Self {
        Self {
            transaction: AsyncMutex::new(transaction),
            keys: None,
        }
    }

    /// Records the keys of staged objects.
    pub fn recording(transaction: T) -> Self {
        Self {
            keys: Some(Mutex::default()),
            ..Self::new(transaction)
        }
    }

    /// Returns the transaction.
    pub fn transaction(&mut self) -> &mut Transaction {
        self.transaction.get_mut().borrow_mut()
    }

    /// Returns the transaction and the keys of staged objects; no keys unless they were recorded.
    pub fn into_parts(self) -> (T, HashSet<Key>) {
        let keys = self
            .keys
            .unwrap_or_default()
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        (self.transaction.into_inner(), keys)
    }
}

impl<T: BorrowMut<Transaction> + Send> Destination for StagedTransaction<T> {
    fn put(&self, objects: Objects) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            if let Some(keys) = &self.keys {
                lock(keys).extend(objects.iter().map(|(key, _)| key.clone()));
            }
            let mut transaction = self.transaction.lock().await;
            Ok((*transaction).borrow_mut().put_many(objects).await?)
        })
    }
}

/// Encodes nodes and cells and uploads them to a [`Destination`].
pub struct CellWriter<D> {
    destination: D,
    arrays: Mutex<Arc<Arrays>>,
    written: Mutex<WriteReport>,
    /// Finished and known units of work.
    units: Mutex<(u64, u64)>,
    progress: Option<Progress>,
    has_failed: AtomicBool,
}

impl<D> fmt::Debug for CellWriter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CellWriter").finish_non_exhaustive()
    }
}

impl<D: Destination> CellWriter<D> {
    /// Creates a writer that has written nothing, to a store of this generation.
    pub fn new(destination: D, generation: Generation) -> Self {
        Self {
            destination,
            arrays: Mutex::new(Arc::new(Arrays::new(generation))),
            written: Mutex::default(),
            units: Mutex::default(),
            progress: None,
            has_failed: AtomicBool::new(false),
        }
    }

    /// Sets the callback for progress.
    #[must_use]
    pub fn with_progress(mut self, progress: Option<Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// Registers the arrays among `nodes`, so that cells can be encoded for them.
    pub fn register(&self, nodes: &[Output]) -> Result<(), Failure> {
        let generation = lock(&self.arrays).generation();
        let arrays = Arrays::of(generation, nodes)?;
        Arc::make_mut(&mut lock(&self.arrays)).extend(arrays);
        Ok(())
    }

    /// Removes all registered arrays.
    pub fn forget_arrays(&self) {
        Arc::make_mut(&mut lock(&self.arrays)).clear();
    }

    /// Encodes nodes and cells of registered arrays, or of arrays among the nodes, and uploads
    /// them. All cells of a shard must be among them.
    pub async fn write(&self, outputs: Vec<Output>) -> Result<(), Failure> {
        if outputs.is_empty() {
            return Ok(());
        }
        let arrays = Arc::clone(&lock(&self.arrays));
        let objects = run(move || encoded(&arrays, outputs)).await?;
        self.put(objects).await
    }

    /// Uploads encoded objects.
    pub async fn put(&self, objects: Objects) -> Result<(), Failure> {
        if self.has_failed.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        let mut written = WriteReport::default();
        written.count(&objects);
        match self.destination.put(objects).await {
            Ok(()) => {
                self.count(&written);
                Ok(())
            }
            Err(error) => {
                self.has_failed.store(true, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Uploads encoded objects and reports each as a unit of work.
    pub async fn put_counted(&self, objects: Objects) -> Result<(), Failure> {
        self.expect(objects.len());
        let mut rest = objects.into_iter();
        loop {
            let some: Objects = rest.by_ref().take(OBJECTS_PER_REPORT).collect();
            if some.is_empty() {
                return Ok(());
            }
            let count = some.len();
            self.put(some).await?;
            self.done(count);
        }
    }

    /// Uploads `ready` objects and, concurrently, makes and uploads the objects of each task.
    /// Calls `after_task` after each task, in no fixed order. As many tasks run as there are cores,
    /// and a few more, since the objects of a task are held until they are uploaded.
    ///
    /// After a failure no task starts, and this returns when the running tasks have ended: nothing
    /// is uploaded behind the back of a caller that cleans up.
    pub async fn run_tasks(
        &self,
        ready: Objects,
        tasks: usize,
        make: impl Fn(usize) -> Result<Objects, Failure> + Clone + Send + 'static,
        mut after_task: impl FnMut(),
    ) -> Result<(), Failure> {
        let has_failed = AtomicBool::new(false);
        let works = iter::once(Work::Ready(ready))
            .chain((0..tasks).map(Work::Task))
            .take_while(|_| !has_failed.load(Ordering::Relaxed));
        let running = works.map(|work| {
            let make = make.clone();
            async move {
                match work {
                    Work::Ready(objects) => self.put(objects).await.map(|()| false),
                    Work::Task(task) => {
                        let made = spawn_cpu(move || make(task)).await;
                        let objects = made.unwrap_or(Err(Failure::Interrupted))?;
                        self.put(objects).await.map(|()| true)
                    }
                }
            }
        });
        let at_once = rayon::current_num_threads().saturating_add(UPLOADING);
        let mut running = stream::iter(running).buffer_unordered(at_once);
        let mut all = Ok(());
        while let Some(ended) = running.next().await {
            match ended {
                Ok(is_task) => {
                    if is_task && all.is_ok() {
                        after_task();
                    }
                }
                Err(error) => {
                    has_failed.store(true, Ordering::Relaxed);
                    if all.is_ok() {
                        all = Err(error);
                    }
                }
            }
        }
        all
    }

    /// Announces units of work: tasks, cells or chunks.
    pub fn expect(&self, units: usize) {
        lock(&self.units).1 += units as u64;
    }

    /// Reports that units of work are finished.
    pub fn done(&self, units: usize) {
        let (done, total) = {
            let mut counts = lock(&self.units);
            counts.0 += units as u64;
            *counts
        };
        if let Some(progress) = &self.progress {
            progress(done, total.max(done));
        }
    }

    /// Adds objects that another process uploaded.
    pub fn count(&self, written: &WriteReport) {
        lock(&self.written).add(written);
    }

    /// Takes the counts of uploaded objects.
    pub fn take_report(&self) -> WriteReport {
        mem::take(&mut lock(&self.written))
    }

    /// Returns the destination.
    pub fn destination(&mut self) -> &mut D {
        &mut self.destination
    }

    /// Returns the destination, when everything is written.
    pub fn into_destination(self) -> D {
        self.destination
    }
}

/// Objects to upload: encoded ones, or those of a task.
enum Work {
    Ready(Objects),
    Task(usize),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// Counts uploads. The upload of `failing` fails.
    #[derive(Default)]
    struct Counting {
        failing: Option<&'static str>,
        uploading: AtomicUsize,
        objects: AtomicUsize,
    }

    impl Destination for Counting {
        fn put(&self, objects: Objects) -> BoxFuture<'_, Result<(), Failure>> {
            Box::pin(async move {
                self.uploading.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
                self.uploading.fetch_sub(1, Relaxed);
                self.objects.fetch_add(objects.len(), Relaxed);
                let fails = |key: &Key| self.failing.is_some_and(|failing| key.as_str() == failing);
                if objects.iter().any(|(key, _)| fails(key)) {
                    Err(Failure::NoPyramid { why: "no space" })
                } else {
                    Ok(())
                }
            })
        }
    }

    fn object(task: usize) -> Result<Objects, Failure> {
        let key = Key::parse(&format!("{task}")).map_err(|_| Failure::Interrupted)?;
        Ok(vec![(key, Bytes::from(vec![0; task]))])
    }

    #[tokio::test]
    async fn tasks_are_uploaded_counted_and_reported() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let send_report = Arc::clone(&reported);
        let progress: Progress = Arc::new(move |done, all| lock(&send_report).push((done, all)));
        let writer =
            CellWriter::new(Counting::default(), Generation::V0_9).with_progress(Some(progress));
        writer.expect(100);
        let ready = object(1000).unwrap();
        let run = writer.run_tasks(ready, 100, object, || writer.done(1));
        run.await.unwrap();
        let written = writer.take_report();
        assert_eq!((written.objects, written.bytes), (101, 5950));
        assert_eq!(writer.destination.objects.load(Relaxed), 101);
        let expected = (1..=100).map(|done| (done, 100));
        assert!(lock(&reported).iter().copied().eq(expected));
    }

    #[tokio::test]
    async fn no_task_starts_after_a_failure_and_running_uploads_are_awaited() {
        for (ready, failing) in [("a", None), ("a", Some("7")), ("7", Some("7"))] {
            let ready = vec![(Key::parse(ready).unwrap(), Bytes::new())];
            let made = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&made);
            let make = move |task| {
                count.fetch_add(1, Relaxed);
                match task {
                    7 if failing.is_none() => Err(Failure::NoPyramid { why: "no space" }),
                    _ => object(task),
                }
            };
            let writer = CellWriter::new(
                Counting {
                    failing,
                    ..Counting::default()
                },
                Generation::V0_9,
            );
            let written = writer.run_tasks(ready, 10_000, make, || ()).await;
            // The cause is returned, not the uploads that were skipped because of it.
            assert!(matches!(written, Err(Failure::NoPyramid { .. })));
            assert_eq!(writer.destination.uploading.load(Relaxed), 0);
            let max = 8 + 2 * (rayon::current_num_threads() + UPLOADING);
            assert!(made.load(Relaxed) <= max, "{made:?}");
        }
    }

    #[tokio::test]
    async fn nothing_is_uploaded_after_a_failed_upload() {
        let writer = CellWriter::new(
            Counting {
                failing: Some("7"),
                ..Counting::default()
            },
            Generation::V0_9,
        );
        writer.put(object(6).unwrap()).await.unwrap();
        writer.put(object(7).unwrap()).await.unwrap_err();
        let skipped = writer.put(object(8).unwrap()).await;
        assert!(matches!(skipped, Err(Failure::Interrupted)));
        assert_eq!(writer.destination.objects.load(Relaxed), 2);
        assert_eq!(writer.take_report().objects, 1);
    }
}
