//! Pictures of small stores, compared with reviewed ones.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod hostile;
mod pictures;
mod png;
mod stores;

use zvf::Dataset;
use zvf_render::{RenderError, RenderOptions, RenderOutput, render};

fn small() -> RenderOptions {
    let mut options = RenderOptions::default();
    (options.width, options.height) = (320, 240);
    options
}

async fn drawn(store: &stores::Made, options: &RenderOptions) -> Result<RenderOutput, RenderError> {
    let dataset = Dataset::open(&store.address()).await.unwrap();
    render(&dataset, options).await
}
