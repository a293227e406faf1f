//! Making stores.

mod objects;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future;
use zvf_build::{Plan, Summary};
use zvf_model::key::Key;
use zvf_store::{Store, beside};

use crate::error::Error;

use self::objects::{Arrays, encoded};

/// Tasks that are encoded before what they made is put.
const AT_ONCE: usize = 8;

/// What was written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Written {
    /// What the store holds now, or what was added.
    pub summary: Summary,
    /// Objects that were put.
    pub objects: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// What is told while tasks are done: how many are, and of how many.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Puts all of a plan but the root.
pub(crate) async fn put_all(
    store: &Store,
    plan: &Arc<Plan>,
    progress: Option<&Progress>,
) -> Result<Written, Error> {
    let mut written = Written {
        summary: plan.summary(),
        objects: 0,
        bytes: 0,
    };
    let rest = {
        let plan = Arc::clone(plan);
        run(move || {
            let outputs = plan.rest()?;
            let arrays = Arrays::of(&outputs)?;
            let objects = encoded(&arrays, outputs)?;
            Ok((arrays, objects))
        })
        .await?
    };
    let (arrays, objects) = rest;
    let arrays = Arc::new(arrays);
    let mut waiting = objects;
    let tasks = plan.tasks();
    let mut next = 0;
    // What was made is put while the next is made.
    loop {
        let (first, end) = (next, (next + AT_ONCE).min(tasks));
        next = end;
        let (plan, arrays) = (Arc::clone(plan), Arc::clone(&arrays));
        let made = run(move || objects::of_tasks(&plan, &arrays, first..end));
        written.count(&waiting);
        let put = store.put_each(std::mem::take(&mut waiting));
        let (made, put) = future::join(made, put).await;
        put?;
        waiting = made?;
        if let Some(progress) = progress {
            progress(end as u64, tasks as u64);
        }
        if waiting.is_empty() && next >= tasks {
            return Ok(written);
        }
    }
}

impl Written {
    fn count(&mut self, objects: &[(Key, Bytes)]) {
        self.objects += objects.len() as u64;
        self.bytes += objects.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
    }
}

/// Runs something beside what waits for the store.
async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    beside(work).await.unwrap_or(Err(Error::Interrupted))
}

/// The root of a plan, as an object.
pub(crate) fn root(plan: &Plan) -> Result<(Key, Bytes), Error> {
    let key = objects::named(Key::root().metadata(), "zarr.json")?;
    let json = zvf_build::group(plan.root());
    Ok((key, objects::text(&json)))
}

/// Makes a store at `address` of all that is in `plan`.
///
/// Nothing can be opened there until everything is, and nothing is replaced.
///
/// # Errors
///
/// [`Error`] when there is a store already, or it cannot be written.
pub async fn create(
    store: &Store,
    plan: Plan,
    progress: Option<&Progress>,
) -> Result<Written, Error> {
    let plan = Arc::new(plan);
    let mut written = put_all(store, &plan, progress).await?;
    let (key, bytes) = root(&plan)?;
    written.objects += 1;
    written.bytes += bytes.len() as u64;
    match store.put_new(key, bytes).await? {
        true => Ok(written),
        false => Err(Error::AlreadyThere {
            address: store.to_string(),
        }),
    }
}
