//! Tasks whose objects are made, on all cores, and put as soon as they are.

use core::iter;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use zvf_model::key::Key;
use zvf_store::spawn_cpu;

use crate::failure::Failure;

use super::WriteReport;

/// Tasks under way beside one for each core: what they made is being put.
const PUTTING: usize = 2;

/// What is to be put: objects that are there, or those of a task.
enum Work {
    Ready(Vec<(Key, Bytes)>),
    Task(usize),
}

/// Puts what is `ready`, and beside that makes the objects of each task and puts them; `after`
/// each task, it is told how many were put. None waits for those before it. As what is made is
/// held until it was put, few are under way.
///
/// After a failure no task is begun, and this ends when those under way have: nothing is put
/// behind the back of who cleans up.
pub(crate) async fn make_and_put<F>(
    ready: Vec<(Key, Bytes)>,
    tasks: usize,
    make: impl Fn(usize) -> Result<Vec<(Key, Bytes)>, Failure> + Clone + Send + 'static,
    put: impl Fn(Vec<(Key, Bytes)>) -> F,
    mut after: impl FnMut(usize),
) -> Result<WriteReport, Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let has_failed = AtomicBool::new(false);
    let works = iter::once(Work::Ready(ready)).chain((0..tasks).map(Work::Task));
    let begun = works.take_while(|_| !has_failed.load(Ordering::Relaxed));
    let done = begun.map(|work| {
        let (make, put) = (make.clone(), &put);
        async move {
            let (objects, is_task) = match work {
                Work::Ready(objects) => (objects, false),
                Work::Task(task) => {
                    let made = spawn_cpu(move || make(task)).await;
                    (made.unwrap_or(Err(Failure::Interrupted))?, true)
                }
            };
            let mut written = WriteReport::default();
            written.count(&objects);
            put(objects).await?;
            Ok((written, is_task))
        }
    });
    let at_once = rayon::current_num_threads().saturating_add(PUTTING);
    let mut done = stream::iter(done).buffer_unordered(at_once);
    let mut all = Ok(WriteReport::default());
    let mut count = 0;
    while let Some(done) = done.next().await {
        match (&mut all, done) {
            (Ok(all), Ok((written, is_task))) => {
                all.add(&written);
                if is_task {
                    count += 1;
                    after(count);
                }
            }
            (Ok(_), Err(error)) => {
                has_failed.store(true, Ordering::Relaxed);
                all = Err(error);
            }
            (Err(_), _) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;

    fn object(task: usize) -> Result<Vec<(Key, Bytes)>, Failure> {
        let key = Key::parse(&format!("{task}")).map_err(|_| Failure::Interrupted)?;
        Ok(vec![(key, Bytes::from(vec![0; task]))])
    }

    #[tokio::test]
    async fn all_tasks_are_put_and_counted() {
        let put = AtomicUsize::new(0);
        let put_one = async |objects: Vec<(Key, Bytes)>| {
            put.fetch_add(objects.len(), Relaxed);
            Ok(())
        };
        let mut told = Vec::new();
        let tell = |done| told.push(done);
        let ready = object(1000).unwrap();
        let written = make_and_put(ready, 100, object, put_one, tell).await;
        let written = written.unwrap();
        assert_eq!((written.objects, written.bytes), (101, 5950));
        assert_eq!(put.load(Relaxed), 101);
        assert!(told.into_iter().eq(1..=100));
    }

    #[tokio::test]
    async fn after_a_failure_no_task_is_begun_and_nothing_is_left_behind() {
        for (ready, failing_put) in [("a", false), ("a", true), ("7", false)] {
            let ready = vec![(Key::parse(ready).unwrap(), Bytes::new())];
            let (made, putting) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
            let count = Arc::clone(&made);
            let make = move |task| {
                count.fetch_add(1, Relaxed);
                match task {
                    7 if !failing_put => Err(Failure::Interrupted),
                    _ => object(task),
                }
            };
            let put = async |objects: Vec<(Key, Bytes)>| {
                putting.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
                putting.fetch_sub(1, Relaxed);
                match objects[0].0.as_str() {
                    "7" => Err(Failure::Interrupted),
                    _ => Ok(()),
                }
            };
            let written = make_and_put(ready, 10_000, make, put, |_| ()).await;
            assert!(matches!(written, Err(Failure::Interrupted)));
            assert_eq!(putting.load(Relaxed), 0, "all were waited for");
            let most = 8 + 2 * (rayon::current_num_threads() + PUTTING);
            assert!(made.load(Relaxed) <= most, "{made:?}");
        }
    }
}
