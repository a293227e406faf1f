//! Processes killed while they write, and several processes that write at once.
//!
//! The test binary starts itself as a child process, which sends itself SIGKILL at one operation of
//! the store. Readers must then see exactly the previous state or exactly the new one.

mod child;
mod control;
mod disk;
mod kills;
mod levels;
mod named;
mod place;
mod scenario;
mod state;
mod store_states;
mod unfinished;
mod writers;

#[cfg(all(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
pub(crate) use self::{
    kills::{KillTime, kill_all},
    place::Place,
    scenario::{Operation, Scenario, StoreProperty},
    store_states::StoreStates,
    writers::{WriterSetup, run as write_at_once},
};
