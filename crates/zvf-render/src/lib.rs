//! Pictures of Zarr Vectors stores, rendered on the CPU: points as balls, paths and links as
//! tubes, meshes as lit surfaces, with a legend, a scale bar and axes.
//!
//! [`render()`] reads a store batch by batch and returns a [`RenderOutput`]; [`Picture::png`]
//! encodes its [`picture`](RenderOutput::picture).
//!
//! [`level_statistics()`] counts vertices of chunks and fragments, and [`Plot`] draws the counts.
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
//! | module | purpose |
//! |---|---|
//! | `render` | surveys the data, chooses camera and colours, then draws in one pass or two |
//! | `scene`, `column` | query results as positions, paths and links; `paint` as colour codes |
//! | `view`, `frame`, `band`, `draw` | camera, z-buffer, its bands of rows, and drawing of a scene on them |
//! | `sheet`, `font` | flat drawings of boxes, lines and text, for a `picture` or as SVG |
//! | `statistics`, `plot` | sizes of chunks and fragments, counted and drawn |
//! | `annotate` | legends, scale bars and axes; `scale` finds round numbers |
#![forbid(unsafe_code)]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "pixels are integers and positions are floats; a cast from a float saturates"
)]

mod annotate;
mod band;
mod color;
mod column;
mod crs;
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
pub use render::{RenderOutput, render, render_with_progress};
pub use statistics::{LevelStatistics, SizeHistogram, level_statistics};
pub use view::{Viewpoint, ViewpointError};
