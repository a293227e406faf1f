//! Rules without a store.

mod rules;
mod undelivered;
