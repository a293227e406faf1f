//! What plans are made of geometry.

mod objects;
