//! Clients that repeat requests for a while.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{client::Connection, server::Serving};

/// Times of requests.
pub(super) struct Figures {
    pub(super) p50: Duration,
    pub(super) p95: Duration,
    pub(super) per_second: f64,
    /// Requests without the status 200.
    pub(super) errors: u64,
}

/// Repeats the requests with several clients. Each was served once before, so that the
/// files are in the page cache.
pub(super) fn run(
    server: &Serving,
    paths: &[String],
    clients: usize,
    time: Duration,
) -> Result<Figures> {
    ensure!(!paths.is_empty(), "nothing to request");
    let start = Instant::now();
    let one = |first: usize| -> Result<(Vec<Duration>, u64)> {
        let mut connection = Connection::open(server.address)?;
        let (mut times, mut errors) = (Vec::new(), 0);
        // Clients begin at different places and take strides that differ.
        let stride = 2 * first + 1;
        let mut at = first * paths.len() / clients;
        while start.elapsed() < time {
            let path = paths.get(at % paths.len()).map_or("/", String::as_str);
            let begin = Instant::now();
            match connection.get(path) {
                Ok(response) if response.status == 200 => times.push(begin.elapsed()),
                Ok(_) => errors += 1,
                Err(_) => {
                    errors += 1;
                    connection = Connection::open(server.address)?;
                }
            }
            at += stride;
        }
        Ok((times, errors))
    };
    let done: Result<Vec<(Vec<Duration>, u64)>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|first| scope.spawn(move || one(first)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Ok((Vec::new(), 1))))
            .collect()
    });
    let done = done?;
    let took = start.elapsed();
    let errors = done.iter().map(|(_, errors)| errors).sum();
    let mut times: Vec<Duration> = done.into_iter().flat_map(|(times, _)| times).collect();
    times.sort_unstable();
    ensure!(!times.is_empty(), "no request succeeded");
    let share = |percent: usize| times[(times.len() - 1) * percent / 100];
    #[expect(clippy::cast_precision_loss, reason = "a count that is shown rounded")]
    let per_second = times.len() as f64 / took.as_secs_f64();
    Ok(Figures {
        p50: share(50),
        p95: share(95),
        per_second,
        errors,
    })
}
