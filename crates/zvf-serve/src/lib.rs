//! Zarr Vectors stores in browsers: a page that shows them, and Neuroglancer, by a server of live
//! layers or by an export to static files.
//!
//! | geometry | layers |
//! |---|---|
//! | points | annotations, properties of objects and groups |
//! | lines, polylines, streamlines | annotations, skeletons of objects and groups |
//! | graphs | annotations of edges, skeletons |
//! | skeletons | skeletons |
//! | meshes | meshes with the levels of the store as levels of detail |
//! | dense arrays with three axes | volumes |
//!
//! ```no_run
//! use zvf::Dataset;
//! use zvf_serve::{LayerSource, ServeOptions, Server};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tracts = Dataset::open("tracts.zv").await?;
//! let sources = vec![LayerSource::store("tracts", tracts)];
//! let server = Server::bind(sources, &ServeOptions::new(), &|_, _| {}).await?;
//! println!("{}", server.link());
//! server.run(std::future::pending()).await;
//! # Ok(()) }
//! ```

mod export;
mod layers;
#[cfg(feature = "server")]
mod server;
mod spill;
mod view;
#[cfg(feature = "server")]
pub mod viewer;

pub use export::{
    ExportError, ExportOptions, ExportPlan, ExportReport, ExportTarget, ExportWork, MeshFormat,
    export, plan_export,
};
pub use layers::{Layer, LayerError, LayerKind};
#[cfg(feature = "server")]
pub use server::{
    LayerSource, PageReport, ServeError, ServeOptions, Server, VolumePlacement,
    VolumePlacementError,
};
pub use view::{HOSTED_VIEWER, ServedView, StoreView, store_name, viewer_link, viewer_state};
