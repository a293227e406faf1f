//! Pictures of Zarr Vectors stores, drawn by the processor: points as balls, paths and links as
//! tubes, meshes as lit surfaces, with what colours mean, how long things are and where axes go.
//!
//! [`render()`] reads a store piece by piece and gives a [`RenderOutput`], whose
//! [`picture`](RenderOutput::picture) is a PNG file with [`Picture::png`].
//!
//! [`level_statistics()`] counts what is in chunks and fragments, and [`Plot`] draws that.
//!
//! ```no_run
//! use zvf::Dataset;
//! use zvf_render::{RenderOptions, render};
//!
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! let dataset = Dataset::open("tracts.zv").await?;
//! let rendered = render(&dataset, &RenderOptions::default()).await?;
//! std::fs::write("tracts.png", rendered.picture.png())?;
//! # Ok(()) }
//! ```
//!
//! | module | does |
//! |---|---|
//! | `render` | asks the store, decides what has to be known first, puts the rest together |
//! | `scene` | answers as places, and `paint` as the numbers that colours are made of |
//! | `view` | from space to dots; `frame` has what hides each other; on its `band`s `draw` draws a scene |
//! | `sheet`, `font` | flat things: boxes, lines and text, on a `picture` or as SVG |
//! | `shape`, `plot` | how a store is cut up, counted and drawn |
//! | `annotate` | legends, scale bars and axes as a sheet; `scale` finds round numbers |
#![forbid(unsafe_code)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "dots are whole numbers and places are floats; a cast of a float saturates"
)]

mod annotate;
mod band;
mod color;
mod draw;
mod error;
mod font;
mod frame;
mod options;
mod paint;
mod palette;
mod picture;
mod plot;
mod png;
mod render;
mod scale;
mod scene;
mod sheet;
mod statistics;
mod view;

pub use color::{Background, Color, ColorError};
pub use error::RenderError;
pub use options::{ColorBy, DEFAULT_VERTEX_BUDGET, RenderOptions};
pub use palette::Colormap;
pub use picture::Picture;
pub use plot::Plot;
pub use render::{RenderOutput, render};
pub use statistics::{LevelStatistics, SizeHistogram, level_statistics};
pub use view::{Viewpoint, ViewpointError};
