//! Processes that are killed while they write, and several that write at once.
//!
//! The test binary runs itself as another process, which ends itself with SIGKILL
//! at one operation of the store. What is there then must be read as exactly what
//! was there before, or exactly what was to come.

mod act;
mod child;
mod control;
mod disk;
mod kills;
mod levels;
mod named;
mod place;
mod scene;
mod state;
mod unfinished;
mod writers;

#[cfg(all(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
pub(crate) use self::{
    act::{Act, Like, Verb},
    kills::{Stop, kill_all},
    place::Place,
    scene::Scene,
    writers::{Way, run as write_at_once},
};
