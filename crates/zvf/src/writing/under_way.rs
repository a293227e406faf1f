//! Tasks whose objects are made, on all cores, and put as soon as they are.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use zvf_model::key::Key;
use zvf_store::computed;

use crate::error::Error;

use super::Written;

/// Tasks under way beside one for each core: what they made is being put.
const PUTTING: usize = 2;

/// Makes the objects of each task and puts them; `after` each, it is told how many were put.
/// None waits for those before it. As what is made is held until it was put, few are under
/// way.
///
/// After a failure no task is begun, and this ends when those under way have: nothing is put
/// behind the back of who cleans up.
pub(crate) async fn make_and_put<F>(
    tasks: usize,
    make: impl Fn(usize) -> Result<Vec<(Key, Bytes)>, Error> + Clone + Send + 'static,
    put: impl Fn(Vec<(Key, Bytes)>) -> F,
    mut after: impl FnMut(usize),
) -> Result<Written, Error>
where
    F: Future<Output = Result<(), Error>>,
{
    let has_failed = AtomicBool::new(false);
    let begun = (0..tasks).take_while(|_| !has_failed.load(Ordering::Relaxed));
    let done = begun.map(|task| {
        let (make, put) = (make.clone(), &put);
        async move {
            let made = computed(move || make(task)).await;
            let objects = made.unwrap_or(Err(Error::Interrupted))?;
            let mut written = Written::default();
            written.count(&objects);
            put(objects).await?;
            Ok(written)
        }
    });
    let at_once = rayon::current_num_threads().saturating_add(PUTTING);
    let mut done = stream::iter(done).buffer_unordered(at_once);
    let mut all = Ok(Written::default());
    let mut count = 0;
    while let Some(done) = done.next().await {
        match (&mut all, done) {
            (Ok(all), Ok(written)) => {
                all.add(&written);
                count += 1;
                after(count);
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
